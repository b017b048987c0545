"""Repeats that are folded: nothing is lost, nothing moves, and only neighbours are folded."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from controlplane.listing.runs import runs


@given(st.lists(st.sampled_from("abc"), max_size=20))
def test_runs__any_list__hold_every_item_once_in_order_and_no_two_neighbours_say_the_same(words: list[str]) -> None:
    items = list(enumerate(words))

    found = runs(items, lambda item: item[1])

    assert [item for run in found for item in run.items] == items
    assert all(before.first[1] != after.first[1] for before, after in itertools.pairwise(found))
    assert all((run.first, *run.more) == tuple(run.items) and run.last == run.items[-1] for run in found)
