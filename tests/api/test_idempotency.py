"""`Idempotency-Key`: one effect and one answer, however often the request is sent."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.accounts.models import ApiToken, ClientToken
from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.catalog.models import Change
from controlplane.catalog.sealing import key_ring
from controlplane.catalog.services import environment_default_ensure
from controlplane.common.principal_ids import PrincipalId, PrincipalKind
from controlplane.journal.answers import Claim, Kept, answer_claim, answer_forget, answer_keep
from controlplane.journal.models import KeptAnswer
from controlplane.notify.models import Channel
from tests.api.conftest import Answer, Caller, assert_problem, caller
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db(transaction=True)
APPLY = "environments/default/apply"


@pytest.fixture
def api() -> Caller:
    environment_default_ensure()
    return caller(*ADMIN_SCOPES)


def apply(api: Caller, key: str, *names: str) -> Answer:
    return api.post(APPLY, {"resources": [cluster(name) for name in names]}, Idempotency_Key=key)


def changes() -> int:
    return Change.objects.filter(kind="resources").count()


def test_key__same_request_again__same_answer_and_one_change(api: Caller) -> None:
    first = apply(api, "k1", "a")

    again = apply(api, "k1", "a")

    assert (again.status, again.content) == (202, first.content)
    assert again.headers["Location"] == first.headers["Location"]
    assert (again.headers["Idempotency-Replayed"], "Idempotency-Replayed" in first.headers) == ("true", False)
    assert changes() == 1


def test_key__other_body_or_path__409_and_nothing_done(api: Caller) -> None:
    apply(api, "k1", "a")

    other = apply(api, "k1", "b")
    elsewhere = api.post("validate", {"resources": [cluster("a")]}, Idempotency_Key="k1")

    assert_problem(other, 409)
    assert_problem(elsewhere, 409)
    assert "Use a new key" in other.json["detail"]
    assert changes() == 1


def test_key__encryption_key_of_the_answer_was_dropped__409_and_done_once(api: Caller, settings: Settings) -> None:
    apply(api, "k1", "a")
    settings.PARLEY = replace(settings.PARLEY, encryption_keys=(bytes(range(32)),))
    key_ring.cache_clear()

    again = apply(api, "k1", "a")

    key_ring.cache_clear()
    assert_problem(again, 409)
    assert "was done" in again.json["detail"]
    assert changes() == 1


def test_key__of_somebody_else__is_another_key(api: Caller) -> None:
    editor = caller(Scope(Role.EDITOR, "default"))
    apply(api, "k1", "a")

    assert apply(editor, "k1", "b").status == 202


def test_key__answered_with_a_mistake__is_answered_alike(api: Caller) -> None:
    bad = {"resources": [{**cluster("a"), "conect_timeout": "1s"}]}
    first = api.post(APPLY, bad, Idempotency_Key="k1")

    again = api.post(APPLY, bad, Idempotency_Key="k1")

    assert (first.status, again.status, again.content) == (422, 422, first.content)


def test_key__refused_because_of_the_state_of_things__may_be_used_again(api: Caller) -> None:
    api.patch("environments/default", {"hold": "wait"})
    refused = apply(api, "k1", "a")
    api.patch("environments/default", {"hold": None})

    assert (refused.status, apply(api, "k1", "a").status) == (409, 202)


def test_key__a_day_later__is_forgotten(api: Caller) -> None:
    apply(api, "k1", "a")
    KeptAnswer.objects.update(at=timezone.now() - timedelta(hours=25))

    assert apply(api, "k1", "b").status == 202
    assert KeptAnswer.objects.count() == 1


def test_key__whoever_had_it_died_before_it_did_anything__is_taken_over_after_a_while(api: Caller) -> None:
    apply(api, "k1")
    KeptAnswer.objects.update(status=None, body=b"")

    assert_problem(apply(api, "k1"), 409)
    KeptAnswer.objects.update(at=timezone.now() - timedelta(minutes=3))
    assert apply(api, "k1").json == {"changed": False}


def test_key__whoever_had_it_died_after_it_was_done__is_done_once_and_says_where_it_is(
    api: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dying:
        dying.setattr("controlplane.api.replay.answer_keep", lambda **_: None)
        first = apply(api, "k1", "a")
    # Somebody else changes it meanwhile: done again, the request would take that back.
    api.post(APPLY, {"resources": [{**cluster("a"), "connect_timeout": "7s"}]})

    soon = apply(api, "k1", "a")
    KeptAnswer.objects.update(at=timezone.now() - timedelta(minutes=3))
    late = [apply(api, "k1", "a") for _ in range(2)]

    assert_problem(soon, 409, "XDS3009")
    for each in late:
        assert_problem(each, 409, "XDS3033")
        assert each.headers["Location"] == first.headers["Location"]
        assert first.headers["Location"] in each.json["detail"]
    assert changes() == 2


def test_key__answer_failed_after_it_was_done__is_not_done_again(api: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: object) -> None:
        raise OperationalError("the database went away")

    with monkeypatch.context() as failing:
        failing.setattr("controlplane.api.views.changes.secret_findings", fails)
        first = apply(api, "k1", "a")

    again = apply(api, "k1", "a")

    assert first.status >= 500
    assert_problem(again, 409, "XDS3033")
    assert changes() == 1


def test_key__died_after_a_token_was_made__makes_no_second(api: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as dying:
        dying.setattr("controlplane.api.replay.answer_keep", lambda **_: None)
        api.post("tokens", SECRETS["tokens"], Idempotency_Key="k1")
    KeptAnswer.objects.update(at=timezone.now() - timedelta(minutes=3))
    before = ApiToken.objects.count()

    again = api.post("tokens", SECRETS["tokens"], Idempotency_Key="k1")

    assert_problem(again, 409, "XDS3033")
    assert "audit log" in again.json["detail"]
    assert ApiToken.objects.count() == before


def test_key__whoever_was_given_up_wakes__neither_frees_nor_answers_it_for_who_took_it_over() -> None:
    ask = partial(answer_claim, principal=PrincipalId(PrincipalKind.TOKEN, 7), key="k", digest="d")
    given_up = ask()
    KeptAnswer.objects.update(at=timezone.now() - timedelta(minutes=3))
    taken_over = ask()
    assert isinstance(given_up, Claim)
    assert isinstance(taken_over, Claim)

    answer_keep(claim=given_up, answer=Kept(503))
    answer_forget(claim=given_up)
    answer_keep(claim=taken_over, answer=Kept(201))

    assert ask() == Kept(201)


@pytest.mark.parametrize("key", ["", "x" * 256, "ключ", "a\tb"])
def test_key__that_is_none__422(api: Caller, key: str) -> None:
    assert_problem(api.post(APPLY, {"resources": []}, Idempotency_Key=key), 422)


SECRETS: dict[str, dict[str, Any]] = {
    "tokens": {"name": "ci", "scopes": [{"role": "viewer", "environment": None}]},
    "client-tokens": {"subject": "ci", "environment": None},
    "channels": {"name": "ci", "kind": "webhook", "target": "https://hooks.example/ci"},
}


@pytest.mark.parametrize("path", SECRETS)
def test_key__answer_with_a_secret__is_told_once_kept_nowhere_and_makes_no_second(api: Caller, path: str) -> None:
    def made() -> int:
        return sum(table.objects.count() for table in (ApiToken, ClientToken, Channel))

    first = api.post(path, SECRETS[path], Idempotency_Key="k1")
    before = made()
    again = api.post(path, SECRETS[path], Idempotency_Key="k1")

    assert (first.status, first.headers["Cache-Control"]) == (201, "no-store")
    assert_problem(again, 409, "XDS3032")
    assert again.headers["Location"] == first.headers["Location"]
    assert first.headers["Location"].endswith(f"{path}/{first.json['id']}")
    assert bytes(KeptAnswer.objects.get().body) == b""
    assert made() == before


def test_key__mistake_where_a_secret_is_told__is_answered_alike(api: Caller) -> None:
    bad = {**SECRETS["tokens"], "scopes": [{"role": "viewer", "environment": "never-was"}]}

    answers = [api.post("tokens", bad, Idempotency_Key="k1") for _ in range(2)]

    assert [(each.status, each.content) for each in answers] == [(422, answers[0].content)] * 2


def test_key__sent_eight_times_at_once__is_carried_out_once(api: Caller) -> None:
    def send(_: int) -> Answer:
        try:
            return apply(api, "k1", "a")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(send, range(8)))

    assert {answer.status for answer in answers} <= {202, 409}
    assert len({answer.content for answer in answers if answer.status == 202}) == 1
    assert changes() == 1
