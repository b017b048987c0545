"""Taking back one change: each kind of it, what stands in the way, and who may."""

from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from controlplane.access.cases import case_create
from controlplane.access.values import Case
from controlplane.accounts.principal import Role, Scope
from controlplane.catalog.choices import ChangeKind, QuarantinePolicy
from controlplane.catalog.models import Change, Environment, Quarantine, Resource, Revision
from controlplane.catalog.rollbacks import undone_by, undone_of
from controlplane.catalog.selectors import change_get, resource_get
from controlplane.catalog.services import change_apply, change_start, environment_create, environment_update
from controlplane.catalog.values import ChangeMade, Delete, EnvironmentPolicy, Put
from controlplane.common.errors import Conflict, Forbidden, InputInvalid, NotFound
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest, incident_quarantine, incident_release
from controlplane.journal.models import AuditEvent
from controlplane.snapshots.rollback import environment_rollback
from controlplane.undo.rights import may_undo
from controlplane.undo.services import undo_way
from tests.services.incidents.fleet import Fleet, held, publish, rebuild
from tests.services.undo.hands import (
    DANA,
    OPAL,
    policy,
    put,
    refusals,
    rule,
    settings,
    timeout,
    undo,
)
from tests.support.manifests import Tree, cluster, parsed, tls_secret
from tests.support.principals import somebody
from tests.support.sides import PILOT, opened, rollouts, taken_back, write
from xdscore.access import Effect
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import SECRET

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]


def test_undo__resources_created_updated_deleted_in_one_change__each_becomes_what_it_was() -> None:
    put(cluster("a"), cluster("gone", connect_timeout="3s"))
    made = put(cluster("a", connect_timeout="2s"), cluster("new"), delete=("gone",))
    assert undo_way(change=change_get(public_id=made.change_id)).steps == (
        "The cluster 'a' becomes what r1 was.",
        "The cluster 'gone' is there again, as r1 was.",
        "The cluster 'new' is deleted.",
    )

    undone = undo(made.change_id)

    assert [timeout(name) for name in ("a", "new", "gone")] == ["first", "gone", "3s"]
    row = Change.objects.get(public_id=undone.change)
    assert (row.undoes, row.author) == (made.change_id, "opal")
    assert row.message == f"take back change {made.change_id[:8]}: it broke"
    event = AuditEvent.objects.get(verb="change.undone")
    assert (event.subject, event.actor, event.request_id) == (made.change_id, "opal", "r-1")
    assert event.detail == {"by": undone.change, "reason": "it broke"}
    assert Revision.objects.filter(resource__name="a").count() == 3  # history only grows


def test_undo__of_an_undo__brings_the_change_back_and_both_say_so() -> None:
    put(cluster("a"))
    made = put(cluster("a", connect_timeout="2s"))
    first = undo(made.change_id)

    second = undo(first.change)

    assert timeout("a") == "2s"
    changes = [change_get(public_id=each) for each in (made.change_id, first.change, second.change)]
    back = undone_by(environment_key="default", changes=changes)
    assert {generation: str(by.public_id) for generation, by in back.items()} == {changes[1].generation: second.change}
    assert [str(each.public_id) for each in undone_of(change=changes[2], limit=9)[0]] == [first.change]
    # It is in force again, so it can be taken back again.
    third = undo(made.change_id)
    assert (third.already, timeout("a")) == (False, "first")


def test_undo__twice__the_second_changes_nothing_and_names_the_first() -> None:
    made = put(cluster("a"))
    first = undo(made.change_id)
    generation = Environment.objects.get(key="default").generation

    second = undo(made.change_id)

    assert (second.change, second.already) == (first.change, True)
    assert Environment.objects.get(key="default").generation == generation


def test_undo__resources_written_again_since__names_each_with_author_and_change() -> None:
    put(cluster("a"), cluster("b"), cluster("c"))
    made = put(cluster("a", connect_timeout="2s"), cluster("b", connect_timeout="2s"), delete=("c",))
    later = put(cluster("a", connect_timeout="3s"), cluster("c"), actor=OPAL)

    said = refusals(made.change_id)

    by = f"by opal in change {later.change_id[:8]}."
    assert said == [
        f"The cluster 'a' was written again since: r3 {by}",
        f"The cluster 'c' was written again since: r3 {by}",
    ]
    assert timeout("b") == "2s"


def test_undo__written_again_to_the_same__stands_as_it_was_written() -> None:
    put(cluster("a"))
    made = put(cluster("a", connect_timeout="2s"))
    put(cluster("a", connect_timeout="3s"))
    put(cluster("a", connect_timeout="2s"))

    undo(made.change_id)

    assert timeout("a") == "first"


def test_undo__of_a_secret__brings_its_value_back() -> None:
    change_apply(environment_key="default", edits=[Put(parsed(tls_secret("cert", "0123")))], actor=DANA)
    before = resource_get(environment_key="default", kind=SECRET, name="cert")
    made = change_apply(environment_key="default", edits=[Delete(SECRET, "cert")], actor=DANA)

    undo(made.change_id)

    after = resource_get(environment_key="default", kind=SECRET, name="cert")
    assert (after.any_bytes, after.address, after.revision) == (before.any_bytes, before.address, 3)


def test_undo__of_a_change_of_owners__each_resource_has_its_own_again() -> None:
    put(cluster("a"), owner="team-a")
    put(cluster("b"), owner="team-b")
    made = put(cluster("a"), cluster("b", connect_timeout="2s"), owner="team-c")

    undone = undo(made.change_id)

    owners = dict(Resource.objects.values_list("name", "owner"))
    assert (owners, timeout("b")) == ({"a": "team-a", "b": "team-b"}, "first")
    undo(undone.change)
    assert set(Resource.objects.values_list("owner", flat=True)) == {"team-c"}


def test_undo__content_that_is_refused_today__says_so_and_changes_nothing() -> None:
    environment = Environment.objects.get(key="default")
    loopback = cluster("a") | {"type": "STATIC", "load_assignment": _loopback("a")}
    loopback.pop("eds_cluster_config", None)
    put(loopback)
    made = put(cluster("a"))
    environment.refresh_from_db()
    settings(content=EnvironmentPolicy().content)  # which refuses what the default environment allowed

    with pytest.raises(InputInvalid, match="does not take such content") as refused:
        undo(made.change_id)

    assert [each.resource_name for each in refused.value.findings] == ["a"]
    assert Resource.objects.get(name="a").counter == 2


def _loopback(name: str) -> Tree:
    address = {"socket_address": {"address": "127.0.0.1", "port_value": 1}}
    return {"cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}]}


def test_undo__while_the_environment_is_held__an_operator_goes_through_and_an_editor_does_not() -> None:
    editor = somebody("ed", (Scope(Role.EDITOR, "default"),))
    operator = somebody("op", (Scope(Role.OPERATOR, "default"),))
    made = put(cluster("a"))
    settings(hold="freeze")

    with pytest.raises(Conflict, match="is on hold: freeze"):
        undo(made.change_id, editor)
    undo(made.change_id, operator)

    assert (timeout("a"), policy().hold) == ("gone", "freeze")


def test_undo__of_a_rollback__releases_the_hold_that_it_set_and_puts_changes_in_force_again() -> None:
    publish(cluster("a"))
    second = publish(cluster("a", connect_timeout="2s"))
    rolled = environment_rollback(environment_key="default", to_epoch=1, reason="bad", hold=True, actor=DANA)
    rebuild()
    assert (timeout("a"), bool(policy().hold)) == ("first", True)

    undo(rolled.change_id)

    assert (timeout("a"), policy().hold) == ("2s", "")
    rows = [change_get(public_id=each) for each in (second, rolled.change_id)]
    assert list(undone_by(environment_key="default", changes=rows)) == [rows[1].generation]


def test_undo__of_a_rollback_whose_hold_was_released__leaves_the_hold_alone() -> None:
    publish(cluster("a"))
    publish(cluster("a", connect_timeout="2s"))
    rolled = environment_rollback(environment_key="default", to_epoch=1, reason="bad", hold=True, actor=DANA)
    settings(hold="another matter")

    undo(rolled.change_id)

    assert (timeout("a"), policy().hold) == ("2s", "another matter")


def test_undo__of_settings__only_what_the_change_wrote_goes_back() -> None:
    change = settings(quarantine=QuarantinePolicy.OFF, require_if_match=True)
    settings(node_ids=("edge-*",))

    undone = undo(change)

    now = policy()
    assert (now.quarantine, now.require_if_match, now.node_ids) == (QuarantinePolicy.SUGGEST, False, ("edge-*",))
    assert change_get(public_id=undone.change).undoes == change
    undo(undone.change)
    assert policy().quarantine is QuarantinePolicy.OFF


def test_undo__of_a_hold__releases_it() -> None:
    change = settings(hold="freeze")
    way = undo_way(change=change_get(public_id=change))

    undo(change)

    assert (policy().hold, way.steps) == ("", ("The hold is released.",))


def test_undo__of_settings_that_were_changed_since__names_each_with_author_and_change() -> None:
    change = settings(quarantine=QuarantinePolicy.OFF, hold="freeze")
    now = policy()
    later = environment_update(key="default", policy=replace(now, hold="longer"), before=now, actor=OPAL).change_id

    assert refusals(change) == [f"The hold was changed again since: by opal in change {later[:8]}."]
    assert policy().quarantine is QuarantinePolicy.OFF


def test_undo__of_a_default_effect_that_a_blocking_case_rests_on__is_refused() -> None:
    change = settings(default_effect=Effect.DENY)
    case = Case(ClientFacts(node_id="n"), "cluster", "a", Effect.DENY)
    case_create(environment_key="default", case=case, blocking=True, actor=DANA)

    with pytest.raises(Conflict, match="blocking access case"):
        undo(change)

    assert policy().default_effect is Effect.DENY


def test_undo__of_an_environment_s_making_or_of_what_kept_nothing__says_what_to_do_instead() -> None:
    made = environment_create(key="prod", policy=EnvironmentPolicy(), actor=DANA).change_id
    with transaction.atomic():  # as the version before wrote settings
        row = Environment.objects.get(key="default")
        change = change_start(environment=row, kind=ChangeKind.POLICY, actor=DANA, message="held: freeze")

    with pytest.raises(Conflict, match="delete the environment if that is meant"):
        undo(made)
    with pytest.raises(Conflict, match="older than such notes"):
        undo(str(change.public_id))


def test_undo__of_what_a_rollout_took_back__says_what_to_do_instead() -> None:
    write(cluster("pay"))
    rollouts(PILOT)
    write(cluster("pay", connect_timeout="2s"))
    opened()
    made = taken_back(("cluster", "pay"))

    with pytest.raises(Conflict, match="Release the quarantine"):
        undo(made.change_id)


def test_undo__of_what_left_nothing_different__says_so() -> None:
    put(cluster("a"), owner="team-a")
    made = put(cluster("a"), owner="team-b")
    put(cluster("a"), owner="team-c")

    with pytest.raises(Conflict, match="is left to take back"):
        undo(made.change_id)


def test_undo__needs_the_role_that_the_write_needs() -> None:
    resources, (_, access), setting = put(cluster("a")).change_id, rule(), settings(require_if_match=True)
    hold = settings(hold="freeze")
    changes = [change_get(public_id=each) for each in (resources, access, setting, hold)]

    def allowed(role: Role, environment: str = "default") -> list[bool]:
        principal = somebody("p", (Scope(role, environment),))
        return [may_undo(principal, each) for each in changes]

    assert allowed(Role.EDITOR) == [True, False, False, False]
    assert allowed(Role.OPERATOR) == [True, False, False, True]
    assert allowed(Role.ACCESS_EDITOR) == [False, True, False, False]
    assert allowed(Role.ADMIN) == [True] * 4
    assert allowed(Role.VIEWER) == allowed(Role.ADMIN, "prod") == [False] * 4
    with pytest.raises(Forbidden, match="access-editor in environment 'default'"):
        undo(access, somebody("op", (Scope(Role.OPERATOR, "default"),)))


@pytest.fixture
def incident() -> str:
    """Two clients that run r1 of `pay`; the first refused r2. The incident."""
    two = Fleet(2)
    publish(cluster("pay"))
    two.accept(held("pay", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    text = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"
    two.refuse(two.send(held("pay", 2)), text, suspects=(held("pay", 2),), who=slice(1))
    digest()
    return str(Incident.objects.get().public_id)


def test_undo__of_a_quarantine__releases_the_revision_and_it_is_not_quarantined_by_itself_again(incident: str) -> None:
    made = incident_quarantine(public_id=incident, reason="bad", actor=DANA, request_id="")

    undone = undo(made.change_id)

    assert not Quarantine.objects.filter(released_at=None).exists()
    assert Incident.objects.get().forced_revision == 2
    assert change_get(public_id=undone.change).kind == "quarantine"
    assert undo(made.change_id).already


def test_undo__of_a_release__takes_the_revision_out_of_service_again_from_the_same_clients(incident: str) -> None:
    incident_quarantine(public_id=incident, reason="bad", actor=DANA, request_id="")
    before = Quarantine.objects.get()
    made = incident_release(public_id=incident, reason="mended", actor=DANA, request_id="")

    undo(made.change_id)

    again = Quarantine.objects.get(released_at=None)
    assert (again.refused_by, again.incident) == (before.refused_by, incident)
    assert before.refused_by


def test_undo__of_a_quarantine_that_was_released_or_overtaken__says_by_whom(incident: str) -> None:
    opened = incident_quarantine(public_id=incident, reason="bad", actor=DANA, request_id="")
    released = incident_release(public_id=incident, reason="mended", actor=OPAL, request_id="")

    assert refusals(opened.change_id) == ["r2 of the cluster 'pay' was released since: by opal."]

    newer = publish(cluster("pay", connect_timeout="3s"))
    [said] = refusals(released.change_id)
    assert said == (
        f"r2 of the cluster 'pay' is not current any more: r3 by dana in change {newer[:8]} took its place."
    )


def test_undo__written_between_the_look_and_the_lock__is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    put(cluster("a"))
    made = put(cluster("a", connect_timeout="2s"))

    def later(**given: Any) -> ChangeMade:
        put(cluster("a", connect_timeout="3s"))
        return change_apply(**given)

    monkeypatch.setattr("controlplane.catalog.services.undoing.change_apply", later)

    with pytest.raises(Conflict, match="is at revision r3"):
        undo(made.change_id)

    assert timeout("a") == "3s"


def test_undo__of_an_unknown_change__is_not_found() -> None:
    with pytest.raises(NotFound):
        undo("00000000-0000-0000-0000-000000000000")
