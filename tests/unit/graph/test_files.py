"""Graphs as files: what others wrote is a text in them, and never a part of their language."""

import re
from xml.etree import ElementTree as ET

import pytest

from controlplane.graph.dot import dot_of
from controlplane.graph.model import Edge, Graph, Node, NodeState, Sight, node_state
from controlplane.graph.svg import svg_of
from controlplane.status.values import Status

HOSTILE = '"];x[label="</title><script>alert(1)</script>\\N\\\x00\x1b\u202e\ufffe]]>&'


def graph(name: str = "pay", **more: object) -> Graph:
    nodes = (
        Node("cluster", name, NodeState.MISSING, None, 0, 0, 1, 0),
        Node("route", "edge", NodeState.REFUSED, 3, 2, 1, 0, 0, Sight.NOT_ASKED),
    )
    return Graph(nodes, (Edge(("route", "edge"), ("cluster", name), f"/virtual_hosts/{name}"),), **more)  # type: ignore[arg-type]


def test_dot__of_a_graph__names_states_and_references() -> None:
    text = dot_of(graph(left_out=7))

    assert 'n0 [label="cluster\\npay\\nmissing", style=dashed];' in text
    assert 'n1 [label="route\\nedge\\nr3 · refused · not asked · asked by 2", style=bold];' in text
    assert 'n1 -> n0 [tooltip="/virtual_hosts/pay"];' in text
    assert "7 other resources" in text


def test_dot__hostile_name__stays_within_its_quotes() -> None:
    text = dot_of(graph(HOSTILE))

    without_strings = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    assert "script" not in without_strings
    assert without_strings.count("[") == without_strings.count("];") == 4
    assert not re.search(r"[\x00-\x08\x1b\u202e]", text)


def test_svg__hostile_name__is_text_in_a_sound_document() -> None:
    root = ET.fromstring(svg_of(graph(HOSTILE), title=HOSTILE))  # noqa: S314 - our own

    tags = {each.tag.rpartition("}")[2] for each in root.iter()}
    assert tags == {"svg", "title", "rect", "g", "path", "text"}
    assert not re.search(r"[\x00-\x08\x1b\u202e]", "".join(root.itertext()))


def test_svg__of_a_graph__says_what_it_leaves_out() -> None:
    text = svg_of(graph(left_out=1, more_left_out=True), title="Resources of default")

    assert "At least 1 other resource not shown" in text
    assert "route edge: r3 · refused" in text


@pytest.mark.parametrize(
    ("status", "used_by", "asked_by", "expected"),
    [
        (Status.PUBLISHED, 0, 0, NodeState.UNUSED),
        (Status.PUBLISHED, 1, 0, NodeState.PUBLISHED),
        (Status.PUBLISHED, 0, 1, NodeState.PUBLISHED),
        (Status.REFUSED, 0, 0, NodeState.REFUSED),
        (None, 1, 0, NodeState.MISSING),
    ],
)
def test_state__of_a_node__is_the_status_unless_only_a_graph_can_tell(
    status: Status | None, used_by: int, asked_by: int, expected: NodeState
) -> None:
    assert node_state(status, elsewhere=False, used_by=used_by, asked_by=asked_by) is expected


@pytest.mark.parametrize("status", list(Status))
def test_state__of_every_status__has_its_word(status: Status) -> None:
    assert node_state(status, elsewhere=False, used_by=1, asked_by=1).value == status.value


def test_state__of_another_control_planes_name__is_not_missing() -> None:
    assert node_state(None, elsewhere=True, used_by=1, asked_by=0) is NodeState.ELSEWHERE
