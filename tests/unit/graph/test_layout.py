"""Where nodes are drawn: to the right of what refers to them, never over each other, and always alike."""

from itertools import combinations, pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from controlplane.graph.layout import NODE_HEIGHT, NODE_WIDTH, layout_of
from controlplane.graph.model import Edge, Graph, Node, NodeState
from xdscore.snapshot import EntryKey

WORDS = ("listener", "route", "cluster", "endpoint", "secret")


def graph_of(*edges: tuple[EntryKey, EntryKey], alone: tuple[EntryKey, ...] = ()) -> Graph:
    """The graph with these references, and with nodes that have none."""
    keys = sorted({*alone, *(key for edge in edges for key in edge)})
    nodes = tuple(Node(*key, NodeState.PUBLISHED, 1, 0, 0, 0, 0) for key in keys)
    return Graph(nodes, tuple(Edge(*edge, "/x") for edge in sorted(set(edges))))


def places(graph: Graph) -> dict[EntryKey, tuple[int, int]]:
    return dict(zip((node.key for node in graph.nodes), layout_of(graph).places, strict=True))


def apart(graph: Graph) -> bool:
    """Whether no node covers another."""
    found = sorted(places(graph).values())
    return all(abs(a[0] - b[0]) >= NODE_WIDTH or abs(a[1] - b[1]) >= NODE_HEIGHT for a, b in combinations(found, 2))


def test_layout__of_a_chain__goes_from_left_to_right() -> None:
    chain = [("listener", "z"), ("route", "y"), ("cluster", "x"), ("endpoint", "w")]

    found = places(graph_of(*pairwise(chain)))

    assert [found[key][0] for key in chain] == sorted({x for x, _ in found.values()})
    assert len({y for _, y in found.values()}) == 1


def test_layout__a_type_that_two_others_name__stands_to_the_right_of_both() -> None:
    found = places(
        graph_of(
            (("listener", "a"), ("secret", "s")),
            (("listener", "a"), ("cluster", "c")),
            (("cluster", "c"), ("secret", "s")),
        )
    )

    assert found["listener", "a"][0] < found["cluster", "c"][0] < found["secret", "s"][0]


def test_layout__references_in_a_circle__are_drawn_all_the_same() -> None:
    circle = graph_of(
        (("cluster", "a"), ("extension", "b")),
        (("extension", "b"), ("cluster", "a")),
        (("cluster", "a"), ("cluster", "a")),
    )

    assert apart(circle)


def test_layout__one_that_names_hundreds__has_the_shape_of_a_window() -> None:
    layout = layout_of(graph_of(*((("route", "r"), ("cluster", f"c{number:03}")) for number in range(400))))

    assert 0.5 < layout.width / layout.height < 4


def test_layout__neighbours__stand_at_one_height() -> None:
    # By name alone, the references of a would cross those of b.
    found = places(
        graph_of(
            (("route", "a"), ("cluster", "z")), (("route", "b"), ("cluster", "y")), (("route", "b"), ("cluster", "z"))
        )
    )

    assert (found["route", "a"][1] < found["route", "b"][1]) == (found["cluster", "z"][1] < found["cluster", "y"][1])


KEYS = st.sampled_from(list(product(WORDS, "abcd")))


@given(st.lists(st.tuples(KEYS, KEYS), max_size=40), st.lists(KEYS, max_size=10))
def test_layout__of_any_graph__has_every_node_once_within_the_picture_and_alike(
    edges: list[tuple[EntryKey, EntryKey]], alone: list[EntryKey]
) -> None:
    graph = graph_of(*edges, alone=tuple(alone))

    layout = layout_of(graph)

    assert apart(graph)
    assert all(0 <= x <= layout.width - NODE_WIDTH and 0 <= y <= layout.height - NODE_HEIGHT for x, y in layout.places)
    assert layout_of(graph) == layout
