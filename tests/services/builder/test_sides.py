"""What a build publishes of two sides, and how far changes have come with it (rollouts.md R2, R4, R6, R7)."""

from dataclasses import replace

import pytest

from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.builder.memory import Memory
from controlplane.builder.models import Build, BuildOutcome
from controlplane.builder.selectors import (
    ChangeState,
    change_progress,
    changes_unfinished,
    covered_at,
    held_name,
    held_names,
)
from controlplane.builder.services import build
from controlplane.catalog.models import Environment, Reference, Revision
from controlplane.catalog.services import proofs_record
from controlplane.catalog.values import ProvenContent
from controlplane.database.aliases import READER
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.selectors import candidate_diff, entries_published, rollout_table
from tests.support.manifests import cluster, route
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
    stepped,
    table_of,
    taken_back,
    version,
    write,
)
from xdscore.access import Effect
from xdscore.snapshot import Served

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

PAY, SHOP = ("cluster", "pay"), ("route", "shop")
OLD, NEW = cluster("pay"), cluster("pay", connect_timeout="2s")


def newest() -> SnapshotRow:
    return SnapshotRow.objects.latest("epoch")


def progress(change: str) -> ChangeState:
    return change_progress(public_id=change).state


def test_build__everything_promoted__makes_the_bytes_that_it_makes_without_rollouts() -> None:
    write(OLD, route("shop", "pay"))
    write(NEW, route("other", "pay"))
    built()
    plain = newest()
    write(OLD, delete=[("route", "other")], staged=False)
    rollouts(PILOT)
    write(NEW, route("other", "pay"))
    opened()
    built()
    meanwhile = newest()

    promoted()
    closed()
    built()

    assert (newest().root_id, newest().access_id, newest().rollout_id) == (plain.root_id, plain.access_id, None)
    assert meanwhile.rollout_id is not None
    assert meanwhile.root_id != plain.root_id


def test_build__a_step_alone__is_a_new_snapshot_of_the_same_root() -> None:
    rollouts(PILOT)
    write(OLD)
    table = opened()
    built()
    before = newest()

    stepped(table_of(500, step=1, rollout=table.id))
    built()

    assert newest().epoch == before.epoch + 1
    assert newest().root_id == before.root_id
    found = rollout_table(environment_key="default")
    assert found is not None
    assert (found.step, found.permille) == (1, 500)


def test_build__something_waits_and_no_rollout_is_open__publishes_nothing() -> None:
    write(OLD)
    built()
    rollouts(PILOT)
    write(NEW)

    built()

    assert newest().epoch == 1
    assert Build.objects.latest("id").outcome == BuildOutcome.UNCHANGED


def test_build__a_worker_that_remembers__sees_every_move_between_the_sides() -> None:
    good = cluster("good", connect_timeout="2s")
    write(OLD, cluster("good"))
    rollouts(PILOT)
    memory, environment_id = Memory(), Environment.objects.get(key="default").pk
    build(environment_id=environment_id, memory=memory)
    write(NEW, good)
    build(environment_id=environment_id, memory=memory)

    opened()
    build(environment_id=environment_id, memory=memory)
    while_open = candidate(*PAY), candidate("cluster", "good"), stable("cluster", "good")
    taken_back(PAY)
    build(environment_id=environment_id, memory=memory)
    after_stop = candidate(*PAY), candidate("cluster", "good")
    promoted()
    build(environment_id=environment_id, memory=memory)
    epoch = newest().epoch
    rollouts(replace(PILOT, silent_percent=5))
    built()  # by a worker that remembers nothing

    assert while_open == (version(NEW), version(good), version(cluster("good")))
    assert after_stop == (version(OLD), version(good))
    assert (stable(*PAY), stable("cluster", "good")) == (version(OLD), version(good))
    assert newest().epoch == epoch


def test_build__candidate_entries__carry_stable_content_as_fallback_and_the_rules_of_their_names() -> None:
    rule = rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, "pay"), actor=DANA)
    write(OLD)
    rollouts(PILOT)
    write(NEW, cluster("free"))
    proofs_record(proven=[ProvenContent("default", "cluster", "pay", version(NEW))])

    opened()
    built()

    assert rule is not None
    before, diff = entries_published(environment_key="default")[PAY], candidate_diff(environment_key="default")
    assert isinstance(before, Served)
    pay, free = diff[PAY], diff["cluster", "free"]
    assert isinstance(pay, Served)
    assert isinstance(free, Served)
    assert (pay.content.version, pay.proven, pay.rules) == (version(NEW), before.content, before.rules)
    assert before.proven is None
    assert free.rules == ()


def test_build__a_candidate_refers_to_nothing__is_held_back_and_the_stable_side_stays() -> None:
    write(route("shop", "pay"), OLD)
    rollouts(PILOT)
    made = write(route("shop", "nowhere"), cluster("good"))

    opened()
    built()

    held = held_names(environment_key="default", keys=[SHOP])[SHOP]
    assert held.served
    assert [finding.code for finding in held.findings] == ["XDS2002"]
    assert candidate(*SHOP) == stable(*SHOP) == version(route("shop", "pay"))
    assert candidate("cluster", "good") == version(cluster("good"))
    assert [each.name for each in change_progress(public_id=made.change_id).held] == ["shop"]


def test_build__a_candidate_deletes_what_a_new_route_of_the_stable_side_needs__each_side_is_closed_by_itself() -> None:
    write(route("shop", "pay"), OLD)
    rollouts(PILOT)
    write(delete=[PAY])

    opened()
    built()

    assert (stable(*SHOP), stable(*PAY)) == (version(route("shop", "pay")), version(OLD))
    assert (candidate(*SHOP), candidate(*PAY)) == ("withheld", "removed")
    assert held_name(environment_key="default", word="route", name="shop") is None


def test_build__what_was_taken_back__is_held_back_as_rejected() -> None:
    write(OLD)
    rollouts(PILOT)
    write(NEW, cluster("new"))
    opened()
    taken_back(PAY, ("cluster", "new"))

    built()

    held = held_names(environment_key="default", keys=[PAY, ("cluster", "new")])
    assert {key: (each.rejected, each.served) for key, each in held.items()} == {
        PAY: (True, True),
        ("cluster", "new"): (True, False),
    }


def test_build__one_type_fails__the_candidate_side_keeps_what_it_has_of_it() -> None:
    write(OLD, route("shop", "pay"))
    rollouts(PILOT)
    write(NEW, route("shop", "pay", domain="x.example"))
    opened()
    built()
    before = candidate(*SHOP)
    revision = Revision.objects.filter(resource__name="shop").latest("pk")
    Reference.objects.create(revision=revision, to_type="of-tomorrow", to_name="x")
    write(cluster("pay", connect_timeout="3s"))

    built()

    assert before == version(route("shop", "pay", domain="x.example"))
    assert candidate(*SHOP) == before
    assert candidate(*PAY) == version(cluster("pay", connect_timeout="3s"))
    assert stable(*SHOP) == version(route("shop", "pay"))


def test_change_progress__by_a_rollout__is_saved_then_candidate_then_published_by_its_promotion() -> None:
    write(OLD)
    rollouts(PILOT)
    built()
    made = write(NEW)
    found = [progress(made.change_id)]
    built()
    found.append(progress(made.change_id))
    opened()
    built()
    found.append(progress(made.change_id))
    unfinished = changes_unfinished(public_ids=[made.change_id])
    promoted()
    found.append(progress(made.change_id))
    built()
    epoch = newest().epoch
    closed()
    built()

    published = change_progress(public_id=made.change_id)
    assert found == [ChangeState.SAVED, ChangeState.SAVED, ChangeState.CANDIDATE, ChangeState.CANDIDATE]
    assert unfinished == {made.change_id}
    assert (published.state, published.epoch) == (ChangeState.PUBLISHED, epoch)
    assert changes_unfinished(public_ids=[made.change_id]) == frozenset()
    covered = Build.objects.get(epoch=epoch, outcome=BuildOutcome.PUBLISHED)
    assert covered_at(environment_key="default", generations=[made.generation]) == {made.generation: covered.at}


def test_change_progress__taken_back__is_stopped_and_nobody_waits_longer() -> None:
    write(OLD)
    rollouts(PILOT)
    made = write(NEW, cluster("good"))
    opened()

    taken_back(PAY)
    with_the_rest_on_its_way = changes_unfinished(public_ids=[made.change_id])
    promoted()
    closed()
    before_any_build = changes_unfinished(public_ids=[made.change_id])
    built()

    stopped = change_progress(public_id=made.change_id)
    assert stopped.state is ChangeState.STOPPED
    assert stopped.state.final
    assert [each.name for each in stopped.held] == ["pay"]
    assert with_the_rest_on_its_way == {made.change_id}
    assert before_any_build == frozenset()
    assert changes_unfinished(public_ids=[made.change_id]) == frozenset()


def test_change_progress__written_over_while_it_waits__is_superseded() -> None:
    rollouts(PILOT)
    first = write(OLD)
    second = write(NEW)

    built()

    assert (progress(first.change_id), progress(second.change_id)) == (ChangeState.SUPERSEDED, ChangeState.SAVED)


def test_change_progress__builds_fail_while_it_waits__has_failed_only_if_none_covered_it() -> None:
    rollouts(PILOT)
    built()
    made = write(OLD)
    environment = Environment.objects.get(key="default")
    for _ in range(3):
        Build.objects.create(
            environment=environment, from_generation=1, to_generation=made.generation, outcome=BuildOutcome.FAILED
        )
    failed = progress(made.change_id), changes_unfinished(public_ids=[made.change_id])
    built()

    assert failed == (ChangeState.FAILED, frozenset())
    assert progress(made.change_id) is ChangeState.SAVED
    assert changes_unfinished(public_ids=[made.change_id]) == {made.change_id}
