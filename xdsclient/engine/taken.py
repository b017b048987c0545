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
    """The ACK or NACK for the response with this nonce; an ACK where `nack` is None."""

    nonce: str
    nack: Nack | None


@dataclass(slots=True)
class Taken:
    """What one response did. `server`, `policy` and `now` say from which server (its index), by which policy and at
    what time it was taken in.

    valid, invalid: the numbers of resources that can be used, and that cannot.
    problems: in the order they were found, in C-core's wording (clients.md section 4).
    touched, gone, collections: what watches are told of, in this order: entries, members that are gone, collections as
      a whole.
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
