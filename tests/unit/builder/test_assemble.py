"""Chunks put together from what changed are those put together from everything (P6)."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.builder.stages.assemble import EMPTY, assemble
from tests.support.chunks import encode_chunks
from xdscore.snapshot import Content, Entry, EntryKey, RemovedName, Served, WithheldName


def entry(number: int) -> Entry:
    match number % 4:
        case 0:
            return RemovedName()
        case 1:
            return WithheldName(f"reason {number}")
        case _:
            return Served(Content(bytes([number]) * 16, str(number), number))


catalogues = st.dictionaries(st.integers(0, 300), st.integers(0, 50), max_size=60)


def entries_of(numbers: dict[int, int]) -> dict[EntryKey, Entry]:
    return {("cluster", f"c{name}"): entry(number) for name, number in numbers.items()}


@given(st.lists(catalogues, min_size=1, max_size=4))
def test_assemble__one_after_the_other__equals_each_from_nothing(states: list[dict[int, int]]) -> None:
    assembly = EMPTY
    for numbers in states:
        entries = entries_of(numbers)

        assembly = assemble(entries, assembly)

        assert assembly.parts == encode_chunks(entries)
        assert sum(assembly.counts.values()) == sum(isinstance(each, Served) for each in entries.values())


def test_assemble__one_of_many_changes__packs_one_chunk() -> None:
    entries = entries_of(dict.fromkeys(range(500), 2))
    before = assemble(entries)

    after = assemble({**entries, ("cluster", "c7"): entry(3)}, before)

    assert sum(one is not other for one, other in zip(before.parts, after.parts, strict=True)) == 1
