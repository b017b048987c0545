"""What a process remembers of the environments it built, so that the next build costs what changed.

It only saves work: a build without memory makes the same bytes (reliability P6). Every process remembers for itself.
"""

from dataclasses import dataclass

from controlplane.builder.stages.assemble import EMPTY, Assembly
from controlplane.builder.stages.permit import NOTHING as NO_RULES
from controlplane.builder.stages.permit import Permitted
from controlplane.catalog.heads import CatalogState

# Names in all; about a kilobyte each, so that the memory of a worker stays below 400 MiB (performance.md).
MAX_NAMES = 150_000


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a worker keeps of one environment's last build: the catalogue, its entries with their access rules, the
    chunks made of them, and the contents that Envoy has accepted, where it is asked.
    """

    state: CatalogState | None = None
    permitted: Permitted = NO_RULES
    assembly: Assembly = EMPTY
    accepted: frozenset[bytes] = frozenset()


NOTHING = Remembered()


class Memory:
    """What builds of this process remember, by environment, the latest last. A build takes what it uses and brings back
    what it knows then, so that two threads never share it.
    """

    def __init__(self, max_names: int = MAX_NAMES) -> None:
        self._max_names = max_names
        self._known: dict[int, Remembered] = {}

    def take(self, environment_id: int) -> Remembered:
        """What is remembered of an environment, removed from the memory; `NOTHING` where nothing is."""
        return self._known.pop(environment_id, NOTHING)

    def bring(self, environment_id: int, remembered: Remembered) -> None:
        """Remember this of an environment; where that is too much in all, those used longest ago are forgotten."""
        self._known[environment_id] = remembered
        while sum(_names(each) for each in self._known.values()) > self._max_names:
            del self._known[next(iter(self._known))]


def _names(remembered: Remembered) -> int:
    return len(remembered.state.heads) if remembered.state is not None else 0
