"""Tokens: made by those who administer what they are for, shown once, ended at once."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.accounts.models import ApiToken
from controlplane.journal.models import AuditEvent
from tests.api.conftest import Caller, assert_problem

ByRole = Callable[[str, str | None], Caller]
SOON = (datetime.now(UTC) + timedelta(hours=1)).isoformat()


def scope(role: str, environment: str | None) -> dict[str, object]:
    return {"role": role, "environment": environment}


def test_create__token_for_one_environment__works_there_and_is_shown_once(api: Caller) -> None:
    made = api.post("tokens", {"name": "ci", "scopes": [scope("editor", "prod")], "expires_at": SOON})

    token = made.json["token"]
    assert made.status == 201
    assert made.headers["Cache-Control"] == "no-store"
    assert [each["key"] for each in Caller(token).get("environments").json["results"]] == ["prod"]
    assert token.encode() not in api.get("tokens").content
    assert not ApiToken.objects.filter(digest__contains=token).exists()
    assert token not in str(list(AuditEvent.objects.values()))


def test_create__expired_meanwhile__401(api: Caller) -> None:
    token = api.post("tokens", {"name": "ci", "scopes": [scope("viewer", None)], "expires_at": SOON}).json["token"]

    ApiToken.objects.filter(name="ci").update(expires_at=datetime.now(UTC) - timedelta(seconds=1))

    assert_problem(Caller(token).get("environments"), 401)


@pytest.mark.parametrize(
    ("role", "environment", "wanted", "status"),
    [
        ("admin", "prod", scope("admin", "prod"), 201),
        ("admin", "prod", scope("viewer", "default"), 403),
        ("admin", "prod", scope("viewer", None), 403),
        ("admin", "prod", scope("viewer", "never-was"), 403),
        ("operator", "prod", scope("viewer", "prod"), 403),
        ("admin", None, scope("admin", None), 201),
    ],
)
def test_create__scope_one_does_not_administer__403(
    as_role: ByRole, role: str, environment: str | None, wanted: dict[str, object], status: int
) -> None:
    answer = as_role(role, environment).post("tokens", {"name": "mine", "scopes": [wanted]})

    assert answer.status == status
    assert ApiToken.objects.filter(name="mine").exists() == (status == 201)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"scopes": [scope("viewer", None)]}, "/name"),
        ({"name": "", "scopes": [scope("viewer", None)]}, "/name"),
        ({"name": "  ", "scopes": [scope("viewer", None)]}, "/name"),
        ({"name": "x"}, "/scopes"),
        ({"name": "x", "scopes": []}, "/scopes"),
        ({"name": "x", "scopes": [{"role": "root", "environment": None}]}, "/scopes/0/role"),
        ({"name": "x", "scopes": [{"role": "viewer"}]}, "/scopes/0/environment"),
        ({"name": "x", "scopes": [scope("viewer", None)], "expires_at": "tomorrow"}, "/expires_at"),
        ({"name": "x", "scopes": [scope("viewer", None)], "expires_at": "2027-01-01T00:00:00"}, "/expires_at"),
        ({"name": "x", "scopes": [scope("viewer", None)], "expires_at": 1}, "/expires_at"),
        ({"name": "x", "scopes": [scope("viewer", None)], "expires_at": "9999-12-31T23:59:59-14:00"}, "/expires_at"),
        ({"name": "x", "scopes": [scope("viewer", None)], "expires_at": "0001-01-01T00:00:00+14:00"}, "/expires_at"),
        ({"name": "x", "scopes": [scope("viewer", None)], "owner": "dana"}, "/owner"),
    ],
)
def test_create__body_that_is_wrong__422_with_its_place(api: Caller, body: object, pointer: str) -> None:
    before = ApiToken.objects.count()

    answer = api.post("tokens", body)

    assert_problem(answer, 422)
    assert pointer in answer.pointers, answer.json
    assert ApiToken.objects.count() == before


def test_create__that_ended_already_or_for_no_environment__422(api: Caller) -> None:
    past = {"name": "x", "scopes": [scope("viewer", None)], "expires_at": "2020-01-01T00:00:00Z"}
    assert_problem(api.post("tokens", past), 422)
    assert_problem(api.post("tokens", {"name": "x", "scopes": [scope("viewer", "never-was")]}), 422)


def test_delete__token__ends_it_now_and_it_stays_listed(api: Caller) -> None:
    made = api.post("tokens", {"name": "ci", "scopes": [scope("viewer", None)]}).json

    answer = api.delete(f"tokens/{made['id']}")

    assert answer.status == 204
    assert_problem(Caller(made["token"]).get("environments"), 401)
    assert next(each for each in api.get("tokens").json["results"] if each["id"] == made["id"])["revoked_at"]
    assert AuditEvent.objects.filter(verb="token.revoked").exclude(request_id="").exists()


def test_delete__token_of_another_environment__404(api: Caller, as_role: ByRole) -> None:
    made = api.post("tokens", {"name": "ci", "scopes": [scope("viewer", "default")]}).json

    assert_problem(as_role("admin", "prod").delete(f"tokens/{made['id']}"), 404)
    assert_problem(api.delete("tokens/999999"), 404)
    assert_problem(api.delete(f"tokens/{2**70}"), 404)
    assert not ApiToken.objects.get(pk=made["id"]).revoked_at


def test_list__administrator_of_one_environment__sees_only_its_tokens(api: Caller, as_role: ByRole) -> None:
    api.post("tokens", {"name": "prod-only", "scopes": [scope("viewer", "prod")]})
    api.post("tokens", {"name": "both", "scopes": [scope("viewer", "prod"), scope("viewer", "default")]})

    names = [each["name"] for each in as_role("admin", "prod").get("tokens").json["results"]]

    assert "prod-only" in names
    assert "both" not in names
