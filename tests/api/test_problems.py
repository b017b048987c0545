"""Whatever goes wrong below the API's paths is a problem document, be it Django's, the database's or our own fault."""

import json

import pytest
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError
from django.http import Http404
from django.test import Client
from rest_framework import exceptions as drf

from controlplane.api.problems import answer_for
from controlplane.api.views import environments as environment_views
from tests.api.conftest import PREFIX, Caller, assert_problem


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Http404(), 404, "XDS3004"),
        (PermissionDenied("secret reason"), 403, "XDS3003"),
        (SuspiciousOperation("x"), 400, "XDS1001"),
        (BadRequest("x"), 400, "XDS1001"),
        (RequestDataTooBig("x"), 413, "XDS1004"),
        (RecursionError(), 400, "XDS1001"),
        (OperationalError("database is locked"), 503, "XDS9003"),
        (InterfaceError("connection already closed"), 503, "XDS9003"),
        (DataError("value too long"), 422, "XDS1000"),
        (IntegrityError("UNIQUE constraint failed"), 409, "XDS3009"),
        (DatabaseError("odd"), 500, "XDS9000"),
        (drf.NotAuthenticated(), 401, "XDS3001"),
        (drf.PermissionDenied("CSRF Failed"), 403, "XDS3003"),
        (drf.MethodNotAllowed("PUT"), 405, "XDS3005"),
        (drf.NotFound(), 404, "XDS3004"),
        (drf.ParseError(), 400, "XDS1001"),
        (ValueError("secret detail"), 500, "XDS9000"),
        (KeyError("secret detail"), 500, "XDS9000"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_answer__any_exception__is_a_problem_without_its_inside(error: Exception, status: int, code: str) -> None:
    answer = answer_for(error)

    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    assert json.loads(answer.content)["code"] == code
    assert b"secret" not in answer.content
    assert b"UNIQUE" not in answer.content
    assert ("Retry-After" in answer) == (status == 503)


@pytest.mark.parametrize("error", [OperationalError("database is locked"), RuntimeError("a fault of ours")])
def test_view__that_fails__is_answered_and_not_shown(
    api: Caller, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(environment_views, "environment_list", fail)

    answer = api.get("environments")

    assert_problem(answer, 503 if isinstance(error, OperationalError) else 500)
    assert str(error).encode() not in answer.content


def test_authentication__database_is_locked__503(api: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_plaintext: str) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr("controlplane.api.authentication.token_principal", fail)

    answer = api.get("environments")

    assert_problem(answer, 503)
    assert answer.headers["Retry-After"] == "2"


def test_middleware__database_is_locked__503(environments: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr("django.middleware.common.CommonMiddleware.process_request", fail)

    answer = Client(raise_request_exception=False).get(f"{PREFIX}environments")

    assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")


@pytest.mark.parametrize(
    "path", ["nothing", "environments/", "environments/prod/", "", "change", "environments/prod/x", "%00"]
)
def test_path__that_is_none__404(api: Caller, path: str) -> None:
    assert_problem(api.get(path), 404)


def test_host__that_is_not_ours__400() -> None:
    answer = Client().get(f"{PREFIX}environments", headers={"Host": "evil.example"})

    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")


def test_query__with_thousands_of_parameters__400(api: Caller) -> None:
    answer = api.get("environments?" + "&".join(f"p{number}=1" for number in range(1_500)))

    assert_problem(answer, 400)


@pytest.mark.parametrize("verb", ["POST", "OPTIONS", "TRACE", "PROPFIND"])
def test_verb__that_a_path_does_not_take__405_with_those_it_takes(api: Caller, verb: str) -> None:
    answer = api(verb, "environments/prod/resources/cluster/pay")

    assert_problem(answer, 405, "XDS3005")
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "PUT", "PATCH", "DELETE", "HEAD"}


def test_head__of_what_can_be_read__has_the_same_headers_and_no_body(api: Caller) -> None:
    answer = api("HEAD", "environments/prod")

    assert (answer.status, answer.content) == (200, b"")


@pytest.mark.parametrize("code", ["XDS1013", "XDS3004", "XDS9003", "XDS1000"])
def test_error_page__of_each_problem__explains_it_to_anybody(nobody: Caller, code: str) -> None:
    answer = nobody.get(f"errors/{code}")

    assert answer.json["code"] == code
    assert answer.json["title"]
    assert answer.json["detail"]


def test_error_page__unknown_code__404(nobody: Caller) -> None:
    assert_problem(nobody.get("errors/XDS0"), 404)


def test_pages_outside_of_the_api__are_left_to_their_room(client: Client) -> None:
    answer = client.get("/nothing-here")

    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")
