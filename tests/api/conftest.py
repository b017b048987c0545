"""A caller of the API whose every answer is held against the published schema."""

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jsonschema
import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from controlplane.accounts.callers import Callers
from controlplane.accounts.models import ApiToken
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.accounts.services import api_token_create
from controlplane.api import rates, strangers
from controlplane.api.views.schema import schema
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.config.loading import Config
from tests.support.principals import somebody

PREFIX = "/api/v1/"
DANA = somebody("dana", ADMIN_SCOPES)


@dataclass(frozen=True)
class Answer:
    """An answer of the API: status, headers, and the body as what it is."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def codes(self) -> list[str]:
        return [error["code"] for error in self.json["errors"]]

    @property
    def pointers(self) -> list[str]:
        return [error["pointer"] for error in self.json["errors"]]


class Caller:
    """Speaks as the holder of one token."""

    def __init__(self, token: str = "", **defaults: Any) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.client = Client(headers=headers, raise_request_exception=False, **defaults)

    def __call__(
        self, method: str, path: str, body: object = None, *, media: str = "application/json", **headers: str
    ) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is None:
            response = self.client.generic(method, PREFIX + path, headers=sent)
        else:
            data = (
                body
                if isinstance(body, bytes)
                else (body.encode() if isinstance(body, str) else json.dumps(body).encode())
            )
            response = self.client.generic(method, PREFIX + path, data, content_type=media, headers=sent)
        answer = Answer(response.status_code, dict(response.headers), response.content)
        assert_documented(method, path.partition("?")[0], answer)
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self("GET", path, **headers)

    def put(self, path: str, body: object, **options: str) -> Answer:
        return self("PUT", path, body, **options)

    def post(self, path: str, body: object = None, **options: str) -> Answer:
        return self("POST", path, body, **options)

    def patch(self, path: str, body: object, **options: str) -> Answer:
        return self("PATCH", path, body, **options)

    def delete(self, path: str, **headers: str) -> Answer:
        return self("DELETE", path, **headers)


def assert_documented(method: str, path: str, answer: Answer) -> None:
    """The schema knows this status of this operation, and its body has the shape the schema says."""
    operation = _operation(method, path)
    if operation is None:
        return
    documented = operation["responses"]
    assert str(answer.status) in documented, f"{method} {path} answered {answer.status}: {answer.content[:500]!r}"
    content = documented[str(answer.status)].get("content", {})
    media = answer.headers.get("Content-Type", "")
    if not content:
        assert answer.content == b""
        return
    assert media in content, f"{method} {path} answered {media}, documented are {list(content)}"
    if "json" in media:
        shape = {**content[media]["schema"], "components": schema()["components"]}
        jsonschema.Draft202012Validator(shape).validate(answer.json)


def _operation(method: str, path: str) -> dict[str, Any] | None:
    # `name` is the only part that may hold slashes, and the longer path goes first.
    for template, operations in sorted(schema()["paths"].items(), key=lambda entry: -len(entry[0])):
        pattern = re.sub(
            r"\\{(\w+)\\}", lambda part: ".+" if part[1] in ("name", "type") else "[^/]+", re.escape(template)
        )
        if re.fullmatch(pattern, PREFIX + path):
            found: dict[str, Any] | None = operations.get(method.lower())
            return found
    return None


@pytest.fixture(autouse=True)
def patience(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many tests ask more often than a caller may; `test_rates` is about that. Every test counts from nothing: in each
    the first token is token 1.
    """
    monkeypatch.setattr(rates._requests, "callers", Callers())
    monkeypatch.setattr(strangers._requests, "callers", Callers())
    monkeypatch.setattr(strangers, "_known", strangers.KnownLately())
    limited(
        settings,
        token_requests_per_s=100_000,
        token_burst=1_000_000,
        user_requests_per_s=100_000,
        anonymous_requests_per_s=100_000,
        anonymous_burst=1_000_000,
        channel_tests_per_min=10_000,
    )


@pytest.fixture
def environments(db: None) -> None:
    """`default` and `prod`."""
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)


@pytest.fixture
def api(environments: None) -> Caller:
    """Somebody who may do everything."""
    return caller(*ADMIN_SCOPES)


@pytest.fixture
def nobody(environments: None) -> Caller:
    """Somebody unknown."""
    return Caller()


@pytest.fixture
def as_role(environments: None) -> Callable[[str, str | None], Caller]:
    """Somebody with one role in one environment, or (None) in all."""
    return lambda role, environment: caller(Scope(Role(role), environment))


_numbers = itertools.count()


def caller(*scopes: Scope) -> Caller:
    name = "-".join(f"{scope.role.value}@{scope.environment}" for scope in scopes)[:60]
    # A number: names of services are unique, and many tests want two that may do the same.
    return Caller(api_token_create(name=f"{name}-{next(_numbers)}", scopes=scopes, actor=SYSTEM)[1])


def signed_in(user: User) -> Caller:
    """Somebody in front of a browser."""
    signed = Caller()
    signed.client.force_login(user)
    return signed


@pytest.fixture
def stored(environments: None) -> Callable[[], tuple[object, ...]]:
    """Everything that a write could have left behind, to be compared with itself later."""

    def rows() -> tuple[object, ...]:
        """Every row of every table, the outboxes of events and deliveries included; a token knows when it was used."""
        tables = (table for table in apps.get_models() if table is not ApiToken)
        return tuple((table.__name__, tuple(table._default_manager.order_by("pk").values_list())) for table in tables)

    return rows


def assert_problem(answer: Answer, status: int, code: str = "") -> None:
    """A problem document of this status: complete, and not a page."""
    assert answer.status == status, answer.content[:800]
    assert answer.headers["Content-Type"] == "application/problem+json"
    document = answer.json
    assert document["status"] == status
    assert {"type", "title", "detail", "instance", "code", "errors"} <= document.keys()
    assert document["instance"] == f"/requests/{answer.headers['X-Request-ID']}"
    assert document["type"].endswith(f"/api/v1/errors/{document['code']}")
    assert document["detail"]
    assert b"Traceback" not in answer.content
    if code:
        assert code in (document["code"], *answer.codes), document


def limited(settings: Settings, **limits: int) -> None:
    """Set limits for one test."""
    parley: Config = settings.PARLEY
    settings.PARLEY = replace(parley, limits=replace(parley.limits, **limits))
