"""What a write would take from connected clients, and who has to say that they mean it. Pure.

The rule (interfaces.md section 8, "Loss"): a write that takes something from as many connected clients as its
environment's threshold, or more, is refused unless whoever writes says how many clients they accept to lose it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from controlplane.accounts.principal import Principal, Role
from controlplane.common.errors import Conflict
from xdscore.access import AccessTable, Effect
from xdscore.environment_choice import EnvironmentChoice
from xdscore.snapshot import EntryKey

DEFAULT_ACCESS_CLIENTS = 1
DEFAULT_OTHER_PERCENT = 10
MAX_ACCESS_CLIENTS = 1_000_000_000
MAX_OTHER_PERCENT = 100
# So many names, and so many clients, are told one by one; the counts are of all.
MAX_NAMES = 100
MAX_LOSERS = 20


@dataclass(frozen=True, slots=True)
class LostName:
    """A name that `clients` connected clients would lose by a write."""

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
    """The resources that `clients` of the `connected` clients would lose by a write.

    `kinds` counts them by kind of client, such as `envoy 1.40`; `names` are the first of all, those that most clients
    lose first, `truncated`: there are more; `who` are the first clients by node id. `doubtful`: how many of the clients
    are counted because it cannot be known whether they lose anything. `asks`: a write with this loss needs consent.

    `own`: this loss as it may be told in the environment that is written, where clients of others lose something too:
    counted, and not named (`seen_by`).
    """

    clients: int = 0
    connected: int = 0
    kinds: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    names: tuple[LostName, ...] = ()
    truncated: bool = False
    doubtful: int = 0
    who: tuple[Loser, ...] = ()
    asks: bool = False
    own: "Loss | None" = None

    def seen_by(self, principal: Principal) -> "Loss":
        """The part of this loss that the principal may read: without clients in environments they may not see."""
        return self if self.own is None or principal.may(Role.VIEWER, None) else self.own

    def as_json(self) -> dict[str, object]:
        """The loss as a JSON object, in the form of the API's answers and of the change's column."""
        return {
            "clients": self.clients,
            "connected": self.connected,
            "kinds": dict(sorted(self.kinds.items())),
            "names": [{"type": each.type, "name": each.name, "clients": each.clients} for each in self.names],
            "truncated": self.truncated,
            "doubtful": self.doubtful,
            "who": [{"client": each.client, "node_id": each.node_id, "kind": each.kind} for each in self.who],
            "asks": self.asks,
        }


NOTHING_LOST = Loss()


def loss_from_json(data: Mapping[str, object]) -> Loss:
    """The loss that `Loss.as_json` wrote."""
    values = dict(data)
    names = tuple(LostName(**each) for each in values.pop("names"))  # type: ignore[attr-defined]  # as_json wrote it
    who = tuple(Loser(**each) for each in values.pop("who"))  # type: ignore[attr-defined]  # as_json wrote it
    return Loss(**values, names=names, who=who)  # type: ignore[arg-type]  # as_json wrote it


def losses_together(losses: Iterable[Loss]) -> Loss:
    """The losses of several environments added up."""
    found = tuple(losses)
    if len(found) == 1:
        return found[0]
    kinds: Counter[str] = Counter()
    names: Counter[tuple[str, str]] = Counter()
    for each in found:
        kinds.update(each.kinds)
        names.update({(name.type, name.name): name.clients for name in each.names})
    ranked = sorted(names, key=lambda key: (-names[key], key))
    return Loss(
        clients=sum(each.clients for each in found),
        connected=sum(each.connected for each in found),
        kinds=kinds,
        names=tuple(LostName(*key, names[key]) for key in ranked[:MAX_NAMES]),
        truncated=len(ranked) > MAX_NAMES or any(each.truncated for each in found),
        doubtful=sum(each.doubtful for each in found),
        who=tuple(loser for each in found for loser in each.who)[:MAX_LOSERS],
    )


@dataclass(frozen=True, slots=True)
class LossThreshold:
    """The number of losing clients from which a write needs consent: `access_clients` of them where a write is about
    access, `other_percent` of the connected clients for the rest. A loss always has at least one client.
    """

    access_clients: int = DEFAULT_ACCESS_CLIENTS
    other_percent: int = DEFAULT_OTHER_PERCENT

    def as_json(self) -> dict[str, int]:
        """The threshold as a JSON object, in the form of the API."""
        return {"access_clients": self.access_clients, "other_percent": self.other_percent}

    def reached(self, loss: Loss, *, access: bool) -> bool:
        """Whether a write with this loss needs consent."""
        if loss.clients == 0:
            return False
        if access:
            return loss.clients >= self.access_clients
        return loss.clients * 100 >= self.other_percent * loss.connected


DEFAULT_THRESHOLD = LossThreshold()


@dataclass(frozen=True, slots=True)
class Prospect:
    """The part of a write by which clients could lose anything: what of an environment would be different after it.

    `gone` are names that nothing would be served of any more, and `refers` is what the resources that are put with them
    would refer to; `kinds`: they go for clients of these kinds of software alone; `refusers` are the marks of clients
    that refused what goes, and so do not have it (`client_mark`). `tables` are the access rules before and after,
    `default` what the environment's default will be, `choices` the environments that streams choose from, before and
    after.
    """

    environment: str
    gone: frozenset[EntryKey] = frozenset()
    refers: Mapping[EntryKey, Iterable[EntryKey]] = field(default_factory=lambda: MappingProxyType({}))
    kinds: tuple[str, ...] = ()
    refusers: frozenset[str] = frozenset()
    tables: tuple[AccessTable, AccessTable] | None = None
    default: Effect | None = None
    choices: tuple[tuple[EnvironmentChoice, ...], tuple[EnvironmentChoice, ...]] | None = None

    @property
    def of_access(self) -> bool:
        """Whether the write is about who may read what, rather than about what there is."""
        return not self.gone

    @property
    def nothing(self) -> bool:
        """Whether no client can lose anything by the write."""
        return not self.gone and self.tables is None and self.default is None and self.choices is None


@dataclass(frozen=True, slots=True)
class Consent:
    """What the writer says about a loss: that they accept it for up to `accept_loss` clients. `asked`: a person or a
    pipeline can be asked; where Parley itself writes nobody can, and it says afterwards what was lost.
    """

    accept_loss: int = 0
    asked: bool = True


NO_CONSENT = Consent()
OF_ITSELF = Consent(asked=False)


class LossRefused(Conflict):
    """Connected clients would lose something, and the writer did not accept that."""

    code: ClassVar[str] = "XDS3013"

    def __init__(self, loss: Loss, environment: str) -> None:
        told = loss_foretold(loss.own or loss, environment)
        super().__init__(f"{told} {_ASKS.format(n=loss.clients)} Nothing was changed.")
        self.loss = loss


_ASKS = "To do it nevertheless, accept the loss by its number of clients: accept_loss={n}."
_NAMED = 3


def loss_foretold(loss: Loss, environment: str) -> str:
    """One sentence that says which clients would lose what; `environment` is empty where they are of several."""
    named = ", ".join(f"{each.type} '{each.name}'" for each in loss.names[:_NAMED])
    more = len(loss.names) - _NAMED
    others = f" and {'more than ' if loss.truncated else ''}{more} more" if more > 0 else ""
    what = f"{named}{others}" if named else "what they have"
    doubt = f" (of {loss.doubtful} of them it is not certain)" if loss.doubtful else ""
    where = f" of '{environment}'" if environment else ""
    return (
        f"{loss.clients} of {loss.connected} connected clients{where}{doubt} would lose {what}."
        if loss.connected != 1
        else f"The one connected client{where}{doubt} would lose {what}."
    )
