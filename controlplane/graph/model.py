"""What a graph is made of: resources, and the references between them. Pure values.

Nodes and edges are tuples: there are thousands of each, and a tuple is made in a fifth of the time.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

from controlplane.status.values import Status
from xdscore.snapshot import EntryKey


class NodeState(StrEnum):
    """How a node of the graph stands, in one word: the status of its resource (interfaces.md section 8), or one of the
    three that only a graph can tell.
    """

    PUBLISHED = Status.PUBLISHED.value
    WAITING = Status.WAITING.value
    STALLED = Status.STALLED.value
    REFUSED = Status.REFUSED.value
    QUARANTINED = Status.QUARANTINED.value
    WITHHELD = Status.WITHHELD.value
    MISSING = "missing"  # a resource refers to it, or the client asks for it, and it does not exist
    ELSEWHERE = "elsewhere"  # another control plane has it, by the authority in its xdstp name
    UNUSED = "unused"  # published; no resource refers to it, and no connected client asks for it


_OF_STATUS: Final = {status: NodeState(status.value) for status in Status}


class Sight(StrEnum):
    """What one client has to expect under a name."""

    SERVED = "served"  # it asks for the name, and is to have the resource
    ERROR = "error"  # it asks for the name, and is told that it cannot have it, and why (xRFC TP3)
    UNDECIDED = "undecided"  # it asks for the name, and nothing can be said of that now
    NOT_ASKED = "not_asked"  # what it is served refers to the name, and it does not ask for it


class Node(NamedTuple):
    """A resource in the graph, or a name that something refers to.

    `revision`: the number of the newest revision; None where there is no such resource.
    `asked_by`: how many connected clients ask for it.
    `uses`, `used_by`: how many names it refers to, and how many resources refer to it, shown or not.
    `more`: how many of these references lead to what the graph does not show.
    `sight`: what the client gets for the name, in the graph of what one client sees; else None.
    """

    type: str
    name: str
    state: NodeState
    revision: int | None
    asked_by: int
    uses: int
    used_by: int
    more: int
    sight: Sight | None = None

    @property
    def key(self) -> EntryKey:
        """The type word and the name."""
        return self.type, self.name

    @property
    def exists(self) -> bool:
        """Whether the node is a resource of the environment, which has a page."""
        return self.revision is not None


class Edge(NamedTuple):
    """A reference: the resource `source` refers to `target` in the field of its manifest to which `pointer` leads."""

    source: EntryKey
    target: EntryKey
    pointer: str


@dataclass(frozen=True)
class Graph:
    """Nodes by type and name, and the references between them (`edges`), by source and target.

    `focus`: the nodes that the graph was asked for, with everything else around them; none for a whole environment.
    `left_out`: how many nodes belong to the graph and are not in it, because it would be too large.
    `more_left_out`: whether there are still others than those, which nobody counted.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    focus: tuple[EntryKey, ...] = ()
    left_out: int = 0
    more_left_out: bool = False

    @cached_property
    def counts(self) -> Mapping[NodeState, int]:
        """How many nodes stand so, for each state that a node has, in the order of the states."""
        counted = Counter(node.state for node in self.nodes)
        return {state: counted[state] for state in NodeState if counted[state]}

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The references as positions in `nodes`: (source, target) of each edge, in the order of `edges`."""
        at = self.positions
        return tuple((at[source], at[target]) for source, target, _ in self.edges)

    @cached_property
    def positions(self) -> Mapping[EntryKey, int]:
        """The position of each node in `nodes`, by type and name."""
        return {node.key: position for position, node in enumerate(self.nodes)}


def node_state(status: Status | None, *, elsewhere: bool, used_by: int, asked_by: int) -> NodeState:
    """How a node stands. `status`: that of the resource; None where there is none. `elsewhere`: whether another control
    plane has the name. `used_by`, `asked_by`: how many resources refer to it, and how many clients ask for it.
    """
    if status is None:
        return NodeState.ELSEWHERE if elsewhere else NodeState.MISSING
    if status is Status.PUBLISHED and not used_by and not asked_by:
        return NodeState.UNUSED
    return _OF_STATUS[status]
