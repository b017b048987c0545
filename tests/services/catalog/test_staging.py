"""What is staged: who has which content while a rollout is on its way (rollouts.md R2, R4, R5, R7, R13)."""

from dataclasses import replace

import pytest
from django.db import transaction

from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.models import Change, Environment, Quarantine, Resource
from controlplane.catalog.rollout_settings import ROLLOUT_OFF
from controlplane.catalog.selectors import change_get
from controlplane.catalog.services import (
    environment_lock,
    proofs_record,
    quarantine_release,
    side_open,
)
from controlplane.catalog.staging import (
    candidate_side,
    changes_of,
    changes_of_rollout,
    environments_waiting,
    names_candidate,
    names_waiting,
    sides_moved_last,
    staged_change,
)
from controlplane.catalog.values import ProvenContent
from controlplane.common.errors import Conflict
from controlplane.database.aliases import READER
from controlplane.snapshots.rollback import environment_rollback
from tests.support.manifests import cluster, endpoints, route
from tests.support.sides import (
    DANA,
    PILOT,
    built,
    candidate,
    closed,
    opened,
    promoted,
    rollouts,
    stable,
    staged,
    stepped,
    table_of,
    taken_back,
    version,
    write,
)

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

PAY = ("cluster", "pay")
OLD, NEW, NEWER = cluster("pay"), cluster("pay", connect_timeout="2s"), cluster("pay", connect_timeout="3s")


def state_of(change: str) -> str:
    found = staged_change(change)
    return found.state.value if found is not None else ""


def acknowledged(tree: dict[str, object], name: str = "pay", word: str = "cluster") -> None:
    proofs_record(proven=[ProvenContent("default", word, name, version(tree))])


def fallback(name: str = "pay") -> int:
    row = Resource.objects.select_related("proven").get(name=name, type="cluster")
    return row.proven.number if row.proven is not None else 0


def test_write__rollouts_are_off__nothing_is_staged() -> None:
    made = write(OLD)

    built()

    assert staged() == {}
    assert staged_change(made.change_id) is None
    assert stable(*PAY) == version(OLD)


def test_write__rollouts_are_on__the_stable_side_keeps_what_it_has() -> None:
    write(OLD)
    rollouts(PILOT)

    made = write(NEW, cluster("new"))
    built()

    assert staged() == {PAY: "waiting", ("cluster", "new"): "waiting"}
    assert (stable(*PAY), stable("cluster", "new")) == (version(OLD), "")
    assert state_of(made.change_id) == "waiting"
    assert environments_waiting() == (Environment.objects.get(key="default").pk,)
    (new, pay) = names_waiting("default")
    assert (pay.from_revision, pay.to_revision, pay.author, pay.change) == (1, 2, "dana", made.change_id)
    assert (pay.from_version, pay.to_version) == (version(OLD), version(NEW))
    assert (new.from_revision, new.to_revision, new.from_address) == (None, 1, "")


def test_write__what_waits_becomes_what_is_stable_again__nothing_is_staged() -> None:
    write(OLD)
    rollouts(PILOT)
    first = write(NEW)

    again = write(OLD)

    assert staged() == {}
    assert state_of(first.change_id) == "promoted"
    assert staged_change(again.change_id) is None


def test_open__names_that_wait__reach_the_candidate_side_alone() -> None:
    write(OLD, cluster("other"))
    rollouts(PILOT)
    made = write(NEW)
    left = write(cluster("other", connect_timeout="9s"))

    table = opened([PAY])
    built()

    assert staged() == {PAY: "candidate", ("cluster", "other"): "waiting"}
    assert (stable(*PAY), candidate(*PAY)) == (version(OLD), version(NEW))
    assert candidate("cluster", "other") == version(cluster("other"))
    assert (state_of(made.change_id), state_of(left.change_id)) == ("candidate", "waiting")
    side = candidate_side("default")
    assert side is not None
    assert (side.rollout, side.table) == (table.id, table)
    assert [view.change for view in changes_of_rollout(table.id)] == [made.change_id]
    assert changes_of(environment_key="default", names=[PAY]) == (made.change_id,)
    assert environments_waiting() == ()


def test_open__a_rollout_is_open__conflict_and_nothing_moves() -> None:
    rollouts(PILOT)
    write(OLD)
    table = opened()
    write(cluster("other"))

    with pytest.raises(Conflict, match=table.id), transaction.atomic(durable=True):
        side_open(environment_lock(key="default"), table=table_of(), names=[("cluster", "other")])

    assert staged() == {PAY: "candidate", ("cluster", "other"): "waiting"}


def test_step__another_rollout_than_the_open_one__conflict() -> None:
    rollouts(PILOT)
    write(OLD)
    table = opened()

    with pytest.raises(Conflict, match="is not open"):
        stepped(table_of(500))
    stepped(replace(table, step=1, permille=500))

    side = candidate_side("default")
    assert side is not None
    assert (side.table.step, side.table.permille) == (1, 500)


def test_promote__a_part_of_a_change__is_promoted_once_nothing_of_it_is_staged() -> None:
    write(OLD)
    rollouts(PILOT)
    made = write(NEW, cluster("new"))
    opened()

    promoted([PAY])
    built()
    half = state_of(made.change_id)
    promoted()
    generation = Environment.objects.get(key="default").generation
    built()

    assert (half, state_of(made.change_id)) == ("candidate", "promoted")
    found = staged_change(made.change_id)
    assert found is not None
    assert found.promoted_generation == generation
    assert staged() == {}
    assert (stable(*PAY), stable("cluster", "new")) == (version(NEW), version(cluster("new")))


def test_take_back__names__are_quarantined_and_no_later_rollout_takes_them_by_itself() -> None:
    write(OLD)
    rollouts(PILOT)
    made = write(NEW, cluster("good"))
    opened()
    built()

    change = taken_back(PAY, incident="1b2c")
    promoted()
    closed()
    built()

    assert staged() == {PAY: "stopped"}
    assert (stable(*PAY), stable("cluster", "good")) == (version(OLD), version(cluster("good")))
    assert state_of(made.change_id) == "stopped"
    quarantine = Quarantine.objects.get()
    assert (quarantine.cause, quarantine.incident, quarantine.released_at) == ("rollout", "1b2c", None)
    row = change_get(public_id=change.change_id)
    assert row.kind == ChangeKind.ROLLBACK.value
    assert row.message == "rollout 1b2c3d4e took back cluster 'pay': 2 of 2 pilots refused it"
    opened()
    built()
    assert candidate(*PAY) == version(OLD)


def test_take_back__names_that_the_rollout_does_not_have__makes_no_change() -> None:
    rollouts(PILOT)
    write(OLD)
    before = Change.objects.count()

    assert not taken_back(PAY).changed
    assert Change.objects.count() == before


@pytest.mark.parametrize("stays_on", [True, False])
def test_release__of_what_was_taken_back__waits_or_is_promoted_where_rollouts_are_off(stays_on: bool) -> None:
    write(OLD)
    rollouts(PILOT)
    made = write(NEW)
    opened()
    taken_back(PAY)
    closed()
    if not stays_on:
        rollouts(ROLLOUT_OFF)
    built()
    before = stable(*PAY)

    quarantine_release(environment_key="default", word="cluster", name="pay", revision=2, reason="why", actor=DANA)
    built()

    assert before == version(OLD)
    assert staged() == ({PAY: "waiting"} if stays_on else {})
    assert state_of(made.change_id) == ("waiting" if stays_on else "promoted")
    assert stable(*PAY) == version(OLD if stays_on else NEW)


def test_write__over_what_was_taken_back__waits_and_the_change_that_was_stopped_stays_so() -> None:
    write(OLD)
    rollouts(PILOT)
    made = write(NEW)
    opened()
    taken_back(PAY)
    closed()

    better = write(NEWER)

    assert staged() == {PAY: "waiting"}
    assert (state_of(made.change_id), state_of(better.change_id)) == ("stopped", "waiting")
    (view,) = names_waiting("default")
    assert (view.from_revision, view.to_revision) == (1, 3)


def test_write__while_a_rollout_is_open__waits_unless_it_touches_a_name_of_it_and_then_joins_whole() -> None:
    rollouts(PILOT)
    write(OLD)
    table = opened()

    apart = write(cluster("apart"))
    joins = write(NEW, cluster("with"))

    assert staged() == {PAY: "candidate", ("cluster", "with"): "candidate", ("cluster", "apart"): "waiting"}
    assert (state_of(apart.change_id), state_of(joins.change_id)) == ("waiting", "candidate")
    found = staged_change(joins.change_id)
    assert found is not None
    assert found.rollout == table.id


def test_close__names_that_are_left__wait_again() -> None:
    rollouts(PILOT)
    made = write(OLD)
    opened()

    closed()
    built()

    assert candidate_side("default") is None
    assert staged() == {PAY: "waiting"}
    assert state_of(made.change_id) == "waiting"
    assert stable(*PAY) == ""


def test_rollouts_turned_off__what_waits_is_promoted_and_what_was_taken_back_is_not() -> None:
    write(OLD)
    rollouts(PILOT)
    write(NEW)
    opened()
    taken_back(PAY)
    closed()
    made = write(cluster("new"))

    rollouts(ROLLOUT_OFF)
    built()
    assert Change.objects.latest("pk").message == "rollouts: pilot → off"

    assert staged() == {PAY: "stopped"}
    assert (stable(*PAY), stable("cluster", "new")) == (version(OLD), version(cluster("new")))
    assert state_of(made.change_id) == "promoted"


def test_close__rollouts_are_off_by_then__what_waits_is_promoted() -> None:
    rollouts(PILOT)
    write(OLD)
    opened()
    rollouts(ROLLOUT_OFF)
    write(cluster("new"))
    waits = staged()

    promoted()
    closed()
    built()

    assert waits == {PAY: "candidate", ("cluster", "new"): "waiting"}
    assert staged() == {}
    assert stable("cluster", "new") == version(cluster("new"))


def test_write__not_staged__reaches_both_sides_and_so_does_what_waited_of_its_names() -> None:
    write(OLD)
    rollouts(PILOT)
    waited = write(NEW, cluster("apart"))

    at_once = write(NEW, cluster("new"), staged=False)
    built()

    assert staged() == {("cluster", "apart"): "waiting"}
    assert (stable(*PAY), stable("cluster", "new")) == (version(NEW), version(cluster("new")))
    assert at_once.changed
    assert staged_change(at_once.change_id) is None
    assert state_of(waited.change_id) == "waiting"


def test_write__not_staged_and_as_it_is_already__promotes_all_the_same() -> None:
    rollouts(PILOT)
    write(OLD)

    made = write(OLD, staged=False)
    built()

    assert made.changed
    assert made.edits == ()
    assert stable(*PAY) == version(OLD)


def test_delete__staged__is_there_for_the_stable_side_and_gone_for_the_candidate_side() -> None:
    write(OLD)
    acknowledged(OLD)
    rollouts(PILOT)
    write(delete=[PAY])

    opened()
    built()
    before = (stable(*PAY), candidate(*PAY), fallback())
    (view,) = names_candidate("default")
    promoted()
    built()

    assert before == (version(OLD), "removed", 1)
    assert (view.deleted, view.from_revision, view.to_revision, view.revision) == (True, 1, None, 2)
    assert (stable(*PAY), fallback()) == ("removed", 0)


def test_immediate_type__reaches_both_sides_at_once() -> None:
    write(cluster("pay", eds=True), endpoints("pay", 80))
    rollouts(PILOT)

    made = write(endpoints("pay", 81))
    built()

    assert staged() == {}
    assert staged_change(made.change_id) is None
    assert stable("endpoint", "pay") == version(endpoints("pay", 81))


def test_immediate_type__deleted_while_the_stable_side_asks_for_it__waits_with_what_asks() -> None:
    write(cluster("pay", eds=True), endpoints("pay", 80), cluster("other", eds=True), endpoints("other", 80))
    rollouts(PILOT)

    write(delete=[PAY, ("endpoint", "pay")])
    write(endpoints("alone", 1), staged=False)
    write(delete=[("endpoint", "alone")])
    built()

    assert staged() == {PAY: "waiting", ("endpoint", "pay"): "waiting"}
    assert stable("endpoint", "pay") == version(endpoints("pay", 80))
    assert stable("endpoint", "alone") == "removed"


def test_immediate_types__one_that_waits_makes_what_it_needs_wait() -> None:
    write(route("shop", "pay"), cluster("pay", eds=True), endpoints("pay", 80))
    rollouts(replace(PILOT, immediate=("endpoint", "cluster")))

    write(delete=[("route", "shop"), PAY, ("endpoint", "pay")])

    assert staged() == {("route", "shop"): "waiting", PAY: "waiting", ("endpoint", "pay"): "waiting"}


def test_rollback__reaches_both_sides_also_where_the_newest_revision_is_as_wanted() -> None:
    write(OLD)
    built()
    write(NEW)
    built()
    rollouts(PILOT)
    write(OLD, cluster("new"))
    write(delete=[("cluster", "new")])
    opened()
    built()

    environment_rollback(environment_key="default", to_epoch=1, reason="why", hold=False, actor=DANA)
    built()

    assert staged() == {}
    assert (stable(*PAY), candidate(*PAY)) == (version(OLD), version(OLD))


def test_sides_moved_last__tells_the_news_of_a_rollout_from_a_write() -> None:
    environment_id = Environment.objects.get(key="default").pk
    rollouts(PILOT)
    write(OLD)

    found = [sides_moved_last(environment_id=environment_id)]
    table = opened()
    found.append(sides_moved_last(environment_id=environment_id))
    stepped(replace(table, step=1))
    found.append(sides_moved_last(environment_id=environment_id))
    write(cluster("new"))
    found.append(sides_moved_last(environment_id=environment_id))
    taken_back(PAY)
    found.append(sides_moved_last(environment_id=environment_id))

    assert found == [False, True, True, False, True]
