"""What one response did to the entries of a type, and what is answered to it."""

from dataclasses import dataclass, field

from xdsclient.engine.collection import Collection
from xdsclient.engine.entry import Entry
from xdsclient.engine.events import Gone, Nack
from xdsclient.engine.policy import Policy
from xdsclient.engine.values import StatusCode

# Servers keep about as much of a NACK (reliability (e): text <= 4096); the first problems matter most.
_MAX_NACK_CHARS = 4000


@dataclass(frozen=True, slots=True)
class Answer:
    """The ACK or NACK that is due for the response with this nonce."""

    nonce: str
    nack: Nack | None


@dataclass(slots=True)
class Taken:
    """The effects of one response. `problems` are in the order they were found, in C-core's wording (clients.md section
    4).

    Watches are told of the entries in `touched`, then of members that are gone, then of collections as a whole.
    """

    server: int
    policy: Policy
    now: float
    valid: int = 0
    invalid: int = 0
    problems: list[str] = field(default_factory=list)
    touched: dict[str, Entry] = field(default_factory=dict)
    gone: list[Gone] = field(default_factory=list)
    collections: dict[str, Collection] = field(default_factory=dict)
    # Collections that the response refuses.
    refused: set[str] = field(default_factory=set)
    # Names the response says something about.
    seen: set[str] = field(default_factory=set)
    # A resource without a readable name may be any of them.
    blind: bool = False

    @property
    def nack(self) -> Nack | None:
        """The NACK for the response as a whole; None when the response is acceptable."""
        if not self.problems:
            return None
        shown: list[str] = []
        room = _MAX_NACK_CHARS
        for problem in self.problems:
            room -= len(problem) + 2
            if room < 0 and shown:
                break
            shown.append(problem[:_MAX_NACK_CHARS])
        if len(shown) < len(self.problems):
            shown.append(f"and {len(self.problems) - len(shown)} more")
        return Nack(StatusCode.INVALID_ARGUMENT, f"xDS response validation errors: [{'; '.join(shown)}]")
