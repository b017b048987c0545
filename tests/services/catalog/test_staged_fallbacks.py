"""What is fallen back to while content is staged, and what a quarantine does then (rollouts.md R6, R7)."""

import pytest

from controlplane.catalog.choices import QuarantineCause
from controlplane.catalog.models import Change, Resource, RevisionProof
from controlplane.catalog.selectors import revision_origin
from controlplane.catalog.services import (
    proofs_record,
    quarantine_open,
    quarantine_release,
)
from controlplane.catalog.staging import (
    staged_changes,
)
from controlplane.catalog.values import ProvenContent
from controlplane.database.aliases import READER
from tests.support.manifests import cluster
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
    pk = Change.objects.get(public_id=change).pk
    found = staged_changes(changes=[pk]).get(pk)
    return found.state.value if found is not None else ""


def acknowledged(tree: dict[str, object], name: str = "pay", word: str = "cluster") -> None:
    proofs_record(proven=[ProvenContent("default", word, name, version(tree))])


def fallback(name: str = "pay") -> int:
    row = Resource.objects.select_related("proven").get(name=name, type="cluster")
    return row.proven.number if row.proven is not None else 0


def test_acknowledged__by_the_cohort__is_a_fallback_only_once_it_is_promoted() -> None:
    write(OLD)
    acknowledged(OLD)
    rollouts(PILOT)
    write(NEW)
    opened()

    acknowledged(NEW)
    before = fallback()
    promoted()

    assert RevisionProof.objects.count() == 2
    assert (before, fallback()) == (1, 2)


def test_acknowledged__a_revision_that_was_never_promoted__is_no_fallback_afterwards_either() -> None:
    write(OLD)
    acknowledged(OLD)
    rollouts(PILOT)
    write(NEW)
    opened()
    acknowledged(NEW)
    write(NEWER)
    promoted()
    closed()

    RevisionProof.objects.filter(revision__number=2).delete()
    acknowledged(NEW)  # its words were late
    late = fallback()
    acknowledged(NEWER)
    quarantine_open(
        environment_key="default",
        word="cluster",
        name="pay",
        revision=3,
        cause=QuarantineCause.OPERATOR,
        reason="why",
        actor=DANA,
    )

    assert late == 1
    assert fallback() == 1


def test_write__again_what_only_the_cohort_acknowledged__is_no_fallback_before_it_is_promoted() -> None:
    write(OLD)
    acknowledged(OLD)
    rollouts(PILOT)
    write(NEW)
    opened()
    acknowledged(NEW)
    write(NEWER)

    write(NEW)
    before = fallback()
    promoted()

    assert (before, fallback()) == (1, 4)


def test_quarantine__of_what_the_stable_side_has_while_another_waits__falls_back_on_that_side() -> None:
    write(OLD)
    acknowledged(OLD)
    write(NEW)
    rollouts(PILOT)
    write(NEWER)

    origin = revision_origin(environment_key="default", word="cluster", name="pay", version=version(NEW))
    quarantine_open(
        environment_key="default",
        word="cluster",
        name="pay",
        revision=2,
        cause=QuarantineCause.AUTOMATIC,
        reason="why",
        actor=DANA,
    )
    built()

    assert origin is not None
    assert origin.current
    assert stable(*PAY) == version(OLD)
    assert staged() == {PAY: "waiting"}


@pytest.mark.parametrize("opens", [True, False])
def test_quarantine__of_what_is_staged__keeps_it_from_both_sides_until_it_is_released(opens: bool) -> None:
    write(OLD)
    rollouts(PILOT)
    made = write(NEW)
    if opens:
        opened()

    quarantine_open(
        environment_key="default",
        word="cluster",
        name="pay",
        revision=2,
        cause=QuarantineCause.OPERATOR,
        reason="why",
        actor=DANA,
    )
    built()
    while_quarantined = staged(), stable(*PAY), candidate(*PAY), state_of(made.change_id)
    quarantine_release(environment_key="default", word="cluster", name="pay", revision=2, reason="why", actor=DANA)

    assert while_quarantined == ({PAY: "stopped"}, version(OLD), version(OLD), "stopped")
    assert staged() == {PAY: "waiting"}
    assert state_of(made.change_id) == "waiting"
