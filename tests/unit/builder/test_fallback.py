"""What is served of a name: its head, its last proven revision, or a reason why neither."""

import pytest

from controlplane.builder.stages.fallback import REJECTED, Cause, HeldBack, resolve
from controlplane.catalog.heads import Head
from xdscore.snapshot import Content, Entry, RemovedName, Served, WithheldName

KEY = ("cluster", "pay")
NEW = Content(b"\1" * 16, "new", 10)
OLD = Content(b"\2" * 16, "old", 10)


@pytest.mark.parametrize(
    ("head", "entry", "held"),
    [
        (Head(KEY, NEW, False, None, False), Served(NEW, None), ()),
        (Head(KEY, NEW, False, OLD, False), Served(NEW, OLD), ()),
        (Head(KEY, NEW, False, OLD, True), Served(NEW, None), ()),
        (Head(KEY, NEW, True, OLD, False), Served(OLD, OLD), (HeldBack(KEY, Cause.REJECTED, REJECTED, True),)),
        (Head(KEY, NEW, True, OLD, True), WithheldName(REJECTED), (HeldBack(KEY, Cause.REJECTED, REJECTED, False),)),
        (Head(KEY, NEW, True, None, False), WithheldName(REJECTED), (HeldBack(KEY, Cause.REJECTED, REJECTED, False),)),
        (Head(KEY, None, False, OLD, False), RemovedName(), ()),
    ],
)
def test_resolve__one_head__falls_back_as_the_quarantine_says(
    head: Head, entry: Entry, held: tuple[HeldBack, ...]
) -> None:
    resolution = resolve({KEY: head})

    assert resolution.entries == {KEY: entry}
    assert resolution.held == held


def test_resolve__one_resource_in_quarantine__its_neighbour_is_untouched() -> None:
    neighbour = Head(("cluster", "ledger"), NEW, False, None, False)

    resolution = resolve({KEY: Head(KEY, NEW, True, None, False), neighbour.key: neighbour})

    assert resolution.entries[neighbour.key] == Served(NEW, None)
