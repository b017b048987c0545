"""Which virtual host takes an authority: exact domains, then suffixes, then prefixes, the longest first, then `*`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from xdscore.routing.seen import split_port
from xdscore.routing.texts import quoted
from xdscore.routing.trail import MAX_LOST
from xdscore.routing.values import Lost, Place
from xdscore.schema.fixed_texts import lowered
from xdscore.schema.walk import AnyMessage

_KINDS: Final = ("an exact domain", "a suffix", "a prefix", "every domain")


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain that fits, of the virtual host `index`. `rank` orders them: the smallest wins."""

    index: int
    number: int
    text: str
    rank: tuple[int, int]


def best_domain(hosts: Sequence[AnyMessage], authority: str) -> Domain | None:
    """The domain that takes the authority, of all domains of these virtual hosts; None where none does. Of two with the
    same rank the first, which only gRPC lets stand.
    """
    wanted = lowered(authority)
    best: Domain | None = None
    for index, host in enumerate(hosts):
        for number, text in enumerate(host.domains):
            rank = _rank(lowered(text), wanted)
            if rank is not None and (best is None or rank < best.rank):
                best = Domain(index, number, text, rank)
    return best


def host_for_domains(authority: str, configuration: AnyMessage) -> str:
    """The authority as domains of a `RouteConfiguration` are compared with it: where that says so, without a port."""
    return split_port(authority)[0] if configuration.ignore_port_in_host_matching else authority


def hosts_lost(hosts: Sequence[AnyMessage], authority: str, best: Domain | None, place: Place) -> Iterator[Lost]:
    """Why each of the first virtual hosts that were not chosen was not. `place`: of the list of virtual hosts."""
    wanted = lowered(authority)
    for index, host in enumerate(hosts[: MAX_LOST + 1]):
        if best is not None and index == best.index:
            continue
        fitting = [(rank, text) for text in host.domains if (rank := _rank(lowered(text), wanted)) is not None]
        if best is not None and fitting:
            (kind, _), text = min(fitting)
            how = "is shorter" if kind == best.rank[0] else f"is {_KINDS[kind]}, and goes after {_KINDS[best.rank[0]]}"
            said = f"its domain {quoted(text)} fits, but {how}"
        else:
            said = f"none of its domains fits {quoted(authority)}: {_listed(host.domains)}"
        yield Lost(host.name, said, place.at(index, "domains"))


def _rank(domain: str, wanted: str) -> tuple[int, int] | None:
    """How well a domain fits an authority, both in lower case; None: it does not. `*` alone stands for anything, and
    else for at least one character.
    """
    if domain == wanted:
        return (0, 0)
    if domain == "*":
        return (3, 0)
    size = len(domain)
    if size > len(wanted):
        return None
    if domain.startswith("*") and wanted.endswith(domain[1:]):
        return (1, -size)
    if domain.endswith("*") and wanted.startswith(domain[:-1]):
        return (2, -size)
    return None


def _listed(domains: Sequence[str], most: int = 5) -> str:
    more = f" and {len(domains) - most} more" if len(domains) > most else ""
    return ", ".join(map(quoted, domains[:most])) + more
