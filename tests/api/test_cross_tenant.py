"""Two environments that know nothing of each other: every path of the URL configuration, every verb, three roles by
token and by session, every filter, and every error text (reliability S3, threat 22).

A word that no request ever holds is in everything of `default`; a stranger with roles in `prod` must never read it, nor
one who may edit some resources of `default` itself, none of which has it. The paths come from the URL configuration
itself, so that a new one is included, or fails for want of a value to try.
"""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from controlplane.accounts.models import ApiToken, ClientToken, RoleGrant
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.accounts.services import api_token_create
from controlplane.api.examples import examples
from controlplane.api.views.schema import schema
from controlplane.catalog.models import Change, Environment
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.clients.models import Report
from controlplane.common.limits import Limit
from controlplane.database.aliases import READER
from controlplane.explain import beliefs
from controlplane.incidents.services import digest
from controlplane.notify.models import Channel
from tests.api.conftest import PREFIX, Caller, caller, signed_in
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import TYPE, cluster
from tests.support.principals import somebody
from tests.support.rollouts import rollout_begun

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

CANARY = "kanari"
VERBS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
ROLES = ("viewer", "operator", "admin")
LIMITED = "editor of other resources"
OTHERS = Limit(types=("cluster", "route"), names=("zebra*",))
# What the queries of pages hold; those of the API are documented.
PAGE_FILTERS = {"q", "e", "t", "n", "page", "sort", "environment", "type", "name", "owner", "client", "state"}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Everything of `default` that a path can name. All of it is the canary's, but for what stands in paths."""
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    owner = caller(*ADMIN_SCOPES)
    base = "environments/default"
    fleet = Fleet(2)
    publish(cluster("pay", alt_stat_name=CANARY))
    fleet.accept(held("pay", 1))
    digest()
    publish(cluster("pay", alt_stat_name=CANARY, connect_timeout="2s"))
    fleet.refuse(fleet.send(held("pay", 2)), f"cluster(s) pay: {CANARY}", suspects=(held("pay", 2),), who=slice(2))
    digest()
    applied = owner.post(
        f"{base}/apply",
        {"resources": [cluster(f"{CANARY}-2")], "message": CANARY, "owner": CANARY},
    ).json
    group = owner.post(f"{base}/client-groups", {"key": "g", "matchers": [{"node_id": CANARY}], "trust": "declared"})
    rule = owner.post(
        f"{base}/rules",
        {
            "position": 10,
            "client_groups": ["g"],
            "types": [],
            "pattern": f"{CANARY}-*",
            "effect": "deny",
            "message": CANARY,
            "enabled": True,
        },
    )
    token = owner.post("tokens", {"name": CANARY, "scopes": [{"role": "viewer", "environment": "default"}]}).json
    client_token = owner.post("client-tokens", {"subject": CANARY, "environment": "default"}).json
    assert (group.status, rule.status) == (201, 201), (group.content, rule.content)
    channel = owner.post(
        "channels",
        {"name": CANARY, "kind": "mail", "target": f"{CANARY}@example.com", "environments": ["default"]},
    )
    assert channel.status == 201, channel.content
    user = get_user_model().objects.create_user(CANARY)
    people = Group.objects.create(name=CANARY)
    RoleGrant.objects.create(user=user, role="viewer", environment="default")
    incident = owner.get("incidents").json["results"][0]
    clients = owner.get("clients").json["results"]
    monkeypatch.setattr(beliefs, "SETTLED_AFTER", timedelta(minutes=-1))  # nothing counts as having just moved
    said = {"type": "cluster", "name": f"{CANARY}-x", "state": "ACKED", "held": True, "error": CANARY}
    told = owner.post(f"clients/{clients[0]['id']}/said", {"source": "csds", "types": ["cluster"], "names": [said]})
    assert CANARY in told.content.decode()
    dana = somebody(CANARY, ADMIN_SCOPES)
    rollout = rollout_begun(cluster("pay", alt_stat_name=CANARY, connect_timeout="7s"), actor=dana, message=CANARY)
    assert CANARY in owner.get(f"rollouts/{rollout}").content.decode()
    proposed = owner.post(
        f"{base}/change-sets",
        {"title": CANARY, "message": CANARY, "resources": [cluster("pay", alt_stat_name=CANARY)]},
    ).json["id"]
    published = owner.post(f"{base}/change-sets", {"title": CANARY, "resources": [cluster(f"{CANARY}-3")]}).json["id"]
    assert owner.post(f"change-sets/{published}/publish", {"reason": CANARY}).status == 202
    assert owner.post(f"change-sets/{proposed}/comment", {"reason": CANARY}).status == 200
    owner.patch(base, {"hold": CANARY, "node_ids": [f"{CANARY}*"], "selectors": [{"identity": f"{CANARY}*"}]})
    assert CANARY in owner.get(base).content.decode()
    comment = owner.post("comments", {"environment": "default", "resource": "cluster/pay", "text": CANARY}).json["id"]
    link = {"form": f"{CANARY}-{{number}}", "url": "https://example.com/{number}", "environment": "default"}
    link_id = owner.post("ticket-links", link).json["id"]
    assert owner.post(f"incidents/{incident['id']}/assign", {"person": CANARY}).json["assignee"] == CANARY
    assert owner.post(f"incidents/{incident['id']}/mute", {"until": "1h", "reason": CANARY}).status == 200
    case = {
        "name": CANARY,
        "authority": CANARY,
        "path": f"/{CANARY}",
        "expect": {"cluster": CANARY, "answer": "routed"},
    }
    query = f"name={CANARY}"
    view = owner.post(
        "views", {"environment": "default", "list": "resources", "name": CANARY, "query": query, "shared": True}
    ).json["id"]
    route_case = owner.post(f"{base}/requests/cases", case | {"note": CANARY}).json
    return {
        "environment_key": ["default"],
        "comment_id": [comment],
        "view_id": [view],
        "link_id": [str(link_id)],
        "type": ["cluster"],
        "name": ["pay"],
        "revision": ["1"],
        "epoch": ["1", "2"],
        "listed": ["resources", "audit"],
        "change_id": [applied["id"], rule.json["change"]],
        "client_id": [each["id"] for each in clients],
        "incident_id": [incident["id"]],
        "channel_id": [channel.json["id"]],
        "rollout_id": [rollout],
        "change_set_id": [proposed, published],
        "token_id": [str(token["id"]), str(client_token["id"])],
        "user_id": [str(user.pk)],
        "group_id": [str(people.pk)],
        "token": ["x"],
        "group_key": ["g"],
        "rule_id": [str(rule.json["id"])],
        "case_id": ["1"],
        "route_case_id": [str(route_case["id"])],
        "family": ["grpc", "envoy"],
        "code": ["XDS1000"],
    }


def paths(known: dict[str, list[str]]) -> Iterator[str]:
    """Every path of the root URL configuration, with the first and the last of the values that each of its parts can
    have.
    """
    for route in _routes(get_resolver()):
        names = re.findall(r"<(?:\w+:)?(\w+)>", route)
        for index in (0, -1):
            path = route
            for name in names:
                path = re.sub(rf"<(?:\w+:)?{name}>", known[name][index], path)
            yield f"/{path}"
            if path.startswith("e/"):
                yield f"/{path}?type=cluster&name=pay&from=1&to=2"  # what pages are about stands in their questions


def _routes(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    for entry in resolver.url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLPattern):
            yield route
        else:
            yield from _routes(entry, route)


def strangers(role: str) -> Iterator[Client]:
    """Somebody with this role in `prod` and nothing else, or who edits `OTHERS` in `default`: by token, and signed
    in.
    """
    limited = Scope(Role.EDITOR, "default", (OTHERS,))
    scope = limited if role == LIMITED else Scope(Role(role), "prod")
    _row, token = api_token_create(name="stranger", scopes=(scope,), actor=SYSTEM)
    yield Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False)
    users: Any = get_user_model()
    user = users.objects.create_user("mallory")
    within = "".join(limit.text for limit in scope.limits)
    RoleGrant.objects.create(user=user, role=scope.role.value, environment=scope.environment or "", within=within)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    yield client


@pytest.mark.slow
@pytest.mark.parametrize("role", [*ROLES, LIMITED])
def test_every_path_and_verb__of_another_environment__shows_nothing_of_it(
    known: dict[str, list[str]], role: str
) -> None:
    tried, leaks = 0, []
    wanted = sorted(set(paths(known)) - {"/logout"})
    for client in strangers(role):
        for path in wanted:
            for verb in VERBS if "?" not in path else ("GET", "POST"):
                answer = client.generic(verb, path, b"{}", content_type="application/json")
                tried += 1
                body = b"".join(answer) if answer.streaming else answer.content
                assert answer.status_code < 500, (verb, path, body[:300])
                if CANARY in body.decode(errors="replace") + str(dict(answer.headers)):
                    leaks.append((verb, path))

    assert leaks == []
    assert tried > 500


def filters(path: str) -> set[str]:
    """The names that a query of this path can hold, as documented; of a page, what pages know."""
    documented = schema()["paths"].get(path)
    if documented is None:
        return PAGE_FILTERS
    parameters = documented.get("get", {}).get("parameters", ())
    return {each["name"] for each in parameters if each["in"] == "query"} - {"wait"}


def test_every_list__with_every_filter__shows_nothing_of_another_environment(known: dict[str, list[str]]) -> None:
    by_token, signed_in = strangers("admin")  # the most that anybody can be in `prod`
    values = ("default", "pay", known["client_id"][0])
    # What matches things of `default` by something other than its environment.
    whole = ["", "e=default&t=cluster&n=pay", "environment=default&client=node-1&type=cluster&name=pay"]
    whole += ["limit=100", "verb=change.saved", "node_id=node-1", "state=open", "connected=true", "manifests=true"]
    tried, leaks = 0, []
    for route in _routes(get_resolver()):
        path = "/" + re.sub(r"<\w+:environment_key>", "prod", route)
        if "<" in path:
            continue
        client = by_token if path.startswith("/api/") else signed_in
        named = filters("/" + re.sub(r"<\w+:(\w+)>", r"{\1}", route))
        known_here = (query for query in whole if set(re.findall(r"(\w+)=", query)) <= named)
        tried_here = values if client is by_token else values[1:2]
        for query in (*known_here, *(f"{name}={value}" for name in sorted(named) for value in tried_here)):
            answer = client.get(f"{path}?{query}", headers={"Accept": "application/yaml, application/json"})
            tried += 1
            body = b"".join(answer) if answer.streaming else answer.content
            if CANARY in body.decode(errors="replace"):
                leaks.append(f"{path}?{query}")

    assert leaks == []
    assert tried > 200


def test_every_body__that_names_things_of_another_environment__is_refused_and_tells_nothing(
    known: dict[str, list[str]],
) -> None:
    stranger = caller(Scope(Role.ADMIN, "prod"))
    base = "environments/prod"
    virtual_host = {"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "pay"}}]}
    refers = {"@type": f"{TYPE}envoy.config.route.v3.RouteConfiguration", "name": "r", "virtual_hosts": [virtual_host]}
    rule = {"position": 10, "client_groups": ["g"], "pattern": "*", "effect": "allow", "types": []}
    channel = {"name": "c", "kind": "mail", "target": "c@example.com"}
    attempts: list[tuple[str, str, object]] = [
        ("POST", "tokens", {"name": "t", "scopes": [{"role": "viewer", "environment": "default"}]}),
        ("POST", "tokens", {"name": "t", "scopes": [{"role": "viewer", "environment": None}]}),
        ("POST", "client-tokens", {"subject": "s", "environment": "default"}),
        ("POST", "client-tokens", {"subject": "s", "environment": None}),
        ("POST", "channels", {**channel, "environments": ["default"]}),
        ("POST", "channels", {**channel, "environments": []}),
        ("POST", "environments", {"key": "default"}),
        ("POST", f"{base}/rules", rule),
        ("PUT", f"{base}/rules/{known['rule_id'][0]}", rule),
        ("PATCH", f"{base}/client-groups/g", {"trust": "verified"}),
        ("POST", f"{base}/apply?strict=true", {"resources": [refers], "message": "m"}),
        ("POST", f"{base}/apply", {"resources": [], "delete": [{"type": "cluster", "name": "pay"}], "message": "m"}),
        ("POST", f"{base}/rollback", {"to_epoch": 2, "reason": "r", "hold": False}),
        ("POST", f"changes/{known['change_id'][0]}/undo", {"reason": "r"}),
        ("PATCH", f"change-sets/{known['change_set_id'][0]}", {"title": "t"}),
        ("DELETE", f"change-sets/{known['change_set_id'][0]}", None),
        *(
            ("POST", f"change-sets/{known['change_set_id'][0]}/{act}", {"reason": "r"})
            for act in ("submit", "approve", "reject", "publish", "schedule", "cancel", "comment")
        ),
        ("POST", f"incidents/{known['incident_id'][0]}/quarantine", {"reason": "r"}),
        ("PATCH", f"incidents/{known['incident_id'][0]}", {"state": "ignored"}),
        ("GET", "comments?environment=default&resource=cluster/pay", None),
        ("GET", f"comments?incident={known['incident_id'][0]}", None),
        ("POST", "comments", {"environment": "default", "resource": "cluster/pay", "text": "t"}),
        ("POST", "comments", {"incident": known["incident_id"][0], "text": "t"}),
        ("POST", "comments", {"change": known["change_id"][0], "text": "t"}),
        ("PATCH", f"comments/{known['comment_id'][0]}", {"text": "t"}),
        ("DELETE", f"comments/{known['comment_id'][0]}", None),
        ("DELETE", f"ticket-links/{known['link_id'][0]}", None),
        ("POST", "ticket-links", {"form": "#{number}", "url": "https://e.example/{number}", "environment": "default"}),
        ("POST", f"incidents/{known['incident_id'][0]}/assign", {"person": None}),
        ("POST", f"incidents/{known['incident_id'][0]}/mute", {"until": "1h", "reason": "r"}),
        ("POST", f"incidents/{known['incident_id'][0]}/unmute", None),
        ("POST", f"{base}/resources/cluster/pay/revisions/1/restore", None),
        ("PATCH", f"{base}/resources/cluster/pay", {"labels": {"team": "t"}}),
        ("POST", f"{base}/resources/bulk", {"act": "labels", "select": {"name": "a"}, "labels": {"team": "t"}}),
        ("POST", f"{base}/quarantines", {"act": "quarantine", "select": {"name": "a"}, "reason": "r"}),
        ("GET", f"{base}/diff?from=1&to=2", None),
        ("POST", f"clients/{known['client_id'][0]}/said", {"source": "csds", "types": ["cluster"], "names": []}),
        ("PATCH", f"views/{known['view_id'][0]}", {"name": "n", "default": True}),
        ("DELETE", f"views/{known['view_id'][0]}", None),
        ("POST", "views", {"environment": "default", "list": "resources", "name": "n", "query": ""}),
        ("PATCH", f"clients/{known['client_id'][0]}", {"labels": {"team": "t"}}),
        (
            "POST",
            f"{base}/clients/bulk",
            {"act": "labels", "clients": [known["client_id"][0]], "labels": {"team": "t"}},
        ),
        ("GET", "explain?environment=prod&client=node-1&type=cluster&name=pay", None),
        ("POST", f"{base}/requests/explain", {"authority": "shop.example", "client": "node-1"}),
        ("PATCH", f"{base}/requests/cases/{known['route_case_id'][0]}", {"note": "n"}),
        ("PATCH", f"environments/prod/requests/cases/{known['route_case_id'][0]}", {"note": "n"}),
        ("DELETE", f"environments/prod/requests/cases/{known['route_case_id'][0]}", None),
    ]
    before, told = _stored(), []

    for method, path, body in attempts:
        answer = stranger(method, path, body)
        done = answer.status < 400 and answer.content != b'{"changed":false}'
        if done or CANARY in answer.content.decode():
            told.append((method, path, answer.status, answer.content))

    assert told == []
    assert _stored() == before


def _stored() -> tuple[object, ...]:
    """What any of these attempts could have changed."""
    counts = (table.objects.count() for table in (Change, ApiToken, ClientToken, RoleGrant, Channel, Report))
    return (*counts, tuple(Environment.objects.order_by("pk").values_list("key", "generation", "selectors")))


# What answers of `default` are asked for with, beside their paths: files that are taken along.
EXPORTS = (
    "bootstrap/grpc?environment=default&node_id={canary}-1",
    "bootstrap/envoy?environment=default&node_id={canary}-1",
    "environments/default/resources?manifests=true",
    "environments/default/resources?manifests=true&limit=100",
    "environments/default/diff?from=1&to=live&text=true",
    "environments/default/snapshots/1/resources",
    "environments/default/access/history",
    "environments/default/access/review?node_id={canary}-1",
    "audit?environment=default&limit=100",
    "notifications?environment=default",
    "channels",
    "explain?environment=default&client=node-1&type=cluster&name=pay",
)


def requests_of_owner(known: dict[str, list[str]]) -> Iterator[tuple[str, str, object]]:
    """Every GET and POST of the schema as somebody of `default` sends it, and every export."""
    change = known["change_id"][-1]
    fitting = {**known, "change_id": [change], "name": [f"{CANARY}-2"]}
    for path, operations in schema()["paths"].items():
        for verb in operations.keys() & {"get", "post"}:
            template = known["token_id"][-1] if "client-tokens" in path else known["token_id"][0]
            filled = path.replace("{token_id}", template)
            filled = re.sub(r"{(\w+)}", lambda part: fitting[part[1]][0], filled)
            body = examples().get(operations[verb]["operationId"]) if verb == "post" else None
            if operations[verb]["operationId"] == "client_token_create":
                body = {"subject": f"{CANARY}-new", "environment": "default"}
            yield verb.upper(), filled.removeprefix("/api/v1/"), body
    for export in EXPORTS:
        yield "GET", export.format(canary=CANARY), None


def namesakes(role: str) -> Iterator[Client]:
    """A stranger with this role in `prod`: by a token, of the name that the owner's has if it may make any itself, and
    signed in.
    """
    name = "deploy" if role == "admin" else f"deploy-{role}"
    _row, token = api_token_create(name=name, scopes=(Scope(Role(role), "prod"),), actor=SYSTEM)
    yield Caller(token).client
    users: Any = get_user_model()
    user = users.objects.create_user(f"deploy-{role}")
    RoleGrant.objects.create(user=user, role=role, environment="prod")
    yield signed_in(user).client


def test_every_answer__asked_for_again_by_a_namesake_of_another_environment__is_not_told(
    known: dict[str, list[str]],
) -> None:
    """The very request that somebody was answered: same path, body and Idempotency-Key, and the ETag of the answer."""
    owner = Caller(api_token_create(name="deploy", scopes=ADMIN_SCOPES, actor=SYSTEM)[1])
    strangers = [each for role in ROLES for each in namesakes(role)]
    asked = sorted(requests_of_owner(known), key=lambda each: each[0])  # reading before what changes what is read
    tried, kept, leaks, seen = 0, 0, [], set()
    for number, (verb, path, body) in enumerate(asked):
        headers = {"Idempotency_Key": f"key-{number}"} if verb == "POST" else {}
        first = owner(verb, path, body, **headers)
        if CANARY in first.content.decode():
            seen.add(path.partition("?")[0])
        kept += verb == "POST" and first.status < 400
        if verb == "GET" and "ETag" in first.headers:
            headers = {"If_None_Match": first.headers["ETag"]}
        secrets = [first.json[name] for name in ("token", "secret") if verb == "POST" and name in first.json]
        for stranger in strangers:
            sent = json.dumps(body) if body is not None else b""
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            answer = stranger.generic(verb, PREFIX + path, sent, content_type="application/json", headers=names)
            tried += 1
            told = answer.content.decode() + str(answer.headers)
            if (
                CANARY in told
                or any(secret and secret in told for secret in secrets)
                or "Idempotency-Replayed" in answer.headers
                or (answer.status_code == 304 and CANARY in first.content.decode())
            ):
                leaks.append((verb, path, answer.status_code, told[:200]))

    assert leaks == []
    # The owner sees the word everywhere.
    lists = (
        "environments",
        "audit",
        "changes",
        "tokens",
        "client-tokens",
        "incidents",
        "channels",
        "environments/default",
    )
    within = ("resources", "client-groups", "rules", "access/history")
    wanted = {*lists, *(f"environments/default/{each}" for each in within), f"changes/{known['change_id'][-1]}"}
    assert wanted - seen == set()
    assert (len(asked) > 60, kept > 10, tried == 6 * len(asked)) == (True, True, True), (len(asked), kept, tried)
