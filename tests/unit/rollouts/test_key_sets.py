"""Sets of names as numbers, beside sets of Python."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.rollouts.key_sets import Universe

# More than fit into one byte, and none whose number of names is a multiple of eight alone.
KEYS = [(word, str(number)) for word in ("cluster", "route") for number in range(10)]
SOME = st.frozensets(st.sampled_from(KEYS))


@given(st.frozensets(st.sampled_from(KEYS)), SOME, SOME)
def test_key_set__two_of_a_universe__are_as_sets_of_python(
    known: frozenset[tuple[str, str]], one: frozenset[tuple[str, str]], other: frozenset[tuple[str, str]]
) -> None:
    universe = Universe(known)
    first, second = universe.of(one), universe.of(other)
    one, other = one & known, other & known

    assert (list(first), len(first), bool(first)) == (sorted(one), len(one), bool(one))
    assert (frozenset(first | second), frozenset(first & second), frozenset(first - second)) == (
        one | other,
        one & other,
        one - other,
    )
    assert (first <= second, first == second, first != second) == (one <= other, one == other, one != other)
    assert first != second or hash(first) == hash(second)
    assert [key in first for key in KEYS] == [key in one for key in KEYS]


@given(SOME, SOME)
def test_key_set__beside_a_set_of_python__is_as_one(
    one: frozenset[tuple[str, str]], other: frozenset[tuple[str, str]]
) -> None:
    first = Universe(KEYS).of(one)

    assert (first | other, first & other, first - other) == (one | other, one & other, one - other)
    assert (frozenset(other | first), frozenset(other - first), first <= other) == (
        one | other,
        other - one,
        one <= other,
    )


def test_key_set__of_another_universe__is_another_set_of_the_same_names() -> None:
    first, second = Universe(KEYS).of(KEYS[:3]), Universe(KEYS[:5]).of(KEYS[:3])

    assert first != second
    assert set(first) == set(second)
    assert first <= second
    assert first - second == frozenset()
