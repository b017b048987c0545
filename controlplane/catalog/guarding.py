"""What a write would take from connected clients, and who has to say that they mean it. Pure.

The rule (interfaces.md section 8, "Loss"): a write that takes something from as many connected clients as its
environment's threshold, or more, is refused unless whoever writes says how many clients they accept to lose it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar

from controlplane.accounts.principal import Principal, Role
from controlplane.common.errors import Conflict
from xdscore.access import AccessTable, Effect
from xdscore.environment_choice import EnvironmentChoice
from xdscore.findings import Finding
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
    """A client that would lose something by a write: its public id, its node id and the kind of its software."""

    client: str
    node_id: str
    kind: str


@dataclass(frozen=True, slots=True)
class Loss:
    """The resources that connected clients would lose by a write, or lost by it.

    `clients`: how many clients lose something.
    `connected`: how many clients are connected.
    `kinds`: how many clients lose something, by kind of client, such as `envoy 1.40`.
    `names`: the names that are lost, those that most clients lose first; not all of them where `truncated`.
    `doubtful`: how many of `clients` are counted because nobody can know whether they lose anything.
    `who`: the first clients that lose something, ordered by node id.
    `asks`: a write with this loss needs consent.
    `own`: this loss for readers who may not see all environments: the clients of other environments are counted, but
    not named. None: everybody may read this one.
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

    @property
    def in_numbers(self) -> "Loss":
        """The loss without names and clients, for who may not read the whole environment."""
        return replace(self, kinds={}, names=(), who=(), truncated=bool(self.names), own=None)

    def as_json(self) -> dict[str, object]:
        """The loss as a JSON object, as the API answers it and the change stores it."""
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
    """The loss that is stored in this JSON object; reads what `Loss.as_json` wrote."""
    values = dict(data)
    names = tuple(LostName(**each) for each in values.pop("names"))  # type: ignore[attr-defined]  # as_json wrote it
    who = tuple(Loser(**each) for each in values.pop("who"))  # type: ignore[attr-defined]  # as_json wrote it
    return Loss(**values, names=names, who=who)  # type: ignore[arg-type]  # as_json wrote it


def losses_together(losses: Iterable[Loss]) -> Loss:
    """One loss that adds up these losses, which are those of several environments."""
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
    """How many clients must lose something before a write needs consent, at least one: `access_clients` clients for a
    write of access rules or groups, `other_percent` percent of the connected clients for any other write.
    """

    access_clients: int = DEFAULT_ACCESS_CLIENTS
    other_percent: int = DEFAULT_OTHER_PERCENT

    def as_json(self) -> dict[str, int]:
        """The threshold as a JSON object, as the API answers it."""
        return {"access_clients": self.access_clients, "other_percent": self.other_percent}

    def reached(self, loss: Loss, *, access: bool) -> bool:
        """Whether a write with this loss needs consent. `access`: the write is about who may read what."""
        if loss.clients == 0:
            return False
        if access:
            return loss.clients >= self.access_clients
        return loss.clients * 100 >= self.other_percent * loss.connected


DEFAULT_THRESHOLD = LossThreshold()


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a write would change in an environment, as far as clients could lose something by it.

    `gone`: the names of which nothing would be served any more.
    `refers`: what each resource that is written would refer to.
    `kinds`: the kinds of clients for which `gone` goes; empty: for all.
    `refusers`: hashes (`client_mark`) of clients that refused what goes, and so do not have it.
    `tables`: the access rules before and after the write; None where they stay.
    `default`: the environment's default effect after the write; None where it stays.
    `choices`: the environments that streams choose from, before and after the write; None where they stay.
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
    def of_access(self) -> frozenset[bool]:
        """Whether the write is about who may read what (True), or about which resources exist (False); both for a
        change of both, which either threshold may stop.
        """
        return frozenset({not self.gone, not self.gone or self.tables is not None})

    @property
    def nothing(self) -> bool:
        """Whether no client can lose anything by the write, so that nobody needs to be asked."""
        return not self.gone and self.tables is None and self.default is None and self.choices is None


def quarantines_together(prospects: Sequence[Prospect]) -> Prospect:
    """One prospect of several quarantines in one environment. Where they are for different kinds of clients, all of
    these are asked about each name: too many rather than too few.
    """
    losing = [each for each in prospects if each.gone]
    if not losing:
        return prospects[0]
    for_all = any(not each.kinds for each in losing)
    return Prospect(
        losing[0].environment,
        frozenset().union(*(each.gone for each in losing)),
        kinds=() if for_all else tuple(sorted({kind for each in losing for kind in each.kinds})),
        refusers=frozenset.intersection(*(each.refusers for each in losing)),
    )


MAX_BREAK_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class Consent:
    """What whoever writes takes upon themselves: a loss for up to `accept_loss` clients, to break up to `accept_cases`
    route cases, and to break a freeze, and go past the review, for the reason in `break_glass` (empty: not). `asked`:
    the writer can be asked; False where Parley itself writes, which nobody refuses and which reports afterwards what
    was lost. `reviewed`: others approved the write as the environment asks; only a change set says so.
    """

    accept_loss: int = 0
    asked: bool = True
    break_glass: str = ""
    reviewed: bool = False
    accept_cases: int = 0


NO_CONSENT = Consent()
OF_ITSELF = Consent(asked=False)


class LossRefused(Conflict):
    """A write was refused because connected clients would lose something, and the writer did not accept that."""

    code: ClassVar[str] = "XDS3013"

    def __init__(self, loss: Loss, environment: str) -> None:
        told = loss_foretold(loss.own or loss, environment)
        super().__init__(f"{told} {_ASKS.format(n=loss.clients)} Nothing was changed.")
        self.loss = loss


class CasesBroken(Conflict):
    """A write was refused because blocking route cases would not hold any more, and the writer did not accept that.
    `broken`: how many would not.
    """

    code: ClassVar[str] = "XDS3090"

    def __init__(self, broken: int, findings: tuple[Finding, ...]) -> None:
        what = "A blocking route case" if broken == 1 else f"{broken} blocking route cases"
        super().__init__(
            f"{what} would not hold any more. If it is meant, change first what the case expects, or accept it by the "
            f"number of cases: accept_cases={broken}. Nothing was changed.",
            findings=findings,
        )
        self.broken = broken


_ASKS = "To do it nevertheless, accept the loss by its number of clients: accept_loss={n}."
_NAMED = 3


def loss_foretold(loss: Loss, environment: str) -> str:
    """One sentence that says which clients would lose what. `environment`: its key; empty where the clients are of
    several environments.
    """
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
