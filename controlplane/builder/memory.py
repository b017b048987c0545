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
    """What a worker keeps of an environment's last build, so that the next one costs only what changed.

    `state`: the catalogue as it was read.
    `permitted`: what is served of each name, with the access rules that match the name.
    `assembly`: the chunks of bytes made of it.
    `accepted`: the hashes of the contents that Envoy accepted; empty where Envoy is not asked.
    """

    state: CatalogState | None = None
    permitted: Permitted = NO_RULES
    assembly: Assembly = EMPTY
    accepted: frozenset[bytes] = frozenset()


NOTHING = Remembered()


class Memory:
    """What this process remembers of its builds, by environment, the one used last at the end. A build takes its
    environment's part out and puts the new one back in, so that two threads never share one.
    """

    def __init__(self, max_names: int = MAX_NAMES) -> None:
        self._max_names = max_names
        self._known: dict[int, Remembered] = {}

    def take(self, environment_id: int) -> Remembered:
        """Remove what is remembered of an environment from the memory and return it; `NOTHING` where nothing is
        remembered.
        """
        return self._known.pop(environment_id, NOTHING)

    def bring(self, environment_id: int, remembered: Remembered) -> None:
        """Remember `remembered` of an environment. Where the memory then holds too much, the environments used longest
        ago are forgotten.
        """
        self._known[environment_id] = remembered
        while sum(_names(each) for each in self._known.values()) > self._max_names:
            del self._known[next(iter(self._known))]


def _names(remembered: Remembered) -> int:
    return len(remembered.state.heads) if remembered.state is not None else 0
