"""Tokens of data planes: made by those who administer where they are good, shown once, ended at once."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.accounts.models import ApiToken, ClientToken, RoleGrant
from controlplane.accounts.selectors import client_tokens_valid, client_tokens_version
from controlplane.accounts.token_text import token_digest
from controlplane.catalog.models import Environment
from controlplane.journal.models import AuditEvent
from tests.api.conftest import Caller, assert_problem

ByRole = Callable[[str, str | None], Caller]
SOON = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
PAY = {"subject": "pay", "environment": "prod"}


@pytest.fixture(autouse=True)
def led(api: Caller) -> None:
    """Who is called pay belongs to prod."""
    assert api.patch("environments/prod", {"selectors": [{"identity": "pay"}]}).status == 200


def test_create__for_one_environment__is_shown_once_and_kept_as_a_hash(api: Caller) -> None:
    made = api.post("client-tokens", {**PAY, "expires_at": SOON})

    token = made.json["token"]
    assert (made.status, made.json["usable"], made.headers["Cache-Control"]) == (201, True, "no-store")
    (row,) = client_tokens_valid()
    assert (row.digest, row.subject, row.environment) == (token_digest(token), "pay", "prod")
    assert token.encode() not in api.get("client-tokens").content
    assert token not in str(list(ClientToken.objects.values())) + str(list(AuditEvent.objects.values()))
    assert AuditEvent.objects.filter(verb="client-token.created", environment="prod").exclude(request_id="").exists()


def test_create__token_is_none_of_the_api__401(api: Caller) -> None:
    token = api.post("client-tokens", PAY).json["token"]

    assert_problem(Caller(token).get("environments"), 401)


NO_SELECTOR = "none of its selectors takes this identity"


@pytest.mark.parametrize(
    ("selectors", "wanted", "why", "hint"),
    [
        ([], {}, NO_SELECTOR, '{"identity": "pay"}'),
        ([{"identity": "shop-*"}], {}, NO_SELECTOR, '{"identity": "pay"}'),
        # What a client says of itself selects nothing once its identity is verified.
        (
            [{"node_id": "pay-*"}, {"identity": "pay", "metadata": {"zone": "a"}}],
            {},
            f"{NO_SELECTOR}; those that look at node_id, node_cluster or metadata take nobody whose identity is",
            '{"identity": "pay"}',
        ),
        (
            [{"identity": "p*"}],
            {"environment": "default"},
            "a selector of another environment takes this",
            "that environment",
        ),
    ],
)
def test_create__subject_that_no_selector_leads_there__422_with_why_and_nothing_is_made(
    api: Caller, selectors: list[object], wanted: dict[str, str], why: str, hint: str
) -> None:
    api.patch("environments/prod", {"selectors": selectors})

    refused = api.post("client-tokens", {**PAY, **wanted})
    anywhere = api.post("client-tokens", {**PAY, "environment": None})

    assert_problem(refused, 422)
    (finding,) = refused.json["errors"]
    where = wanted.get("environment", "prod")
    assert finding["detail"].startswith(f"ADS would refuse a token of '{where}' for 'pay': {why}")
    assert (finding["pointer"], hint in finding["hint"]) == ("/environment", True)
    assert (anywhere.status, anywhere.json["usable"]) == (201, True)
    assert ClientToken.objects.count() == 1


def test_create__subject_that_an_environment_tried_before_takes__422_that_does_not_name_it(
    api: Caller, as_role: ByRole
) -> None:
    api.post("environments", {"key": "first", "selectors": [{"identity": "pay"}]})
    Environment.objects.filter(key="prod").update(position=1_000)

    refused = as_role("admin", "prod").post("client-tokens", PAY)

    assert_problem(refused, 422)
    assert "an environment that is tried before it takes this subject" in refused.json["errors"][0]["detail"]
    assert "first" not in str(refused.json)


@pytest.mark.parametrize("environment", ["prod", None])
def test_create__environment_that_takes_some_node_ids__201_with_a_warning_that_says_which(
    api: Caller, environment: str | None
) -> None:
    plain = api.post("client-tokens", {**PAY, "environment": environment})
    api.patch("environments/prod", {"node_ids": ["{name}-*", "edge"]})

    made = api.post("client-tokens", {**PAY, "environment": environment})

    assert (plain.status, plain.json["warnings"]) == (201, [])
    assert made.status == 201
    (warning,) = made.json["warnings"]
    assert "'prod'" in warning
    assert "'pay-*' or 'edge'" in warning


def test_token__whose_selector_goes_later__is_listed_as_unusable(api: Caller) -> None:
    api.post("client-tokens", PAY)

    api.patch("environments/prod", {"selectors": []})

    assert [row["usable"] for row in api.get("client-tokens").json["results"]] == [False]


@pytest.mark.parametrize(
    ("role", "environment", "wanted", "status"),
    [
        ("admin", "prod", "prod", 201),
        ("admin", "prod", "default", 403),
        ("admin", "prod", "never-was", 403),
        ("admin", "prod", None, 403),
        ("operator", "prod", "prod", 403),
        ("admin", None, None, 201),
        ("admin", None, "never-was", 422),
    ],
)
def test_create__where_one_does_not_administer__403(
    as_role: ByRole, role: str, environment: str | None, wanted: str | None, status: int
) -> None:
    answer = as_role(role, environment).post("client-tokens", {"subject": "pay", "environment": wanted})

    assert answer.status == status
    assert ClientToken.objects.exists() == (status == 201)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"environment": "prod"}, "/subject"),
        ({**PAY, "subject": ""}, "/subject"),
        ({**PAY, "subject": "a*"}, "/subject"),
        ({**PAY, "subject": "a b"}, "/subject"),
        ({**PAY, "subject": "spiffe://td/pay"}, "/subject"),
        ({**PAY, "subject": "Spiffe://td/pay"}, "/subject"),
        ({**PAY, "subject": "a" * 256}, "/subject"),
        ({"subject": "pay"}, "/environment"),
        ({**PAY, "expires_at": "tomorrow"}, "/expires_at"),
        ({**PAY, "scopes": []}, "/scopes"),
    ],
)
def test_create__body_that_is_wrong__422_with_its_place(api: Caller, body: object, pointer: str) -> None:
    answer = api.post("client-tokens", body)

    assert_problem(answer, 422)
    assert pointer in answer.pointers
    assert not ClientToken.objects.exists()


def test_create__that_ended_already__422(api: Caller) -> None:
    assert_problem(api.post("client-tokens", {**PAY, "expires_at": "2020-01-01T00:00:00Z"}), 422)


def test_delete__token__is_gone_from_what_ads_loads_and_stays_listed(api: Caller) -> None:
    made = api.post("client-tokens", PAY).json
    before = client_tokens_version()

    assert api.delete(f"client-tokens/{made['id']}").status == 204

    assert client_tokens_version() != before
    assert client_tokens_valid() == ()
    (listed,) = api.get("client-tokens").json["results"]
    assert listed["revoked_at"]
    assert not listed["usable"]
    assert AuditEvent.objects.filter(verb="client-token.revoked").count() == 1


def test_delete__token_of_another_environment__404(api: Caller, as_role: ByRole) -> None:
    made = api.post("client-tokens", {"subject": "cart", "environment": "default"}).json

    assert_problem(as_role("admin", "prod").delete(f"client-tokens/{made['id']}"), 404)
    assert_problem(api.delete("client-tokens/999999"), 404)
    assert_problem(api.delete(f"client-tokens/{2**70}"), 404)
    assert as_role("admin", "prod").get("client-tokens").json["results"] == []
    assert ClientToken.objects.get().revoked_at is None


def test_environment__deleted__takes_what_was_granted_in_it_along(api: Caller, as_role: ByRole) -> None:
    token = api.post("client-tokens", PAY).json["token"]
    only_there, both = (
        as_role("viewer", "prod"),
        api.post(
            "tokens",
            {"name": "both", "scopes": [{"role": "viewer", "environment": each} for each in ("prod", "default")]},
        ).json["token"],
    )
    assert only_there.get("environments/prod").status == 200

    api.delete("environments/prod")
    api.post("environments", {"key": "prod"})

    assert token_digest(token) not in {row.digest for row in client_tokens_valid()}
    assert_problem(only_there.get("environments/prod"), 401)
    assert_problem(Caller(both).get("environments/prod"), 404)
    assert Caller(both).get("environments/default").status == 200
    assert not RoleGrant.objects.exists()
    assert ApiToken.objects.filter(name="both", revoked_at=None).exists()


def test_node_ids__patterns__are_kept_and_need_the_role_admin(api: Caller, as_role: ByRole) -> None:
    changed = api.patch("environments/prod", {"node_ids": ["{name}-*", "edge"]})

    assert changed.json["node_ids"] == ["{name}-*", "edge"]
    assert api.get("environments/prod").json["node_ids"] == ["{name}-*", "edge"]
    assert_problem(as_role("operator", "prod").patch("environments/prod", {"node_ids": []}), 403)
    assert_problem(api.patch("environments/prod", {"node_ids": ["a*b*c*"]}), 422)
