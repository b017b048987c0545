"""Sudo mode over HTTP: who is asked again, what is kept of the form, and how long a proof holds."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.accounts.models import ApiToken, RoleGrant
from controlplane.accounts.services import api_token_create
from controlplane.catalog.models import Environment
from controlplane.factors.models import AuthenticatorApp
from controlplane.factors.sealing import secret_seal
from tests.api.conftest import limited
from tests.web.conftest import DANA, USERS
from tests.web.test_second_factor import PASSWORD, Later, code_now, later

__all__ = ["later"]
pytestmark = pytest.mark.django_db

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
TOKEN = {"action": "make-api", "name": 'ci "<b>&', "role-1": "editor", "environment-1": "default", "days": "90"}
ASKS = "Is it you?"


@pytest.fixture(autouse=True)
def eve(settings: Settings, two_environments: None, later: Later) -> User:
    """Somebody who may do everything, by a password."""
    user: User = USERS.objects.create_user("eve", password=PASSWORD, is_superuser=True)
    return user


@pytest.fixture
def old(later: Later) -> Client:
    """A browser in which eve signed in sixteen minutes ago."""
    browser = Client()
    assert browser.post("/login", {"username": "eve", "password": PASSWORD}).status_code == 302
    later(16 * 60)
    return browser


def fields(answer: Any) -> dict[str, str]:
    """What the form of the question sends by itself."""
    text = answer.content.decode().partition("<main")[2]
    return {
        unescape(name): unescape(value)
        for name, value in re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', text)
        if name != "csrfmiddlewaretoken"
    }


def asks(answer: Any) -> bool:
    return ASKS in answer.content.decode()


def test_act__within_fifteen_minutes_of_the_sign_in__is_done_at_once(later: Later) -> None:
    browser = Client()
    browser.post("/login", {"username": "eve", "password": PASSWORD})
    later(14 * 60)

    assert browser.post("/tokens", TOKEN).status_code == 201


def test_act__later__asks_and_does_what_was_typed_once_the_password_is_right(old: Client, later: Later) -> None:
    question = old.post("/tokens", TOKEN)
    assert (question.status_code, question["Cache-Control"]) == (200, "no-store")
    assert asks(question)
    assert not ApiToken.objects.exists()
    assert fields(question) == {**TOKEN, "sudo_asked": "1"}

    wrong = old.post("/tokens", {**fields(question), "sudo_password": "guess"})
    assert (wrong.status_code, fields(wrong)) == (422, fields(question))
    assert "guess" not in wrong.content.decode()
    assert not ApiToken.objects.exists()
    done = old.post("/tokens", {**fields(wrong), "sudo_password": PASSWORD})

    assert done.status_code == 201
    assert ApiToken.objects.get().name == TOKEN["name"]
    assert PASSWORD not in done.content.decode()
    later(14 * 60)
    assert old.post("/tokens", {**TOKEN, "name": "another"}).status_code == 201


def test_act__nothing_typed__says_so(old: Client) -> None:
    answer = old.post("/tokens", {**TOKEN, "sudo_asked": "1"})

    assert answer.status_code == 422
    assert "Nothing was typed." in answer.content.decode()


def test_proof__in_one_session__is_none_of_another_and_ends(old: Client, later: Later) -> None:
    old.post("/tokens", {**TOKEN, "sudo_asked": "1", "sudo_password": PASSWORD})
    other = Client()
    other.post("/login", {"username": "eve", "password": PASSWORD})
    later(16 * 60)

    assert asks(other.post("/tokens", {**TOKEN, "name": "b"}))
    assert asks(old.post("/tokens", {**TOKEN, "name": "b"}))


def test_proof__by_a_code_of_the_app__is_good_once(old: Client, eve: User, later: Later) -> None:
    AuthenticatorApp.objects.create(user=eve, sealed=secret_seal(eve.pk, SECRET), last_step=0)
    code = code_now(SECRET)

    done = old.post("/tokens", {**TOKEN, "sudo_asked": "1", "sudo_code": code})
    later(16 * 60)
    other = Client()
    other.force_login(eve)
    later(16 * 60)
    replayed = old.post("/tokens", {**TOKEN, "name": "b", "sudo_asked": "1", "sudo_code": code})

    assert (done.status_code, replayed.status_code) == (201, 422)


def test_proof__guessed__429_and_what_was_typed_is_kept(old: Client, eve: User, settings: Settings) -> None:
    AuthenticatorApp.objects.create(user=eve, sealed=secret_seal(eve.pk, SECRET), last_step=0)
    limited(settings, codes_per_h=6)

    passwords = [old.post("/tokens", {**TOKEN, "sudo_asked": "1", "sudo_password": "x"}) for _ in range(6)]
    codes = [old.post("/tokens", {**TOKEN, "sudo_asked": "1", "sudo_code": "000000"}) for _ in range(6)]

    assert [each.status_code for each in passwords] == [422] * 5 + [429]
    assert [each.status_code for each in codes] == [422] * 5 + [429]
    assert passwords[-1]["Retry-After"] == "60"
    assert fields(passwords[-1]) == {**TOKEN, "sudo_asked": "1"}


def test_users__every_act__asks(old: Client, eve: User, later: Later) -> None:
    ana = USERS.objects.create_user("ana", password="pw")
    why = {"reason": "why"}
    forms = [
        ("/users", {"username": "bob", **why}),
        (f"/users/{ana.pk}", {"action": "password", **why}),
        (f"/users/{ana.pk}", {"action": "disable", **why}),
        (f"/users/{ana.pk}", {"action": "give", "role": "admin", "environment": "*", **why}),
        (f"/users/{ana.pk}", {"action": "forget-factors", **why}),
        (f"/users/{ana.pk}", {"action": "make-superuser", **why}),
        (f"/users/{ana.pk}/access", {"action": "end-browsers", **why}),
        ("/users/invitations", {"action": "make", "username": "bob", "address": "bob@example.org", "days": "7", **why}),
        ("/users/groups", {"name": "shop", **why}),
        ("/account/second-factor", {"action": "begin-app"}),
        ("/account/second-factor", {"action": "begin-key"}),
        ("/account/second-factor", {"action": "renew-codes"}),
        ("/account/second-factor", {"action": "remove-app"}),
        ("/tokens?kind=client", {"action": "make-client", "subject": "pay", "environment": "default", "days": "7"}),
        ("/e/default/review", {"required": "on", "approvals": "1", "role": "admin"}),
    ]

    answers = [old.post(path, form) for path, form in forms]

    assert [asks(each) for each in answers] == [True] * len(forms)
    assert [fields(each) for each in answers] == [{**form, "sudo_asked": "1"} for _path, form in forms]
    ana.refresh_from_db()
    assert ana.is_active
    assert ana.check_password("pw")
    assert not RoleGrant.objects.exists()
    assert not USERS.objects.filter(username="bob").exists()
    assert not Environment.objects.get(key="default").review.get("required")


def test_tokens__own_one_that_leaked__is_ended_without_a_question_and_anothers_is_not(old: Client, eve: User) -> None:
    old.post("/tokens", {**TOKEN, "sudo_asked": "1", "sudo_password": PASSWORD})
    own = ApiToken.objects.get()
    foreign, _text = api_token_create(name="service", scopes=(), actor=DANA)
    session = old.session
    session["proved_at"] -= 1_000.0
    session.save()

    mine = old.post("/tokens", {"action": "end-api", "id": str(own.pk), "reason": "leaked"})
    anothers = old.post("/tokens", {"action": "end-api", "id": str(foreign.pk), "reason": "leaked"})

    assert mine.status_code == 302
    assert asks(anothers)


def test_question__for_whoever_may_not__is_the_refusal_of_before(later: Later) -> None:
    USERS.objects.create_user("ana", password=PASSWORD)
    browser = Client()
    browser.post("/login", {"username": "ana", "password": PASSWORD})
    later(16 * 60)

    answer = browser.post("/users", {"username": "bob", "reason": "why", "sudo_asked": "1", "sudo_password": PASSWORD})

    assert answer.status_code == 403


def test_proof__from_the_future__is_none(old: Client) -> None:
    session = old.session
    session["proved_at"] = timezone.now().timestamp() + 10_000.0
    session.save()

    assert asks(old.post("/tokens", TOKEN))


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("tokens", {"name": "made", "scopes": [{"role": "viewer", "environment": "default"}]}),
        ("client-tokens", {"subject": "pay", "environment": "default"}),
    ],
)
def test_rest__by_a_session__makes_no_token_without_a_proof(path: str, asked: dict[str, object], old: Client) -> None:
    refused = old.post(f"/api/v1/{path}", asked, content_type="application/json")
    old.post("/tokens", {**TOKEN, "sudo_asked": "1", "sudo_password": PASSWORD})
    made = old.post(f"/api/v1/{path}", asked, content_type="application/json")

    assert (refused.status_code, made.status_code) == (403, 201), made.content
    assert "not older than 15 minutes" in refused.json()["detail"]


def test_rest__by_a_session__changes_no_review_without_a_proof(old: Client) -> None:
    def sent(body: dict[str, object]) -> Any:
        return old.patch("/api/v1/environments/default", body, content_type="application/json")

    other, refused = sent({"hold": "a drill"}), sent({"review": {"required": True}})
    old.post("/tokens", {**TOKEN, "sudo_asked": "1", "sudo_password": PASSWORD})
    done = sent({"review": {"required": True}})

    assert (other.status_code, refused.status_code, done.status_code) == (200, 403, 200), done.content
    assert "Changing the settings of review needs a proof" in refused.json()["detail"]


def test_rest__by_a_token__is_not_asked(old: Client, eve: User) -> None:
    _token, text = api_token_create(name="ci", scopes=DANA.scopes, actor=DANA)
    asked = {"name": "made", "kind": "service", "scopes": [{"role": "viewer", "environment": "default"}]}

    answer = Client().post(
        "/api/v1/tokens", asked, content_type="application/json", headers={"Authorization": f"Bearer {text}"}
    )

    assert answer.status_code == 201, answer.content
