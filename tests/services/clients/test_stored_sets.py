"""Sets of what clients have, as they are stored and read again."""

import pytest
from django.db import connection, transaction

from controlplane.clients.held_sets import HeldRow, pack_held
from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.models import HoldingSet
from controlplane.clients.services.holding import held_sets_write
from controlplane.database.aliases import READER
from xdscore.holdings import Holding, HoldingState

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

NAMES = ("ledger", "pay", "shop")


def has(version: str) -> Holding:
    return Holding(HoldingState.ACKED, version, version)


def whole(held_id: str, **versions: str) -> HeldRow:
    return HeldRow(held_id, None, len(versions), pack_held((name, has(each)) for name, each in versions.items()))


def difference(held_id: str, keyframe: str, **versions: str) -> HeldRow:
    packed = pack_held((name, has(each)) for name, each in versions.items())
    return HeldRow(held_id, keyframe, len(NAMES), packed)


def write(*rows: HeldRow) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        held_sets_write(cursor, rows=rows)


@pytest.mark.parametrize("read_before", [False, True])
def test_sets__the_keyframe_was_stored_as_a_difference_by_an_earlier_process__are_read_whole(read_before: bool) -> None:
    first, second, third = (f"{read_before:d}{number}" * 16 for number in (1, 2, 3))
    write(whole(first, ledger="1", pay="1", shop="1"), difference(second, first, pay="2"))
    if read_before:
        assert StoredSets([second]).find(second, "pay") == has("2")

    # A process that started since knows nothing of the first, and takes the second for a keyframe.
    write(whole(second, ledger="1", pay="2", shop="1"), difference(third, second, pay="3"))

    sets = StoredSets([third])
    assert sets.items(third) == {"ledger": has("1"), "pay": has("3"), "shop": has("1")}
    assert sets.find(third, "ledger") == has("1")
    assert HoldingSet.objects.get(pk=second).keyframe_id is None
