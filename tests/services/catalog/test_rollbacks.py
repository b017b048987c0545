"""What a rollback took back, and which change is in force again."""

import pytest

from controlplane.catalog.rollbacks import Turn, in_force, undone_by, undone_of
from controlplane.catalog.selectors import change_get
from controlplane.database.aliases import READER
from controlplane.snapshots.rollback import environment_rollback
from tests.services.incidents.fleet import DANA, publish, rebuild
from tests.support.manifests import cluster

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]


def back(epoch: int) -> str:
    made = environment_rollback(environment_key="default", to_epoch=epoch, reason="why", hold=False, actor=DANA)
    rebuild()
    return made.change_id


def undone(*changes: str) -> list[str]:
    """Of each change, the rollback that took it back."""
    rows = [change_get(public_id=change) for change in changes]
    found = undone_by(environment_key="default", changes=rows)
    return [str(found[row.generation].public_id) if row.generation in found else "" for row in rows]


def test_rollback__changes_in_between__are_taken_back_by_it_and_no_others() -> None:
    first = publish(cluster("pay"))
    second = publish(cluster("pay", connect_timeout="2s"))
    third = publish(cluster("pay", connect_timeout="3s"), cluster("new"))

    way_back = back(1)

    assert undone(first, second, third, way_back) == ["", way_back, way_back, ""]
    rows, count = undone_of(change=change_get(public_id=way_back), limit=1)
    assert ([str(row.public_id) for row in rows], count) == ([third], 2)
    assert undone_of(change=change_get(public_id=third), limit=9) == ((), 0)


def test_rollback__that_is_rolled_back__puts_what_it_took_back_in_force_again() -> None:
    publish(cluster("pay"))
    second = publish(cluster("pay", connect_timeout="2s"))
    way_back = back(1)

    again = back(2)

    assert undone(second, way_back, again) == ["", again, ""]


def test_rollback__what_a_change_wrote_is_current_all_the_same__is_not_called_rolled_back() -> None:
    publish(cluster("pay"))
    other = publish(cluster("pay", connect_timeout="2s"))
    by_hand = publish(cluster("pay"))

    way_back = back(1)

    assert way_back == ""  # it is so already: there is nothing to go back
    publish(cluster("new"))
    assert undone(other, by_hand) == ["", ""]
    way_back = back(1)
    assert undone(other, by_hand) == [way_back, ""]


def decided(generation: int, *turns: Turn, resources: bool = True) -> int:
    """The generation of what took a change back; 0 where it is in force."""
    found = in_force(generation, turns, resources=resources)
    return found.generation if found is not None else 0


def test_in_force__undone__until_the_undo_is() -> None:
    undo, redo = Turn(5, undoes=3), Turn(6, undoes=5)

    assert decided(3, undo) == 5
    assert decided(4, undo) == 0
    assert decided(3, undo, redo) == 0
    assert decided(5, undo, redo) == 6
    assert decided(3, undo, redo, Turn(7, undoes=6)) == 5
    assert decided(3, undo, redo, Turn(7, undoes=3)) == 7
    assert decided(3, undo, resources=False) == 5


def test_in_force__rollbacks_and_undos_of_them__what_was_before_counts() -> None:
    rollback, taken_back = Turn(5, back_to=2), Turn(6, undoes=5)

    assert decided(3, rollback, taken_back) == 0
    assert decided(5, rollback, taken_back) == 6
    assert decided(3, rollback, taken_back, Turn(7, undoes=6)) == 5
    assert decided(3, Turn(4, undoes=3), Turn(5, back_to=3)) == 0  # back to where it was in force
    assert decided(3, Turn(4, undoes=3), Turn(6, back_to=4)) == 4
    assert decided(3, rollback, resources=False) == 0  # rollbacks leave access as it is
    assert decided(3, Turn(4, undoes=3), rollback, resources=False) == 4


def test_in_force__many_rollbacks__only_what_held_at_the_end_counts() -> None:
    def by(generation: int, *pairs: tuple[int, int]) -> int:
        return decided(generation, *(Turn(made, back_to=to) for made, to in pairs))

    assert by(3) == 0
    assert by(3, (5, 2)) == 5
    assert by(3, (5, 3)) == 0
    assert by(3, (5, 2), (7, 4)) == 0  # as it was before the first
    assert by(3, (5, 2), (7, 6)) == 5  # as it was after the first
    assert by(3, (5, 2), (7, 4), (9, 5)) == 5
    assert by(8, (5, 2)) == 0
