"""Which events a watcher wants, and what an announcement may say."""

import pytest

from controlplane.tail.values import ALL_KINDS, Filter, Interest, Kind, Subject

ABOUT = Subject(Kind.SENT, "id-1", "node-1", "cluster", {"pay"}.__contains__)
OF_STREAM = Subject(Kind.OPENED, "id-1", "node-1")


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(),
        Filter(client="id-1"),
        Filter(client="node-1"),
        Filter(word="cluster"),
        Filter(name="pay"),
        Filter("node-1", "cluster", "pay", frozenset({Kind.SENT})),
    ],
)
def test_filter__what_it_asks_for__is_wanted(wanted: Filter) -> None:
    assert wanted.wants(ABOUT)


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(client="node-2"),
        Filter(word="listener"),
        Filter(name="pa"),
        Filter(kinds=frozenset({Kind.ACKED})),
        Filter("node-2", "cluster", "pay"),
    ],
)
def test_filter__anything_else__is_not_wanted(wanted: Filter) -> None:
    assert not wanted.wants(ABOUT)


def test_filter__by_type_or_name__leaves_out_what_is_about_the_stream_as_a_whole() -> None:
    assert Filter(client="id-1").wants(OF_STREAM)
    assert not Filter(word="cluster").wants(OF_STREAM)
    assert not Filter(name="pay").wants(OF_STREAM)


def test_interest__as_json__is_read_back_and_kinds_of_the_next_release_are_left_out() -> None:
    interest = Interest("c", "default", Filter("id-1", "cluster", "pay", frozenset({Kind.SENT, Kind.NACKED})))
    spoken = interest.as_json()

    assert Interest.of_json(spoken) == interest
    assert Interest.of_json({**spoken, "kinds": ["sent", "pondered"]}).wanted.kinds == {Kind.SENT}
    assert Interest.of_json(Interest("c", "default", Filter()).as_json()).wanted.kinds == ALL_KINDS


@pytest.mark.parametrize("wrong", [{"environment": 1}, {"type": "colour"}, {"kinds": 3}])
def test_interest__of_another_shape__is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Interest.of_json({**Interest("c", "default", Filter()).as_json(), **wrong})
