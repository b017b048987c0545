"""What a write would take from connected clients, and who has to say that they mean it. Pure.

The rule (interfaces.md section 8, "Loss"): a write that takes something from as many connected clients as its
environment's threshold, or more, is refused unless whoever writes says how many clients they accept to lose it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_ACCESS_CLIENTS = 1
DEFAULT_OTHER_PERCENT = 10
# So many names, and so many clients, are told one by one; the counts are of all.
MAX_NAMES = 100
MAX_LOSERS = 20


@dataclass(frozen=True, slots=True)
class LostName:
    """A name that `clients` connected clients would not have any more."""

    type: str
    name: str
    clients: int


@dataclass(frozen=True, slots=True)
class Loser:
    """A client that would lose something: its public id, node id and kind of software."""

    client: str
    node_id: str
    kind: str


@dataclass(frozen=True, slots=True)
class Loss:
    """What `clients` of the `connected` clients would lose.

    `kinds` counts them by kind of client, such as `envoy 1.40`; `names` and `who` are the first of all, those that most
    lose first; `truncated`: there are more names. `doubtful`: how many of the clients are counted because it cannot be
    known whether they lose anything.
    """

    clients: int = 0
    connected: int = 0
    kinds: Mapping[str, int] | None = None
    names: tuple[LostName, ...] = ()
    truncated: bool = False
    doubtful: int = 0
    who: tuple[Loser, ...] = ()

    def as_json(self) -> dict[str, object]:
        """As the API answers it and a change keeps it."""
        return {
            "clients": self.clients,
            "connected": self.connected,
            "kinds": dict(sorted((self.kinds or {}).items())),
            "names": [{"type": each.type, "name": each.name, "clients": each.clients} for each in self.names],
            "truncated": self.truncated,
            "doubtful": self.doubtful,
            "who": [{"client": each.client, "node_id": each.node_id, "kind": each.kind} for each in self.who],
        }


def loss_from_json(data: Mapping[str, object]) -> Loss:
    """The inverse of `Loss.as_json`."""
    values = dict(data)
    names = tuple(LostName(**each) for each in values.pop("names"))  # type: ignore[attr-defined]  # as_json wrote it
    who = tuple(Loser(**each) for each in values.pop("who"))  # type: ignore[attr-defined]  # as_json wrote it
    return Loss(**values, names=names, who=who)  # type: ignore[arg-type]  # as_json wrote it


@dataclass(frozen=True, slots=True)
class LossThreshold:
    """From how many losing clients on an environment asks: `access_clients` of them where a write is about access,
    `other_percent` of its connected clients for the rest. A loss always has at least one client.
    """

    access_clients: int = DEFAULT_ACCESS_CLIENTS
    other_percent: int = DEFAULT_OTHER_PERCENT

    def reached(self, loss: Loss, *, access: bool) -> bool:
        """Whether a write with this loss has to be meant."""
        if loss.clients == 0:
            return False
        if access:
            return loss.clients >= self.access_clients
        return loss.clients * 100 >= self.other_percent * loss.connected
