"""Who may do what: every path of the URL configuration, every verb, every role, two environments and nobody.

The table below must name each path that `controlplane.api.urls` has, so a new path is in the matrix or the suite fails.
"""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import URLPattern

from controlplane.access.cases import case_create
from controlplane.access.services import group_create, rule_create
from controlplane.access.values import Case, GroupDraft, RuleDraft
from controlplane.accounts.principal import SYSTEM, Role, Scope
from controlplane.accounts.services import api_token_create, api_token_revoke
from controlplane.api import urls
from controlplane.api.views.base import ApiView, Needs
from controlplane.catalog.models import Change
from controlplane.catalog.rights import OnSome
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.common.limits import Limit
from controlplane.routecases.services import case_create as route_case_create
from controlplane.routecases.values import Expected, RouteCaseDraft
from tests.api.conftest import PREFIX, Caller, assert_problem, caller
from tests.support.manifests import cluster, parsed
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import ClientFacts, Selector
from xdscore.routing.values import Answer, Request

VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ROLES = tuple(role.value for role in Role)
EDITORS = {"editor", "admin"}
OPERATORS = {"operator", "admin"}
ADMINS = {"admin"}
ACCESS_EDITORS = {"access-editor", "admin"}
EVERYBODY = set(ROLES)


@dataclass(frozen=True)
class Row:
    """One verb of one path: which roles in `prod` may use it, and a request that then is not refused."""

    route: str
    verb: str
    path: str
    allowed: frozenset[str]
    body: object = None
    scoped: bool = True  # False: without an environment in it; a role in any one lets you in


RESOURCE = "environments/<part:environment_key>/resources/<type:type>/<rest:name>"
NOT_THERE = uuid.UUID(int=0)


def rows() -> Iterator[Row]:
    def row(route: str, verb: str, path: str, allowed: set[str], body: object = None, *, scoped: bool = True) -> Row:
        return Row(route, verb, path, frozenset(allowed), body, scoped)

    yield row("environments", "GET", "environments", EVERYBODY, scoped=False)
    yield row("environments/<part:environment_key>", "GET", "environments/prod", EVERYBODY)
    yield row("environments/<part:environment_key>", "PATCH", "environments/prod", OPERATORS, {"hold": "x"})
    yield row("environments/<part:environment_key>", "DELETE", "environments/prod", ADMINS)
    yield row("environments/<part:environment_key>/resources", "GET", "environments/prod/resources", EVERYBODY)
    yield row("environments/<part:environment_key>/graph", "GET", "environments/prod/graph", EVERYBODY)
    yield row(RESOURCE, "GET", "environments/prod/resources/cluster/pay", EVERYBODY)
    yield row(RESOURCE, "PUT", "environments/prod/resources/cluster/pay", EDITORS, cluster())
    yield row(RESOURCE, "PATCH", "environments/prod/resources/cluster/pay", EDITORS, {"labels": {"team": "pay"}})
    yield row(RESOURCE, "DELETE", "environments/prod/resources/cluster/pay", EDITORS)
    named = {"resources": [{"type": "cluster", "name": "pay"}]}
    many = "environments/<part:environment_key>/resources/bulk"
    yield row(many, "POST", "environments/prod/resources/bulk", EDITORS, {"act": "delete", **named})
    out = {"act": "quarantine", "reason": "r", **named}
    yield row(
        "environments/<part:environment_key>/quarantines", "POST", "environments/prod/quarantines", OPERATORS, out
    )
    yield row(f"{RESOURCE}/revisions", "GET", "environments/prod/resources/cluster/pay/revisions", EVERYBODY)
    yield row(f"{RESOURCE}/clients", "GET", "environments/prod/resources/cluster/pay/clients", EVERYBODY)
    restore = f"{RESOURCE}/revisions/<int:revision>/restore"
    yield row(restore, "POST", "environments/prod/resources/cluster/pay/revisions/1/restore", EDITORS)
    yield row(
        "environments/<part:environment_key>/apply", "POST", "environments/prod/apply", EDITORS, {"resources": []}
    )
    yield row("environments/<part:environment_key>/series", "GET", "environments/prod/series", EVERYBODY)
    yield row("environments/<part:environment_key>/rollouts", "GET", "environments/prod/rollouts", EVERYBODY)
    sets = "environments/<part:environment_key>/change-sets"
    yield row(sets, "GET", "environments/prod/change-sets", EVERYBODY)
    yield row(sets, "POST", "environments/prod/change-sets", EDITORS | ACCESS_EDITORS, {"title": "t"})
    secret = "environments/<part:environment_key>/rollout-webhook-secret"
    yield row(secret, "POST", "environments/prod/rollout-webhook-secret", ADMINS)
    yield row("environments/<part:environment_key>/snapshots", "GET", "environments/prod/snapshots", EVERYBODY)
    yield row("environments/<part:environment_key>/diff", "GET", "environments/prod/diff?from=live", EVERYBODY)
    yield from access_rows(row)
    yield from change_rows(row)
    yield row("validate", "POST", "validate", EVERYBODY, [cluster()], scoped=False)
    yield row("clients", "GET", "clients", EVERYBODY, scoped=False)
    yield row("views", "GET", "views", EVERYBODY, scoped=False)
    yield row("explain", "GET", "explain?environment=prod&type=cluster&name=pay", EVERYBODY)
    yield row("incidents", "GET", "incidents", EVERYBODY, scoped=False)
    yield row("comments", "GET", "comments?environment=prod&resource=cluster/pay", EVERYBODY)
    yield row("ticket-links", "GET", "ticket-links", EVERYBODY, scoped=False)
    yield row("tokens", "GET", "tokens", EVERYBODY, scoped=False)
    yield row("search", "GET", "search?q=pay&kind=client", EVERYBODY, scoped=False)
    yield row("whoami", "GET", "whoami", EVERYBODY, scoped=False)
    yield row("notifications", "GET", "notifications", EVERYBODY, scoped=False)
    yield row("client-tokens", "GET", "client-tokens", EVERYBODY, scoped=False)
    yield row("audit", "GET", "audit", EVERYBODY, scoped=False)
    yield row("bootstrap/<slug:family>", "GET", "bootstrap/envoy?environment=prod&node_id=p-1", EVERYBODY)
    yield row("schema/", "GET", "schema/", EVERYBODY, scoped=False)
    yield row("schema/ui/", "GET", "schema/ui/", EVERYBODY, scoped=False)


def change_rows(row: Callable[..., Row]) -> Iterator[Row]:
    yield row("changes", "GET", "changes", EVERYBODY, scoped=False)
    yield row("changes/<uuid:change_id>", "GET", "changes/{change}", EVERYBODY)
    yield row("changes/<uuid:change_id>/convergence", "GET", "changes/{change}/convergence", EVERYBODY)
    undo = "changes/<uuid:change_id>/undo"
    yield row(undo, "POST", "changes/{change}/undo", EDITORS | OPERATORS, {"reason": "r"})  # it wrote resources


def route_case_rows(row: Callable[..., Row]) -> Iterator[Row]:
    here, there = "environments/<part:environment_key>/requests/cases", "environments/prod/requests/cases"
    case: object = {"name": "new", "authority": "shop.example", "expect": {"answer": "refused"}}
    test = {
        "test_name": "t",
        "input": {"authority": "a", "path": "/", "method": "GET"},
        "validate": {"cluster_name": "c"},
    }
    yield row(here, "GET", there, EVERYBODY)
    yield row(here, "POST", there, EDITORS, case)
    for verb, who, body in (("GET", EVERYBODY, None), ("PATCH", EDITORS, {"note": "n"}), ("DELETE", EDITORS, None)):
        yield row(f"{here}/<int:route_case_id>", verb, f"{there}/{{route_case}}", who, body)
    yield row(f"{here}/apply", "POST", f"{there}/apply", EDITORS, {"cases": [case]})
    yield row(f"{here}/import", "POST", f"{there}/import", EDITORS, [test])
    yield row(f"{here}/run", "POST", f"{there}/run", EVERYBODY, {})


def access_rows(row: Callable[..., Row]) -> Iterator[Row]:
    here, prod = "environments/<part:environment_key>", "environments/prod"
    group: object = {"key": "edge", "matchers": [{"node_id": "e-*"}], "trust": "declared"}
    rule: object = {"pattern": "pay*", "effect": "hide"}
    case = {"node_id": "n", "type": "cluster", "name": "pay", "expect": "deny"}
    yield row(f"{here}/client-groups", "GET", f"{prod}/client-groups", EVERYBODY)
    yield row(f"{here}/client-groups", "POST", f"{prod}/client-groups", ACCESS_EDITORS, group)
    yield row(f"{here}/client-groups/<part:group_key>", "GET", f"{prod}/client-groups/all", EVERYBODY)
    for verb, body in (("PUT", group), ("PATCH", {"trust": "declared"}), ("DELETE", None)):
        path = f"{prod}/client-groups/all"
        yield row(f"{here}/client-groups/<part:group_key>", verb, path, ACCESS_EDITORS, body)
    yield row(f"{here}/rules", "GET", f"{prod}/rules", EVERYBODY)
    yield row(f"{here}/rules", "POST", f"{prod}/rules", ACCESS_EDITORS, rule)
    yield row(f"{here}/rules/<int:rule_id>", "GET", f"{prod}/rules/{{rule}}", EVERYBODY)
    for verb, body in (("PUT", rule), ("PATCH", {"enabled": False}), ("DELETE", None)):
        yield row(f"{here}/rules/<int:rule_id>", verb, f"{prod}/rules/{{rule}}", ACCESS_EDITORS, body)
    yield row(f"{here}/access/test", "POST", f"{prod}/access/test", EVERYBODY, {"cases": [case]})
    way = {"authority": "shop.example"}
    yield row(f"{here}/requests/explain", "POST", f"{prod}/requests/explain", EVERYBODY, way)
    yield from route_case_rows(row)
    yield row(f"{here}/access/cases", "GET", f"{prod}/access/cases", EVERYBODY)
    yield row(f"{here}/access/cases", "POST", f"{prod}/access/cases", ACCESS_EDITORS, case)
    yield row(f"{here}/access/cases/<int:case_id>", "DELETE", f"{prod}/access/cases/{{case}}", ACCESS_EDITORS)
    yield row(f"{here}/access/review", "GET", f"{prod}/access/review", EVERYBODY)
    yield row(f"{here}/access/history", "GET", f"{prod}/access/history", EVERYBODY)


# Needs a role everywhere, or something that only some of these callers could have made; each has tests of its own.
ELSEWHERE = {
    ("environments", "POST"): "test_create_environment__role_in_one_environment__403",
    ("tokens", "POST"): "tests/api/test_tokens.py",
    ("tokens/<int:token_id>", "DELETE"): "tests/api/test_tokens.py",
    ("client-tokens", "POST"): "tests/api/test_client_tokens.py",
    ("client-tokens/<int:token_id>", "DELETE"): "tests/api/test_client_tokens.py",
    ("environments/<part:environment_key>/snapshots/<int:epoch>", "GET"): "tests/api/test_facts.py",
    ("environments/<part:environment_key>/snapshots/<int:epoch>/resources", "GET"): "tests/api/test_history.py",
    ("environments/<part:environment_key>/rollback", "POST"): "tests/api/test_history.py",
    ("clients/<slug:client_id>", "GET"): "tests/api/test_facts.py",
    ("clients/<slug:client_id>", "PATCH"): "tests/api/test_facts.py",
    ("environments/<part:environment_key>/clients/bulk", "POST"): "tests/api/test_facts.py",  # needs a client
    ("clients/<slug:client_id>/subscriptions", "GET"): "tests/api/test_facts.py",
    ("clients/<slug:client_id>/resources", "GET"): "tests/api/test_holdings.py",
    ("clients/<slug:client_id>/said", "GET"): "tests/api/test_words.py",
    ("clients/<slug:client_id>/said", "POST"): "tests/api/test_words.py",
    **{("comments/<uuid:comment_id>", verb): "tests/api/test_comments.py" for verb in ("GET", "PATCH", "DELETE")},
    ("comments", "POST"): "tests/api/test_comments.py",
    ("views", "POST"): "tests/api/test_saved_views.py",
    **{("views/<uuid:view_id>", verb): "tests/api/test_saved_views.py" for verb in ("GET", "PATCH", "DELETE")},
    ("ticket-links", "POST"): "tests/api/test_comments.py",
    ("ticket-links/<int:link_id>", "DELETE"): "tests/api/test_comments.py",
    ("incidents/<slug:incident_id>", "GET"): "tests/api/test_facts.py",
    ("incidents/<slug:incident_id>", "PATCH"): "tests/api/test_facts.py",
    ("incidents/<slug:incident_id>/quarantine", "POST"): "tests/api/test_facts.py",
    **{
        (f"incidents/<slug:incident_id>/{act}", "POST"): "tests/api/test_facts.py"
        for act in ("assign", "mute", "unmute")
    },
    ("incidents/<slug:incident_id>/release", "POST"): "tests/api/test_facts.py",
    ("environments/<part:environment_key>/rehearsals", "POST"): "tests/api/test_rehearsals.py",
    ("rollouts/<uuid:rollout_id>", "GET"): "tests/api/test_rollouts.py",
    ("rollouts/<uuid:rollout_id>/clients", "GET"): "tests/api/test_rollouts.py",
    **{
        (f"rollouts/<uuid:rollout_id>/{act}", "POST"): "tests/api/test_rollouts.py"
        for act in ("advance", "pause", "resume", "approve", "reject", "abort")
    },
    **{
        ("change-sets/<uuid:change_set_id>", verb): "tests/api/test_change_sets.py"
        for verb in ("GET", "PATCH", "DELETE")
    },
    **{
        (f"change-sets/<uuid:change_set_id>/{act}", "POST"): "tests/api/test_change_sets.py"
        for act in ("submit", "approve", "reject", "publish", "schedule", "cancel", "comment")
    },
    ("channels", "GET"): "tests/api/test_notifications.py",
    ("channels", "POST"): "tests/api/test_notifications.py",
    ("channels/<uuid:channel_id>", "GET"): "tests/api/test_notifications.py",
    ("channels/<uuid:channel_id>", "PATCH"): "tests/api/test_notifications.py",
    ("channels/<uuid:channel_id>", "DELETE"): "tests/api/test_notifications.py",
    ("channels/<uuid:channel_id>/deliveries", "GET"): "tests/api/test_notifications.py",
    ("channels/<uuid:channel_id>/test", "POST"): "tests/api/test_notifications.py",
    ("channels/<uuid:channel_id>/pause", "POST"): "tests/api/test_notifications.py",
    ("channels/<uuid:channel_id>/resume", "POST"): "tests/api/test_notifications.py",
    ("environments/<part:environment_key>/tail", "GET"): "tests/api/test_tail.py",  # needs a broker
    ("errors/<slug:code>", "GET"): "open to all",
}


OPEN_WITH_LIMITS = {
    ("environments/<part:environment_key>/resources", "GET"),
    (RESOURCE, "GET"),
    (RESOURCE, "PUT"),
    (RESOURCE, "PATCH"),
    (RESOURCE, "DELETE"),
    ("environments/<part:environment_key>/resources/bulk", "POST"),
    (f"{RESOURCE}/revisions", "GET"),
    (f"{RESOURCE}/revisions/<int:revision>/restore", "POST"),
    ("environments/<part:environment_key>/apply", "POST"),
    ("changes/<uuid:change_id>", "GET"),
    ("changes/<uuid:change_id>/undo", "POST"),
}
"""What somebody may use who has roles with limits only; what has no environment in its path is open to all, and tells
them nothing of one."""
LIMITED = Scope(Role.EDITOR, "prod", (Limit(types=("cluster", "route"), names=("pay*",)),))


def view_of(pattern: URLPattern) -> type[ApiView]:
    found: type[ApiView] = getattr(pattern.callback, "cls")  # noqa: B009  DRF's attribute of a function
    return found


def routes() -> Iterator[tuple[str, str, Role | OnSome | Needs]]:
    for pattern in urls.urlpatterns:
        for verb, need in view_of(pattern).needs.items():
            yield str(pattern.pattern), verb, need


def sample_path(route: str) -> str:
    values = {
        "environment_key": "prod",
        "type": "cluster",
        "name": "pay",
        "change_id": str(NOT_THERE),
        "channel_id": str(NOT_THERE),
        "rollout_id": str(NOT_THERE),
        "change_set_id": str(NOT_THERE),
        "comment_id": str(NOT_THERE),
        "view_id": str(NOT_THERE),
        "family": "envoy",
        "code": "XDS1000",
    }
    parts = []
    for part in route.split("/"):
        name = part.strip("<>").rpartition(":")[2]
        parts.append(values.get(name, "1") if part.startswith("<") else part)
    return "/".join(parts)


def test_matrix__names_every_path_and_verb_of_the_url_configuration() -> None:
    known = {(row.route, row.verb) for row in rows()} | ELSEWHERE.keys()

    assert {(route, verb) for route, verb, _need in routes()} == known
    assert all(issubclass(view_of(pattern), ApiView) for pattern in urls.urlpatterns)


def test_views__without_a_word_on_a_verb__do_not_answer_it() -> None:
    for pattern in urls.urlpatterns:
        view = view_of(pattern)
        handlers = {verb for verb in VERBS if hasattr(view, verb.lower())}
        assert handlers == set(view.needs), view


@pytest.mark.parametrize(("route", "verb", "need"), list(routes()), ids=str)
def test_every_path__without_a_credential__401(
    nobody: Caller, route: str, verb: str, need: Role | OnSome | Needs
) -> None:
    answer = nobody(verb, sample_path(route), {} if verb in ("POST", "PUT", "PATCH") else None)

    if need is Needs.NOBODY:
        assert answer.status == 200
    else:
        assert_problem(answer, 401, "XDS3001")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.fixture
def change(environments: None) -> str:
    edits = [Put(parsed(cluster()))]
    return change_apply(environment_key="prod", edits=edits, actor=SYSTEM).change_id


@pytest.fixture
def made(change: str) -> dict[str, str]:
    """What the paths of the table are about, by the words that stand for it."""
    group = GroupDraft("all", (Selector(node_id="*"),), Trust.DECLARED)
    group_create(environment_key="prod", draft=group, actor=SYSTEM)
    rule = rule_create(environment_key="prod", draft=RuleDraft(Effect.DENY, "pay"), actor=SYSTEM)
    case = Case(ClientFacts(node_id="n"), "cluster", "pay", Effect.DENY)
    saved = case_create(environment_key="prod", case=case, blocking=False, actor=SYSTEM)
    draft = RouteCaseDraft("kept", Request("shop.example"), Expected(Answer.REFUSED))
    kept = route_case_create(environment_key="prod", draft=draft, actor=SYSTEM)
    return {"change": change, "rule": str(rule.id), "case": str(saved.id), "route_case": str(kept.id)}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("row", list(rows()), ids=lambda row: f"{row.verb} {row.path}")
def test_path__role_in_its_environment__as_the_table_says(
    as_role: Callable[[str, str | None], Caller], made: dict[str, str], row: Row, role: str
) -> None:
    answer = as_role(role, "prod")(row.verb, row.path.format(**made), row.body)

    if role in row.allowed:
        assert answer.status < 300 or answer.status == 409, answer.content  # 409: no node id leads to `prod`
    else:
        assert_problem(answer, 403, "XDS3003")
        assert "prod" in answer.json["detail"]


def test_views__open_to_limited_roles__are_those_of_the_table() -> None:
    known = {(way, verb) for way, verb, need in routes() if isinstance(need, OnSome)}

    assert known == {each for each in OPEN_WITH_LIMITS if not each[0].startswith("changes/")}


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: f"{row.verb} {row.path}")
def test_path__limits_alone__open_as_the_table_says_and_else_refused(made: dict[str, str], row: Row) -> None:
    asker = caller(LIMITED)

    answer = asker(row.verb, row.path.format(**made), row.body)

    if (row.route, row.verb) in OPEN_WITH_LIMITS:
        assert answer.status < 300 or answer.status == 409, answer.content
    elif not row.scoped:
        assert answer.status == 200
        assert b"prod" not in answer.content or row.path in ("schema/", "schema/ui/", "validate", "whoami")
    else:
        assert_problem(answer, 403, "XDS3003")
        assert "prod" in answer.json["detail"]


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: f"{row.verb} {row.path}")
def test_path__sees_all_and_edits_within_limits__reads_all_and_writes_no_more(made: dict[str, str], row: Row) -> None:
    asker = caller(Scope(Role.VIEWER, "prod"), LIMITED)

    answer = asker(row.verb, row.path.format(**made), row.body)

    proposes = (row.route, row.verb) == ("environments/<part:environment_key>/change-sets", "POST")
    if "viewer" in row.allowed or (row.route, row.verb) in OPEN_WITH_LIMITS or proposes:
        assert answer.status < 300 or answer.status == 409, answer.content
    else:
        assert_problem(answer, 403, "XDS3003")


@pytest.mark.parametrize("row", [row for row in rows() if row.scoped], ids=lambda row: f"{row.verb} {row.path}")
def test_path__role_in_another_environment__404_as_if_it_did_not_exist(
    as_role: Callable[[str, str | None], Caller], made: dict[str, str], row: Row
) -> None:
    stranger = as_role("admin", "default")

    answer = stranger(row.verb, row.path.format(**made), row.body)
    absent = stranger(row.verb, row.path.format(**{**made, "change": NOT_THERE}).replace("prod", "never"), row.body)

    assert_problem(answer, 404, "XDS3004")
    swapped = answer.json["detail"].replace("prod", "never").replace(made["change"], str(NOT_THERE))
    assert (absent.status, absent.json["detail"]) == (404, swapped)


def test_lists__role_in_one_environment__show_nothing_of_the_other(
    as_role: Callable[[str, str | None], Caller], change: str
) -> None:
    stranger = as_role("viewer", "default")

    shown = [stranger.get(path).content for path in ("environments", "audit", "tokens", "clients", "incidents")]

    assert b"prod" not in b"".join(shown)
    assert_problem(stranger.get("audit?environment=prod"), 404)
    assert_problem(stranger.get("clients?environment=prod"), 404)
    assert_problem(stranger.get("incidents?environment=prod"), 404)


def test_create_environment__role_in_one_environment__403(as_role: Callable[[str, str | None], Caller]) -> None:
    assert_problem(as_role("admin", "prod").post("environments", {"key": "new"}), 403)
    assert_problem(as_role("operator", None).post("environments", {"key": "new"}), 403)
    assert as_role("admin", None).post("environments", {"key": "new"}).status == 201


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        "Bearer a b",
        "Bearer unknown",
        "parley_x",
        "Bearer x, Bearer y",
        f"Bearer {'x' * 5000}",
        "Bearer \xe9",
    ],
)
def test_token__that_is_none__401(environments: None, header: str) -> None:
    answer = Client().get(f"{PREFIX}environments", headers={"Authorization": header})

    assert answer.status_code == 401
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert b"unknown, expired or revoked" in answer.content or b"not one bearer token" in answer.content


def test_token__revoked__401(environments: None) -> None:
    token, plaintext = api_token_create(name="t", scopes=(Scope(Role.VIEWER, None),), actor=SYSTEM)
    assert Caller(plaintext).get("environments").status == 200

    api_token_revoke(token=token, actor=SYSTEM)

    assert_problem(Caller(plaintext).get("environments"), 401)


@pytest.fixture
def browser(environments: None) -> Client:
    get_user_model().objects.create_superuser("dana", password="a long password")
    client = Client(enforce_csrf_checks=True)
    assert client.login(username="dana", password="a long password")
    return client


def test_session__of_an_administrator__reads(browser: Client) -> None:
    assert browser.get(f"{PREFIX}environments").status_code == 200


def test_session__write_without_the_csrf_token__403_and_nothing_stored(browser: Client) -> None:
    before = Change.objects.count()

    answer = browser.post(f"{PREFIX}environments", {"key": "new"}, content_type="application/json")

    assert answer.status_code == 403
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert Change.objects.count() == before


def test_session__write_with_the_csrf_token__is_done(browser: Client) -> None:
    browser.cookies["csrftoken"] = "a" * 32

    answer = browser.post(
        f"{PREFIX}environments", {"key": "new"}, content_type="application/json", headers={"X-CSRFToken": "a" * 32}
    )

    assert answer.status_code == 201


def test_session__of_somebody_without_a_role__sees_nothing(environments: None) -> None:
    users: Any = get_user_model()
    users.objects.create_user("eve", password="a long password")
    client = Client()
    client.login(username="eve", password="a long password")

    assert client.get(f"{PREFIX}environments").json()["results"] == []
    assert client.get(f"{PREFIX}environments/prod").status_code == 404
    users.objects.filter(username="eve").update(is_active=False)
    assert client.get(f"{PREFIX}environments").status_code == 401
