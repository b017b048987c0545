"""Every way to write, and what connected clients would lose by it: a write that is not in the tables fails.

The pages' own table is in tests/web/test_loss_questions.py; here every form of the console is accounted for.
"""

import inspect
import re
from typing import Any, Final

import pytest

import controlplane.access.cases as access_cases
import controlplane.access.services as access_services
import controlplane.catalog.services as catalog_services
from controlplane.accounts.principal import Role, Scope
from controlplane.api.views.schema import schema
from controlplane.catalog.models import Change
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import Terms, change_apply, quarantine_release
from controlplane.catalog.values import Put
from controlplane.console.urls import urlpatterns as console_paths
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest
from tests.api.conftest import DANA, Caller, caller
from tests.api.losing import CLIENTS, HERE, Made, Write, bulk_delete, bulk_quarantine
from tests.services.incidents.fleet import Fleet, held, publish, rebuild
from tests.support.manifests import cluster, parsed

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


def _deny(api: Caller, pattern: str = "elsewhere", **more: object) -> int:
    rule = {"effect": "deny", "pattern": pattern, "types": ["cluster"], **more}
    made = api.post(f"{HERE}/rules", rule)
    assert made.status == 201, made.json
    number: int = made.json["id"]
    return number


def _group(api: Caller) -> None:
    group = {"key": "edge", "matchers": [{"node_id": "nobody"}], "trust": "declared"}
    assert api.post(f"{HERE}/client-groups", group).status == 201
    _deny(api, "pay", client_groups=["edge"])


def _whole_group(node_id: str) -> dict[str, object]:
    return {"key": "edge", "matchers": [{"node_id": node_id}], "trust": "declared"}


def resource_delete(api: Caller, fleet: Fleet) -> Write:
    return Write("DELETE", f"{HERE}/resources/cluster/pay")


def apply_that_deletes(api: Caller, fleet: Fleet) -> Write:
    return Write("POST", f"{HERE}/apply", {"resources": [], "delete": [{"type": "cluster", "name": "pay"}]})


def apply_that_prunes(api: Caller, fleet: Fleet) -> Write:
    change_apply(environment_key="default", edits=[Put(parsed(cluster("pay")))], actor=DANA, terms=Terms("team"))
    return Write("POST", f"{HERE}/apply", {"resources": [cluster("other")], "owner": "team", "prune": True})


def change_set_publish(api: Caller, fleet: Fleet) -> Write:
    return Write("POST", f"change-sets/{_deleting(api)}/publish", {"reason": "it is time"})


def _deleting(api: Caller) -> str:
    """The id of a change set that deletes what clients have."""
    made = api.post(f"{HERE}/change-sets", {"title": "tidy up", "delete": [{"type": "cluster", "name": "pay"}]})
    assert made.status == 201, made.json
    assert made.json["loss"]["clients"] == CLIENTS
    return str(made.json["id"])


def rollback(api: Caller, fleet: Fleet) -> Write:
    publish(cluster("late"))
    fleet.accept(held("late", 1))
    return Write("POST", f"{HERE}/rollback", {"to_epoch": 1, "reason": "it was better", "hold": False}, ("late",))


def undo_of_resources(api: Caller, fleet: Fleet) -> Write:
    change = publish(cluster("late"))
    fleet.accept(held("late", 1))
    return Write("POST", f"changes/{change}/undo", {"reason": "too early"}, ("late",))


def undo_of_a_rule(api: Caller, fleet: Fleet) -> Write:
    made = api.post(f"{HERE}/rules", {"effect": "allow", "pattern": "pay", "types": ["cluster"], "position": 10})
    _deny(api, "pay", position=100)
    return Write("POST", f"changes/{made.json['change']}/undo", {"reason": "not meant"})


def undo_of_settings(api: Caller, fleet: Fleet) -> Write:
    assert api.patch(HERE, {"default_effect": "deny"}).status == 409
    api("PATCH", f"{HERE}?accept_loss={CLIENTS}", {"default_effect": "deny"})
    made = api.patch(HERE, {"default_effect": "allow"})
    return Write("POST", f"changes/{made.json['change']}/undo", {"reason": "not meant"}, ("pay", "stays"))


def quarantine(api: Caller, fleet: Fleet) -> Write:
    incident = _refused(fleet)
    path = f"incidents/{incident.public_id}/quarantine"
    return Write("POST", path, {"reason": "it breaks"}, ("solo",), connected=CLIENTS + 1)


def undo_of_a_release(api: Caller, fleet: Fleet) -> Write:
    incident = _refused(fleet)
    path = f"incidents/{incident.public_id}/quarantine?accept_loss={CLIENTS}"
    assert api.post(path, {"reason": "it breaks"}).status == 202
    made = quarantine_release(
        environment_key="default", word="cluster", name="solo", revision=1, reason="try again", actor=DANA
    )
    rebuild()
    path = f"changes/{made.change_id}/undo"
    return Write("POST", path, {"reason": "still bad"}, ("solo",), connected=CLIENTS + 1)


def _refused(fleet: Fleet) -> Incident:
    """A revision that three clients acknowledged and a fourth refuses, and that nothing older stands in for."""
    publish(cluster("solo"))
    fleet.accept(held("solo", 1))
    digest()
    other = Fleet(1, first=9)
    sent = other.send(held("solo", 1))
    other.refuse(sent, "Error adding/updating cluster(s) solo: no", suspects=(held("solo", 1),))
    digest()
    return Incident.objects.get(name="solo")


def rule_create(api: Caller, fleet: Fleet) -> Write:
    rule = {"effect": "deny", "pattern": "pay", "message": "ask payments"}
    return Write("POST", f"{HERE}/rules", rule, status=201)


def rule_that_hides_all(api: Caller, fleet: Fleet) -> Write:
    return Write("POST", f"{HERE}/rules", {"effect": "hide", "pattern": "*"}, ("pay", "stays"), status=201)


def rule_replace(api: Caller, fleet: Fleet) -> Write:
    return Write("PUT", f"{HERE}/rules/{_deny(api)}", {"effect": "deny", "pattern": "pay"}, status=200)


def rule_update(api: Caller, fleet: Fleet) -> Write:
    return Write("PATCH", f"{HERE}/rules/{_deny(api, 'pay', enabled=False)}", {"enabled": True}, status=200)


def rule_moved_behind(api: Caller, fleet: Fleet) -> Write:
    allows = _deny(api, "pay", effect="allow", position=10)
    _deny(api, "pay", position=100)
    return Write("PATCH", f"{HERE}/rules/{allows}", {"position": 200}, status=200)


def rule_delete(api: Caller, fleet: Fleet) -> Write:
    allows = _deny(api, "pay", effect="allow", position=10)
    _deny(api, "pay", position=100)
    return Write("DELETE", f"{HERE}/rules/{allows}", status=200)


def group_replace(api: Caller, fleet: Fleet) -> Write:
    _group(api)
    return Write("PUT", f"{HERE}/client-groups/edge", _whole_group("node-*"), status=200)


def group_update(api: Caller, fleet: Fleet) -> Write:
    _group(api)
    return Write("PATCH", f"{HERE}/client-groups/edge", {"matchers": [{"node_id": "node-*"}]}, status=200)


def group_by_metadata(api: Caller, fleet: Fleet) -> Write:
    """Nobody can know, so it asks."""
    _group(api)
    return Write("PATCH", f"{HERE}/client-groups/edge", {"matchers": [{"metadata": {"team": "pay"}}]}, status=200)


def default_effect(api: Caller, fleet: Fleet) -> Write:
    return Write("PATCH", HERE, {"default_effect": "deny"}, ("pay", "stays"), status=200)


def selectors(api: Caller, fleet: Fleet) -> Write:
    return Write("PATCH", "environments/prod", {"selectors": [{"node_id": "node-*"}]}, ("pay", "stays"), status=200)


def selectors_by_metadata(api: Caller, fleet: Fleet) -> Write:
    """Nobody can know, so it asks."""
    by = [{"metadata": {"team": "pay"}}]
    return Write("PATCH", "environments/prod", {"selectors": by}, ("pay", "stays"), status=200)


def environment_create(api: Caller, fleet: Fleet) -> Write:
    new = {"key": "new", "selectors": [{"node_id": "node-*"}]}
    return Write("POST", "environments", new, ("pay", "stays"), status=201)


LOSING: Final[dict[str, tuple[Made, ...]]] = {
    "apply": (apply_that_deletes, apply_that_prunes),
    "change_set_publish": (change_set_publish,),
    "change_undo": (undo_of_resources, undo_of_a_rule, undo_of_settings, undo_of_a_release),
    "client_group_replace": (group_replace,),
    "client_group_update": (group_update, group_by_metadata),
    "environment_create": (environment_create,),
    "environment_rollback": (rollback,),
    "environment_update": (default_effect, selectors, selectors_by_metadata),
    "incident_quarantine": (quarantine,),
    "quarantines": (bulk_quarantine,),
    "resource_bulk": (bulk_delete,),
    "resource_delete": (resource_delete,),
    "rule_create": (rule_create, rule_that_hides_all),
    "rule_delete": (rule_delete,),
    "rule_replace": (rule_replace,),
    "rule_update": (rule_update, rule_moved_behind),
}
"""What takes something from clients, by operation of the API. `environment_delete` has a test of its own."""

_STAYS: Final = "what it puts is there afterwards"
_NO_RULE: Final = "no rule speaks of the group"
_NOT_SERVED: Final = "nothing of it is served to data planes"
_WRITTEN: Final = "what it lets go on was accepted when it was written"
_GOES_BACK: Final = "the stable side keeps what it has, and the cohort gets that back"
NOTHING_LOST: Final = {
    "access_case_create": _NOT_SERVED,
    "access_case_delete": _NOT_SERVED,
    "access_test": "it writes nothing",
    "request_explain": "it writes nothing",
    "route_case_run": "it writes nothing",
    **{f"route_case_{act}": _NOT_SERVED for act in ("create", "update", "delete", "apply", "import")},
    **{
        f"change_set_{act}": _NOT_SERVED
        for act in ("create", "edit", "delete", "submit", "approve", "reject", "cancel", "comment")
    },
    "change_set_schedule": "it asks as if it were published now, and has a test of its own",
    "channel_create": _NOT_SERVED,
    "channel_delete": _NOT_SERVED,
    "channel_pause": _NOT_SERVED,
    "channel_resume": _NOT_SERVED,
    "channel_test": _NOT_SERVED,
    "channel_update": _NOT_SERVED,
    "client_group_create": _NO_RULE,
    "client_group_delete": _NO_RULE,
    **{f"client_{act}": "labels reach no client" for act in ("bulk", "patch")},
    "client_report": _NOT_SERVED,
    "client_token_create": "a stream more may come",
    # docs/reference/loss-guard.md: not judged.
    "client_token_revoke": "who is shut out keeps what it has, and is meant to be",
    **{f"comment_{act}": _NOT_SERVED for act in ("create", "update", "delete")},
    **{f"ticket_link_{act}": _NOT_SERVED for act in ("create", "delete")},
    **{f"view_{act}": _NOT_SERVED for act in ("create", "update", "delete")},
    **{f"incident_{act}": _NOT_SERVED for act in ("assign", "mute", "unmute")},
    "incident_release": _STAYS,
    "incident_update": _NOT_SERVED,
    "rehearse": "clients that are there for it have it for a moment, and get back what they had",
    "resource_patch": "labels and owners reach no client",
    "resource_put": _STAYS,
    # What goes on was accepted when it was written; what goes back was only the cohort's, for a moment.
    **{f"rollout_{act}": _WRITTEN for act in ("advance", "approve", "pause", "resume")},
    **{f"rollout_{act}": _GOES_BACK for act in ("abort", "reject")},
    "revision_restore": _STAYS,
    "rollout_webhook_secret_make": _NOT_SERVED,
    "token_create": _NOT_SERVED,
    "token_revoke": _NOT_SERVED,
    "validate": "it writes nothing",
}

# Forms of the console that write, by the name of their path: those of the table in tests/web/test_loss_questions.py,
# and why the others take nothing.
CONSOLE_LOSING: Final = {
    "access",
    "access-rule",
    "change-set",
    "change-undo",
    "environment",
    "import",
    "incident",
    "resource",
    "resources-bulk",
    "rollback",
    "environments",
}
CONSOLE_NOTHING_LOST: Final = {
    **dict.fromkeys(("login", "login-second-factor", "login-second-factor-setup", "logout"), _NOT_SERVED),
    "rollout": f"{_WRITTEN}, or {_GOES_BACK}",
    "rollout-settings": "it is about the next rollout; what waits was accepted when it was written",
    "review": "it is about who writes, and not about what clients get",
    **{f"change-set-{each}": "it is proposed; publishing it asks" for each in ("resource", "rule", "group")},
    "freezes": "it is about when somebody writes, and not about what clients get",
    **dict.fromkeys(("account", "channel", "channel-edit", "channel-new"), _NOT_SERVED),
    **dict.fromkeys(("comment", "comments", "ticket-links"), _NOT_SERVED),
    "clients-bulk": "labels reach no client",
    "resource-edit": _STAYS,
    "resource-new": _STAYS,
    "expose": "it makes what is new, and adds to a route configuration",
    "request": "it asks, and writes nothing",
    **dict.fromkeys(("route-case", "route-case-new", "route-cases"), _NOT_SERVED),
    "second-factor": _NOT_SERVED,
    **dict.fromkeys(("tokens", "views", "views-anywhere"), _NOT_SERVED),
    **dict.fromkeys(("invitation", "invitations", "own-access", "people-group", "people-groups"), _NOT_SERVED),
    **dict.fromkeys(("user", "user-access", "users"), _NOT_SERVED),
}

# Services that somebody calls and that take no consent, and why not.
SERVICES_NOTHING_LOST: Final = {
    "case_create": _NOT_SERVED,
    "case_delete": _NOT_SERVED,
    "change_start": "it is told the loss by whoever calls it",
    "edits_record": "it is the history of a change, which was told the loss",
    "lineage_renew": _STAYS,
    "names_take_back": _GOES_BACK,
    "lineages_renew": _STAYS,
    "quarantine_release": _STAYS,
    "quarantines_release": _STAYS,
    "rehearsal_open": "clients that are there for it have it for a moment, and get back what they had",
    "secrets_read_record": "it writes nothing",
}


@pytest.fixture
def fleet(environments: None) -> Fleet:
    """Three clients that have two clusters."""
    publish(cluster("pay"), cluster("stays"))
    fleet = Fleet(CLIENTS)
    fleet.accept(held("pay", 1), held("stays", 1))
    digest()
    return fleet


MADE: Final = [made for rows in LOSING.values() for made in rows]


@pytest.mark.parametrize("made", MADE, ids=lambda each: each.__name__)
def test_write__clients_would_lose_something__is_refused_until_their_number_is_accepted(
    made: Made, api: Caller, fleet: Fleet
) -> None:
    write = made(api, fleet)
    changes = Change.objects.count()

    refused = write.send(api)
    too_few = write.send(api, accept_loss=CLIENTS - 1)

    assert [(each.status, each.json["code"]) for each in (refused, too_few)] == [(409, "XDS3013")] * 2
    loss = refused.json["loss"]
    assert loss == too_few.json["loss"]
    assert (loss["clients"], loss["connected"], loss["asks"]) == (CLIENTS, write.connected, True)
    assert {(each["type"], each["name"]): each["clients"] for each in loss["names"]} == {
        ("cluster", name): CLIENTS for name in write.names
    }
    assert loss["kinds"] == {"envoy 1.40": CLIENTS}
    assert f"accept_loss={CLIENTS}" in refused.json["detail"]
    assert Change.objects.count() == changes
    done = write.send(api, accept_loss=CLIENTS)
    assert done.status == write.status, done.json
    kept: Any = Change.objects.latest("pk").loss
    assert kept["clients"] == CLIENTS


@pytest.mark.parametrize("made", MADE, ids=lambda each: each.__name__)
def test_write__nobody_is_connected__is_done(made: Made, api: Caller, fleet: Fleet) -> None:
    write = made(api, fleet)
    for each in fleet.streams:
        fleet.buffer.closed(each, "gone")
    fleet.write()

    done = write.send(api)

    assert done.status == write.status, done.json
    assert Change.objects.latest("pk").loss is None


DRY: Final = [
    made
    for operation in LOSING
    if operation.startswith(("rule", "client_group", "environment_")) and operation != "environment_rollback"
    for made in LOSING[operation]
]


@pytest.mark.parametrize("made", DRY, ids=lambda each: each.__name__)
def test_dry_run__clients_would_lose_something__says_so_and_leaves_nothing(
    made: Made, api: Caller, fleet: Fleet
) -> None:
    write = made(api, fleet)
    before = (Change.objects.count(), environment_get(key="default").generation)

    answer = write.send(api, dry_run="true")

    assert answer.status == 200, answer.json
    assert answer.json["dry_run"] is True
    assert answer.json["loss"] == write.send(api).json["loss"]
    assert (Change.objects.count(), environment_get(key="default").generation) == before


def test_dry_run__apply__says_what_would_be_lost(api: Caller, fleet: Fleet) -> None:
    write = apply_that_deletes(api, fleet)

    assert write.send(api, dry_run="true").json["loss"] == write.send(api).json["loss"]


def test_environment_delete__its_clients_would_lose_something__is_refused_until_accepted(api: Caller) -> None:
    api.patch("environments/prod", {"selectors": [{"node_id": "node-*"}], "default_effect": "allow"})
    change_apply(environment_key="prod", edits=[Put(parsed(cluster("pay")))], actor=DANA)
    rebuild("prod")
    Fleet(CLIENTS, environment="prod")

    dry = api.delete("environments/prod?dry_run=true")
    refused = api.delete("environments/prod")
    kept = api.get("environments/prod")
    done = api.delete(f"environments/prod?accept_loss={CLIENTS}")

    assert [each.status for each in (dry, refused, kept, done)] == [200, 409, 200, 204]
    assert dry.json["loss"] == refused.json["loss"]
    assert refused.json["loss"]["clients"] == CLIENTS


def test_selectors__clients_of_another_environment__are_counted_and_not_named_to_who_may_not_see_it(
    api: Caller, fleet: Fleet
) -> None:
    write = selectors(api, fleet)
    of_prod = caller(Scope(Role.ADMIN, "prod"))

    refused, dry = write.send(of_prod), write.send(of_prod, dry_run="true")
    done = write.send(of_prod, accept_loss=CLIENTS)
    change = of_prod.get(f"changes/{done.json['change']}")

    for answer in (refused, dry, change):
        assert answer.json["loss"]["clients"] == CLIENTS
        assert (answer.json["loss"]["names"], answer.json["loss"]["who"]) == ([], [])
        assert not {"node-1", "stays", "default'"} & set(re.split(r"[\s\"]+", answer.content.decode()))
    assert "'default'" not in refused.json["detail"]


def test_threshold__of_other_changes__is_a_share_of_the_connected_clients(api: Caller, fleet: Fleet) -> None:
    assert api.patch(HERE, {"loss_threshold": {"other_percent": 100, "access_clients": 4}}).status == 200

    allowed = api.post(f"{HERE}/rules", {"effect": "deny", "pattern": "pay"})
    refused = api.delete(f"{HERE}/resources/cluster/stays")

    assert (allowed.status, refused.status) == (201, 409)
    assert api.get(HERE).json["loss_threshold"] == {"access_clients": 4, "other_percent": 100}


def test_threshold__raised_in_the_same_write__does_not_count_yet(api: Caller, fleet: Fleet) -> None:
    answer = api.patch(HERE, {"loss_threshold": {"access_clients": 1_000}, "default_effect": "deny"})

    assert (answer.status, answer.json["code"]) == (409, "XDS3013")


def test_table__has_every_operation_that_writes() -> None:
    writing = {
        operation["operationId"]
        for operations in schema()["paths"].values()
        for method, operation in operations.items()
        if method in {"post", "put", "patch", "delete"}
    }

    assert writing == LOSING.keys() | NOTHING_LOST.keys() | {"environment_delete"}
    assert not LOSING.keys() & NOTHING_LOST.keys()


def test_table__operations_that_take_something__take_consent() -> None:
    consenting = {
        operation["operationId"]
        for operations in schema()["paths"].values()
        for operation in operations.values()
        if any(each["name"] == "accept_loss" for each in operation.get("parameters", ()))
    }

    assert LOSING.keys() | {"environment_delete"} <= consenting


def test_table__has_every_form_of_the_console() -> None:
    writing = {str(path.name) for path in console_paths if hasattr(getattr(path.callback, "view_class", None), "post")}

    assert writing == CONSOLE_LOSING | CONSOLE_NOTHING_LOST.keys()


def test_table__has_every_service_by_which_somebody_writes() -> None:
    takes = {
        name: inspect.signature(service).parameters
        for services in (catalog_services, access_services, access_cases)
        for name, service in vars(services).items()
        if inspect.isfunction(service)
        and service.__module__.startswith(("controlplane.catalog.", "controlplane.access."))
    }
    without = {name for name, given in takes.items() if "actor" in given and "consent" not in given}

    assert {name for name in without if not name.startswith("_")} == SERVICES_NOTHING_LOST.keys()
