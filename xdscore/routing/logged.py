"""What a proxy says of a request in its access log beside where the request goes here: do both say the same? Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import Final

from xdscore.routing.access_log import LogLine
from xdscore.routing.endpoints import MAX_ENDPOINTS
from xdscore.routing.texts import quoted
from xdscore.routing.values import Answer, Traced

MEANINGS: Final = {
    "DC": "the caller closed the connection before the answer was complete",
    "DF": "the name of the upstream could not be resolved",
    "DI": "fault injection delayed the request",
    "DO": "the endpoints ask for a part of the requests to be dropped, and this one was",
    "DPE": "the caller broke the rules of HTTP",
    "DR": "the caller reset the request",
    "DT": "the connection, or the request, lasted longer than is allowed",
    "FI": "fault injection ended the request",
    "IH": "a header that is checked strictly has a value that is not allowed",
    "LH": "the proxy's own health check said that the service is ill",
    "LR": "the proxy itself reset the connection to the upstream",
    "NC": "no cluster of the name that the route gives",
    "NFCF": "a filter had no configuration yet",
    "NR": "no route, or no filter chain",
    "OM": "the proxy ended it to protect itself from overload",
    "RFCF": "the answer came out of a cache in the proxy",
    "RL": "a rate limit was reached",
    "RLSE": "the rate limit service failed",
    "SI": "nothing was sent or received for too long",
    "UAEX": "an authorization service outside turned it down",
    "UC": "the upstream closed the connection",
    "UF": "no connection to the upstream could be made",
    "UH": "no endpoint of the cluster is healthy",
    "UMSDR": "the request to the upstream lasted longer than is allowed",
    "UO": "a circuit breaker of the cluster is open",
    "UPE": "the upstream broke the rules of HTTP",
    "UR": "the upstream reset the request",
    "URX": "it was tried again as often as is allowed, in vain",
    "UT": "the upstream took too long",
}
"""Envoy's response flags, each as the end of a sentence."""
# What only a request that was routed can meet.
_BEHIND_A_ROUTE: Final = frozenset({"DF", "LR", "UC", "UF", "UMSDR", "UO", "UPE", "UR", "URX", "UT"})
# Whatever takes a request may end it so, before its route matters or after.
_ELSEWHERE: Final = MEANINGS.keys() - _BEHIND_A_ROUTE - {"NR", "NC", "UH"}
_USABLE: Final = frozenset({"UNKNOWN", "HEALTHY", "DEGRADED"})
_WHY: Final = (
    "The configuration changed since, the proxy that wrote the line has another one, or the line does not say all that "
    "routes go by, such as headers."
)


class Agreement(StrEnum):
    """Whether a log and an answer say the same."""

    SAME = "same"
    DIFFERS = "differs"
    OPEN = "open"  # what is compared is not known, or decided elsewhere


@dataclass(frozen=True, slots=True)
class Comparison:
    """A thing that the log says beside the same of the answer, in sentences."""

    agreement: Agreement
    said: str


def compared(line: LogLine, found: Traced) -> tuple[Comparison, ...]:
    """What a line of a log says, each beside where its request goes; nothing where neither says anything of it."""
    if found.answer is Answer.UNKNOWN:
        return (Comparison(Agreement.OPEN, "What the proxy did cannot be compared: the answer here is not known."),)
    parts = [_flag(flag, found) for flag in line.flags if flag in MEANINGS]
    parts += _status(line, found)
    parts += _cluster(line, found)
    parts += _endpoint(line, found)
    return tuple(parts)


def _flag(flag: str, found: Traced) -> Comparison:
    logged = f"The proxy logged {flag}: {MEANINGS[flag]}."
    if flag in _ELSEWHERE:
        return Comparison(Agreement.OPEN, f"{logged} That is not decided by routes.")
    routed = found.answer is Answer.ROUTED
    if flag == "NR":
        same = found.answer is Answer.REFUSED and _ended(found) in {"filter chain", "virtual host", "route"}
    elif flag == "NC":
        same = found.answer is Answer.REFUSED and _ended(found) == "cluster"
    elif flag == "UH":
        same = _ended(found).startswith("endpoints") and not _usable(found)
        if routed and not same:
            said = f"{logged} Here {_usable(found)} can be: the proxy's own health checks and outlier detection decide."
            return Comparison(Agreement.OPEN, said)
    else:
        same = routed
    return _judged(logged, found, same=same)


def _status(line: LogLine, found: Traced) -> Iterator[Comparison]:
    """What a status says that comes with no flag: who answered."""
    if line.flags or not line.status:
        return
    logged = f"The proxy logged {line.status}"
    if line.upstream_host:
        said = f"{logged}, which is the answer of the upstream {quoted(line.upstream_host)}: it was routed."
        yield _judged(said, found, same=found.answer is Answer.ROUTED)
    elif found.answer in {Answer.REDIRECT, Answer.DIRECT}:
        yield _judged(f"{logged} and no upstream.", found, same=found.status == line.status)
    else:
        said = f"{logged}, no upstream and no flag: a route answered, or a filter before it."
        yield Comparison(Agreement.OPEN, f"{said} {_here(found)}")


def _cluster(line: LogLine, found: Traced) -> Iterator[Comparison]:
    if line.upstream_cluster:
        same = line.upstream_cluster in {each.cluster for each in found.shares}
        yield _judged(f"The log says cluster {quoted(line.upstream_cluster)}.", found, same=same)


def _endpoint(line: LogLine, found: Traced) -> Iterator[Comparison]:
    """Whether the endpoint of the log is one of those that are known: of names that a proxy resolves, none is."""
    host = line.upstream_host.removeprefix("tcp://")
    known = {each.address for each in found.endpoints}
    if host in known:
        yield Comparison(Agreement.SAME, f"The endpoint {quoted(host)} is one of those here.")
    elif host and known and len(known) < MAX_ENDPOINTS and all(map(_is_address, known)):
        said = f"The endpoint {quoted(host)} is none of the {len(known)} here: endpoints come and go."
        yield Comparison(Agreement.DIFFERS, said)


def _judged(logged: str, found: Traced, *, same: bool) -> Comparison:
    if same:
        return Comparison(Agreement.SAME, f"{logged} So do we say.")
    return Comparison(Agreement.DIFFERS, f"{logged} {_here(found)} {_WHY}")


def _here(found: Traced) -> str:
    match found.answer:
        case Answer.ROUTED:
            first, more = found.shares[0].cluster, len(found.shares) - 1
            return f"Here it goes to cluster {quoted(first)}{f' or {more} others' if more else ''}."
        case Answer.REFUSED:
            return "Here nothing takes it."
        case _:
            return f"Here the proxy answers {found.status} itself."


def _ended(found: Traced) -> str:
    return found.rungs[-1].title


def _usable(found: Traced) -> int:
    return sum(each.health in _USABLE for each in found.endpoints)


def _is_address(text: str) -> bool:
    try:
        ip_address(text.rpartition(":")[0].strip("[]"))
    except ValueError:
        return False
    return True
