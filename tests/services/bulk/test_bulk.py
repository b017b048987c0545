"""One act upon many resources, in both databases: all or none, one change, one way back."""

from time import monotonic
from typing import Any

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, Principal, Role, Scope
from controlplane.bulk.selecting import chosen_by
from controlplane.bulk.services import bulk_apply, bulk_plan
from controlplane.bulk.values import MAX_QUARANTINED, MAX_RESOURCES, Bulk, BulkAct, Chosen, Filter
from controlplane.catalog.freezes import WriteFrozen
from controlplane.catalog.guarding import Consent, LossRefused
from controlplane.catalog.models import Change, Quarantine, Resource, Revision
from controlplane.catalog.review import ReviewSettings, WriteUnreviewed
from controlplane.catalog.selectors import change_get
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import ChangeMade, Put
from controlplane.common.errors import Conflict, Forbidden, InputInvalid, InputTooLarge, NotFound, PreconditionFailed
from controlplane.common.limits import Limit
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest
from controlplane.journal.models import AuditEvent
from controlplane.undo.services import undo_way
from tests.services.incidents.fleet import Fleet, held, publish, rebuild
from tests.services.undo.hands import put, settings, timeout, undo
from tests.support.manifests import cluster, parsed, tls_secret
from tests.support.principals import somebody
from xdscore.labels import selector_read
from xdscore.resource_types import CLUSTER, SECRET

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

DANA = somebody("dana", ADMIN_SCOPES)


def bulk(
    act: BulkAct,
    *chosen: str | Chosen,
    actor: Principal = DANA,
    consent: Consent | None = None,
    message: str = "",
    **more: object,
) -> ChangeMade:
    found = tuple(each if isinstance(each, Chosen) else Chosen(CLUSTER, each) for each in chosen)
    return bulk_apply(
        environment_key="default",
        bulk=Bulk(act, found, **more),  # type: ignore[arg-type]  # fields of a bulk act
        actor=actor,
        message=message,
        request_id="r-1",
        consent=consent or Consent(),
    )


def owners() -> dict[str, str]:
    return dict(Resource.objects.filter(deleted=False).order_by("name").values_list("name", "owner"))


def quarantined() -> set[tuple[str, int]]:
    rows = Quarantine.objects.filter(released_at=None)
    return set(rows.values_list("revision__resource__name", "revision__number"))


def test_delete__several__is_one_change_that_is_taken_back_as_one() -> None:
    put(cluster("a"), cluster("b"), cluster("c"))

    made = bulk(BulkAct.DELETE, "a", "b")

    assert (sorted(owners()), len(made.edits)) == (["c"], 2)
    change = change_get(public_id=made.change_id)
    assert (change.message, Revision.objects.filter(change=change).count()) == ("delete 2 resources", 2)
    assert AuditEvent.objects.get(subject=made.change_id).detail["edits"] == 2
    undo(made.change_id)
    assert sorted(owners()) == ["a", "b", "c"]


def test_owner_and_labels__several__are_one_change_each() -> None:
    put(cluster("a"), cluster("b"), owner="old")

    given = bulk(BulkAct.OWNER, "a", "b", owner="new")
    labelled = bulk(BulkAct.LABELS, "a", "b", labels={"team": "pay", "x": None}, message="why")

    assert owners() == {"a": "new", "b": "new"}
    assert set(Resource.objects.values_list("labels", flat=True)) == {"\nteam=pay\n"}
    said = [change_get(public_id=each.change_id).message for each in (given, labelled)]
    assert said == ["owner of 2 resources: new", "why"]
    assert Revision.objects.count() == 2
    undo(given.change_id)
    assert owners() == {"a": "old", "b": "old"}


def test_restore__changed_and_deleted_ones__each_is_what_it_was_before() -> None:
    put(cluster("a"), cluster("b"), cluster("gone", connect_timeout="3s"))
    put(cluster("a", connect_timeout="2s"), cluster("b", connect_timeout="3s"), delete=("gone",))

    bulk(BulkAct.RESTORE, Chosen(CLUSTER, "a", 2), Chosen(CLUSTER, "b", 2))

    assert [timeout(name) for name in ("a", "b", "gone")] == ["first", "first", "gone"]


def test_restore__secrets__come_back_and_stand_in_no_message() -> None:
    for key in ("one", "other"):
        change_apply(environment_key="default", edits=[Put(parsed(tls_secret("s", key)))], actor=DANA)

    made = bulk(BulkAct.RESTORE, Chosen(SECRET, "s", 2))

    first, _, third = Revision.objects.filter(resource__name="s").order_by("number")
    assert (made.edits[0].revision, first.blob_id) == (3, third.blob_id)


def test_restore__without_an_earlier_revision__is_refused_by_name() -> None:
    put(cluster("a"), cluster("b"))
    put(cluster("a", connect_timeout="2s"))

    with pytest.raises(NotFound) as error:
        bulk(BulkAct.RESTORE, "a", "b")

    assert [each.detail for each in error.value.findings] == ["The cluster 'b' has no earlier revision."]
    assert timeout("a") == "2s"


@pytest.mark.parametrize("act", list(BulkAct), ids=lambda each: each.value)
def test_any_act__on_what_was_written_since_it_was_chosen__is_refused_with_all_of_them(act: BulkAct) -> None:
    put(cluster("a"), cluster("b"), cluster("c"), cluster("gone"))
    put(cluster("a"), cluster("b", connect_timeout="2s"), cluster("c", connect_timeout="2s"), delete=("gone",))
    put(cluster("c", connect_timeout="3s"))
    before = Change.objects.count()
    chosen = [Chosen(CLUSTER, "a", 1), Chosen(CLUSTER, "b", 1), Chosen(CLUSTER, "c", 2), Chosen(CLUSTER, "gone", 1)]
    if act is BulkAct.RESTORE:
        chosen = [Chosen(CLUSTER, "b", 1), Chosen(CLUSTER, "c", 2), Chosen(CLUSTER, "gone", 1)]

    with pytest.raises(PreconditionFailed) as error:
        bulk(act, *chosen, owner="x", labels={"a": "1"}, reason="r")

    assert [each.resource_name for each in error.value.findings] == ["b", "c", "gone"]
    assert Change.objects.count() == before


def test_any_act__on_others_resources__is_refused_by_name_and_quarantine_altogether() -> None:
    put(cluster("mine"), owner="pay")
    put(cluster("theirs"), owner="shop")
    put(cluster("mine", connect_timeout="2s"), cluster("theirs", connect_timeout="2s"))
    pia = somebody("pia", (Scope(Role.EDITOR, "default", (Limit(owner="pay"),)),))
    before = Change.objects.count()

    for act in BulkAct:
        with pytest.raises(Forbidden) as error:
            bulk(act, "mine", "theirs", actor=pia, owner="pay", labels={"a": "1"}, reason="r")
        named = [each.resource_name for each in error.value.findings]
        assert named == ([] if act in (BulkAct.QUARANTINE, BulkAct.RELEASE) else ["theirs"])
    editor = somebody("ed", (Scope(Role.EDITOR, "default"),))
    with pytest.raises(Forbidden, match="role operator"):
        bulk(BulkAct.QUARANTINE, "mine", actor=editor, reason="r")

    assert Change.objects.count() == before


def test_delete__clients_would_lose_several__is_asked_once_with_all_names() -> None:
    publish(cluster("pay"), cluster("shop"), cluster("other"))
    fleet = Fleet(3)
    fleet.accept(held("pay", 1), held("shop", 1))
    digest()

    with pytest.raises(LossRefused) as error:
        bulk(BulkAct.DELETE, "pay", "shop")
    planned = bulk_plan(
        environment_key="default",
        bulk=Bulk(BulkAct.DELETE, (Chosen(CLUSTER, "pay"), Chosen(CLUSTER, "shop"))),
        actor=DANA,
    )

    assert {each.name for each in error.value.loss.names} == {"pay", "shop"}
    assert planned.loss == error.value.loss
    assert bulk(BulkAct.DELETE, "pay", "shop", consent=Consent(accept_loss=3)).loss.clients == 3


def test_delete__frozen_or_under_review__is_refused_as_one_edit_is() -> None:
    put(cluster("a"), cluster("b"))
    settings(review=ReviewSettings(required=True))

    with pytest.raises(WriteUnreviewed):
        bulk(BulkAct.DELETE, "a", "b")
    assert bulk(BulkAct.DELETE, "a", "b", consent=Consent(break_glass="it burns")).changed
    assert issubclass(WriteFrozen, Conflict)


def test_delete__on_hold__is_refused() -> None:
    put(cluster("a"), cluster("b"))
    settings(hold="wait")

    with pytest.raises(Conflict, match="on hold"):
        bulk(BulkAct.DELETE, "a", "b")


def test_quarantine__several_that_clients_refuse__is_one_change_and_their_incidents_know() -> None:
    publish(cluster("pay"), cluster("shop"))
    fleet = Fleet(2)
    fleet.accept(held("pay", 1), held("shop", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"), cluster("shop", connect_timeout="2s"))
    sent = fleet.send(held("pay", 2))
    fleet.refuse(sent, "Error adding/updating cluster(s) pay: no", suspects=(held("pay", 2),))
    digest()

    made = bulk(BulkAct.QUARANTINE, "pay", "shop", reason="both are bad")

    assert quarantined() == {("pay", 2), ("shop", 2)}
    change = change_get(public_id=made.change_id)
    assert change.message == "quarantine of 2 resources: both are bad"
    incident = Incident.objects.get(name="pay")
    assert incident.quarantined_revision == 2
    assert Quarantine.objects.get(revision__resource__name="pay").incident == str(incident.public_id)
    assert AuditEvent.objects.filter(verb="quarantine.opened", request_id="r-1").count() == 2
    rebuild()
    assert undo_way(change=change).steps == (
        "r2 of the cluster 'pay' is served again.",
        "r2 of the cluster 'shop' is served again.",
    )
    undone = undo(made.change_id)
    assert quarantined() == set()
    assert Incident.objects.get(name="pay").forced_revision == 2
    undo(undone.change)
    assert quarantined() == {("pay", 2), ("shop", 2)}


def test_release__several__is_one_change_and_what_is_not_in_quarantine_stays() -> None:
    put(cluster("pay"), cluster("shop"), cluster("other"))
    bulk(BulkAct.QUARANTINE, "pay", "shop", reason="r")

    made = bulk(BulkAct.RELEASE, "pay", "shop", "other", reason="mended")

    assert quarantined() == set()
    assert change_get(public_id=made.change_id).message == "release of 2 resources: mended"
    assert not bulk(BulkAct.RELEASE, "pay", "other", reason="again").changed


def test_quarantine__nothing_older_that_clients_took__is_asked_once_for_all() -> None:
    publish(cluster("pay"), cluster("shop"))
    fleet = Fleet(3)
    fleet.accept(held("pay", 1), held("shop", 1))
    digest()

    with pytest.raises(LossRefused) as error:
        bulk(BulkAct.QUARANTINE, "pay", "shop", reason="r")

    assert {each.name for each in error.value.loss.names} == {"pay", "shop"}
    assert quarantined() == set()
    bulk(BulkAct.QUARANTINE, "pay", "shop", reason="r", consent=Consent(accept_loss=3))
    assert quarantined() == {("pay", 1), ("shop", 1)}


def test_undo__of_a_quarantine_of_two__one_was_released_since__is_refused_with_it_alone() -> None:
    put(cluster("pay"), cluster("shop"))
    made = bulk(BulkAct.QUARANTINE, "pay", "shop", reason="r")
    bulk(BulkAct.RELEASE, "shop", reason="mended")

    with pytest.raises(Conflict) as error:
        undo(made.change_id)

    assert [each.detail for each in error.value.findings] == ["r1 of the cluster 'shop' was released since: by dana."]


@pytest.mark.parametrize(
    ("act", "more", "said"),
    [
        (BulkAct.LABELS, {}, "which labels"),
        (BulkAct.QUARANTINE, {"reason": " "}, "Say why"),
        (BulkAct.DELETE, {}, "named more than once"),
    ],
)
def test_any_act__that_lacks_something__is_refused(act: BulkAct, more: dict[str, Any], said: str) -> None:
    put(cluster("a"))

    with pytest.raises(InputInvalid, match=said):
        bulk(act, "a", "a", **more)
    with pytest.raises(InputInvalid, match="No resource is chosen"):
        bulk(act, **more)


def test_chosen_by__a_filter__is_what_the_list_shows_at_its_revisions() -> None:
    put(cluster("pay"), cluster("pay-eu"), cluster("shop"), owner="x")
    put(cluster("pay", connect_timeout="2s"))
    bulk(BulkAct.LABELS, "pay", "shop", labels={"team": "pay"})

    wanted = Filter(CLUSTER, "x", "pay", "", selector_read("team"))

    found = chosen_by(environment_key="default", wanted=wanted, act=BulkAct.DELETE)
    assert found == (Chosen(CLUSTER, "pay", 2),)
    waiting = chosen_by(environment_key="default", wanted=Filter(status="waiting"), act=BulkAct.DELETE)
    assert [each.name for each in waiting] == ["pay", "pay-eu", "shop"]


def test_a_thousand__each_act__is_one_change_within_three_seconds_and_more_are_refused_by_number() -> None:
    names = [f"c-{number:04}" for number in range(MAX_RESOURCES + 1)]
    put(*(cluster(name) for name in names))
    put(*(cluster(name, connect_timeout="2s") for name in names))
    chosen = [Chosen(CLUSTER, name, 2) for name in names[:-1]]

    with pytest.raises(InputTooLarge, match="1,001 resources are meant; at most 1,000"):
        chosen_by(environment_key="default", wanted=Filter(CLUSTER), act=BulkAct.DELETE)
    with pytest.raises(InputTooLarge, match=f"at most {MAX_QUARANTINED}"):
        bulk(BulkAct.QUARANTINE, *chosen, reason="r")
    took = {}
    for act, more in (
        (BulkAct.LABELS, {"labels": {"team": "pay", "tier": "1"}}),
        (BulkAct.OWNER, {"owner": "pay"}),
        (BulkAct.RESTORE, {}),
        (BulkAct.DELETE, {}),
    ):
        if act is BulkAct.DELETE:
            chosen = [Chosen(CLUSTER, name, 3) for name in names[:-1]]
        before, started = Change.objects.count(), monotonic()
        bulk(act, *chosen, **more)
        took[act.value] = round(monotonic() - started, 2)
        assert Change.objects.count() == before + 1

    assert max(took.values()) <= 3, took
