"""What is answered once is kept nowhere: views that tell a secret say so, and those that do not, tell none.

The views come from the URL configuration and their answers from the schema, so that a new one is included.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controlplane.accounts.models import ApiToken, ClientToken
from controlplane.accounts.principal import ADMIN_SCOPES, Role
from controlplane.accounts.token_text import token_digest
from controlplane.api.examples import examples
from controlplane.api.replay import _address
from controlplane.api.urls import urlpatterns
from controlplane.api.views.base import ApiView, Needs
from controlplane.api.views.schema import schema
from controlplane.catalog.sealing import key_ring
from controlplane.common.principal_ids import PrincipalId, PrincipalKind
from controlplane.journal.answers import answer_claim
from controlplane.journal.models import KeptAnswer
from controlplane.notify.models import Channel
from controlplane.notify.sealing import channel_secret
from tests.api.conftest import PREFIX, Caller, caller

pytestmark = pytest.mark.django_db
# Members of answers that hold what lets somebody in, or sign.
TELLING = re.compile(r"token|secret|password|private_key|credential")
# What a secret of ours may look like; every one that is stored as a hash or sealed is looked up.
WORD = re.compile(rb"[A-Za-z0-9_.-]{16,}")


def views() -> Iterator[tuple[str, type[ApiView]]]:
    for pattern in urlpatterns:
        callback: Any = pattern.callback
        yield PREFIX + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(pattern.pattern)), callback.cls


def members(shape: Any) -> Iterator[str]:
    """The names of everything that an answer of this shape can hold."""
    if isinstance(shape, list):
        for each in shape:
            yield from members(each)
    elif isinstance(shape, dict):
        if "$ref" in shape:
            yield from members(schema()["components"]["schemas"][shape["$ref"].rpartition("/")[2]])
        yield from shape.get("properties", {})
        for each in shape.values():
            yield from members(each) if isinstance(each, dict | list) else ()


def test_views__whose_answer_has_a_member_for_a_secret__are_those_that_say_so() -> None:
    telling = {
        (path, verb.upper())
        for path, operations in schema()["paths"].items()
        for verb, operation in operations.items()
        for status, answer in operation["responses"].items()
        if status < "300" and any(map(TELLING.fullmatch, members(list(answer.get("content", {}).values()))))
    }
    marked = {(path, verb) for path, view in views() for verb in view.tells_secret}

    assert marked == telling
    assert len(marked) == 4


def plaintexts_in(body: bytes) -> list[bytes]:
    """The secrets of this database that stand in a text."""
    digests = {
        *ApiToken.objects.values_list("digest", flat=True),
        *ClientToken.objects.values_list("digest", flat=True),
    }
    sealed = {channel_secret(channel) for channel in Channel.objects.exclude(secret=b"")}
    return [word for word in WORD.findall(body) if token_digest(word.decode()) in digests or word in sealed]


def test_kept_answers__of_every_example_that_can_be_posted__hold_no_stored_secret(environments: None) -> None:
    api = caller(*ADMIN_SCOPES)
    told, statuses = [], {}
    for path, operations in schema()["paths"].items():
        name = operations.get("post", {}).get("operationId", "")
        body = examples().get(name)
        if body is None or name in ("change_undo", "client_report"):
            continue
        answer = api.post(path.removeprefix(PREFIX).replace("{environment_key}", "default"), body, Idempotency_Key=name)
        statuses[name] = answer.status
        told += plaintexts_in(answer.content)

    kept = {}
    for row in KeptAnswer.objects.exclude(body=b""):
        address = _address(PrincipalId(PrincipalKind.TOKEN, ApiToken.objects.earliest("pk").pk), row.key)
        kept[row.key] = key_ring().open(bytes(row.body), address)

    assert len(told) == 3  # the search finds what was told
    assert {name: plaintexts_in(body) for name, body in kept.items() if plaintexts_in(body)} == {}
    assert {name for name, status in statuses.items() if status < 300} - kept.keys() == {
        "token_create",
        "client_token_create",
        "channel_create",
    }
    assert len(kept) >= 6


@pytest.mark.parametrize(
    ("needs", "check", "made"),
    [
        ({"POST": Needs.ANYBODY}, False, False),  # who may would be decided behind the answer that is kept
        ({"POST": Needs.CHECK}, False, False),
        ({"POST": Role.EDITOR}, True, False),  # nobody would call it
        ({"POST": Needs.CHECK}, True, True),
        ({"POST": Role.EDITOR}, False, True),
        ({"POST": Needs.KNOWN}, False, True),
        ({"GET": Needs.ANYBODY}, False, True),
    ],
)
def test_view__that_would_authorise_behind_a_kept_answer__is_no_class(needs: Any, check: bool, made: bool) -> None:
    members: dict[str, Any] = {"needs": needs, **({"check": lambda *_args, **_kwargs: None} if check else {})}

    def define() -> type:
        return type("SomeView", (ApiView,), members)

    if made:
        assert define().__name__ == "SomeView"
    else:
        with pytest.raises(TypeError, match="SomeView"):
            define()


def test_principal_id__has_no_room_for_a_name() -> None:
    with pytest.raises(TypeError):
        PrincipalId("deploy")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        PrincipalId(PrincipalKind.TOKEN, "34")  # type: ignore[arg-type]


@pytest.mark.parametrize("claimed", ["deploy", None, 34])
def test_claim__of_what_is_no_principal__is_refused(claimed: Any) -> None:
    with pytest.raises(TypeError):
        answer_claim(principal=claimed, key="k", digest="d")
    assert not KeptAnswer.objects.exists()


def test_secret__that_is_told__names_no_cache_on_its_way(api: Caller) -> None:
    posts: list[Callable[[], Any]] = [
        lambda: api.post("tokens", examples()["token_create"]),
        lambda: api.post("client-tokens", examples()["client_token_create"]),
        lambda: api.post("channels", examples()["channel_create"]),
    ]
    assert [(each.status, each.headers["Cache-Control"]) for each in (post() for post in posts)] == [
        (201, "no-store")
    ] * 3
