"""Which filter chain of a listener takes a connection: one criterion after the other, the most specific value first.

What lost at one criterion is not tried again at the next, as in Envoy: a chain for the very server name keeps all
others from that connection, whatever else it wants.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from xdscore.routing.seen import Seen, split_port
from xdscore.routing.texts import quoted
from xdscore.routing.values import Lost, Place
from xdscore.schema.fixed_texts import lowered
from xdscore.schema.types_registry import message_name
from xdscore.schema.walk import AnyMessage

_HTTP_INSPECTOR: Final = "envoy.extensions.filters.listener.http_inspector.v3.HttpInspector"
_TLS_INSPECTOR: Final = "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"
_DEFAULT_PORTS: Final = {"https": 443}
_HTTP_PORT: Final = 80
# Of the caller, which a request does not say.
_OF_THE_SOURCE: Final = ("direct_source_prefix_ranges", "source_type", "source_prefix_ranges", "source_ports")


@dataclass(slots=True)
class ChainChoice:
    """The filter chain that takes the connection: its number; None where none of the list does, and the default is
    left. `doubt`: the field because of which it cannot be said.
    """

    index: int | None = None
    lost: list[Lost] = field(default_factory=list)
    doubt: Place | None = None


def port_of(authority: str, scheme: str) -> int:
    """The port that a request is sent to: its authority's, else that of its scheme."""
    number = split_port(authority)[1]
    return int(number) if number.isascii() and number.isdecimal() else _DEFAULT_PORTS.get(scheme, _HTTP_PORT)


def listener_ports(listener: AnyMessage) -> list[int]:
    """The ports that a listener has; none for one that has no port, as those of gRPC clients."""
    addresses = [listener.address, *(each.address for each in listener.additional_addresses)]
    return [each.socket_address.port_value for each in addresses if each.HasField("socket_address")]


def chain_name(chain: AnyMessage, index: int) -> str:
    """What a filter chain is called: its name, else its number."""
    return chain.name or f"filter_chains[{index}]"


def chosen_chain(listener: AnyMessage, seen: Seen, port: int, place: Place) -> ChainChoice:
    """The filter chain of a listener for the connection of a request; `place` is that of the listener."""
    choice = ChainChoice()
    left = list(range(len(listener.filter_chains)))
    chains = [each.filter_chain_match for each in listener.filter_chains]
    for step in _steps(listener, chains, seen, port):
        if not any(step.wanted(chains[index]) for index in left):
            continue
        at = place.at("filter_chains")
        if step.values is None:
            first = next(index for index in left if step.wanted(chains[index]))
            choice.doubt = at.at(first, "filter_chain_match", step.field)
            return choice
        kept = _most_specific(step, chains, left)
        for index in left:
            if index not in kept:
                name, where = chain_name(listener.filter_chains[index], index), at.at(index, "filter_chain_match")
                choice.lost.append(Lost(name, step.said(chains[index]), where.at(step.field)))
        left = kept
    if left:
        choice.index = left[0]
    return choice


@dataclass(frozen=True, slots=True)
class _Step:
    """One criterion: the values that the connection has of it, the most specific first (None: not known), and how to
    read what a chain wants.
    """

    field: str
    values: Sequence[str] | None
    wanted: Callable[[AnyMessage], Sequence[str]]
    given: str

    def said(self, match: AnyMessage) -> str:
        """Why a chain lost by this criterion."""
        wanted = self.wanted(match)
        if not wanted:
            return f"wants no {self.field} of its own, and another chain is for the very one of this connection"
        return f"wants {self.field} {', '.join(map(quoted, wanted[:5]))}; the connection has {self.given}"


def _most_specific(step: _Step, chains: Sequence[AnyMessage], left: Sequence[int]) -> list[int]:
    for value in step.values or ():
        if kept := [index for index in left if value in step.wanted(chains[index])]:
            return kept
    return [index for index in left if not step.wanted(chains[index])]


def _steps(listener: AnyMessage, chains: Sequence[AnyMessage], seen: Seen, port: int) -> Iterator[_Step]:
    yield _Step("destination_port", [str(port)], _destination_port, f"port {port}")
    address = _destination(listener)
    ranges = [f"{each}" for match in chains for each in _prefix_ranges(match)]
    holding = sorted({each for each in ranges if address and address in ip_network(each)}, key=_prefix, reverse=True)
    # To Envoy, a chain without ranges has that of everything; of two that say the same one, which it takes is chance.
    twice = any(_prefix(each) == 0 for each in ranges) and not all(map(_prefix_ranges, chains))
    yield _Step("prefix_ranges", holding if address and not twice else None, _prefix_ranges, f"the address {address}")
    # Without it, Envoy reads nothing of what a caller says in TLS, and takes the connection for one in plain text.
    inspects = seen.secure and _has_filter(listener, _TLS_INSPECTOR)
    blind = ", as the listener has no TLS inspector" if seen.secure and not inspects else ""
    name = _server_name(seen) if inspects else ""
    given = f"the server name '{name}'" if name else f"none{blind}"
    yield _Step("server_names", _server_names(name), _lowered_names, given)
    protocol = "tls" if inspects else "raw_buffer"
    yield _Step("transport_protocol", [protocol], _transport, f"'{protocol}'{blind}")
    plain = not inspects and not _has_filter(listener, _HTTP_INSPECTOR)
    yield _Step("application_protocols", [] if plain else None, _protocols, "none")
    for each in _OF_THE_SOURCE:
        yield _Step(each, None, _set(each), "")


def _destination_port(match: AnyMessage) -> Sequence[str]:
    return [str(match.destination_port.value)] if match.HasField("destination_port") else []


def _prefix_ranges(match: AnyMessage) -> Sequence[str]:
    found = []
    for each in match.prefix_ranges:
        try:
            network = ip_network(f"{each.address_prefix}/{each.prefix_len.value}", strict=False)
        except ValueError:  # no proxy takes it
            continue
        found.append(str(network))
    return found


def _prefix(network: str) -> int:
    return int(network.rpartition("/")[2])


def _lowered_names(match: AnyMessage) -> Sequence[str]:
    return [lowered(each) for each in match.server_names]


def _transport(match: AnyMessage) -> Sequence[str]:
    return [match.transport_protocol] if match.transport_protocol else []


def _protocols(match: AnyMessage) -> Sequence[str]:
    return list(match.application_protocols)


def _set(name: str) -> Callable[[AnyMessage], Sequence[str]]:
    return lambda match: [name] if getattr(match, name) else []


def _destination(listener: AnyMessage) -> IPv4Address | IPv6Address | None:
    """The address that connections to a listener have come to; None where it listens at more than one, or they were
    meant for another.
    """
    try:
        address = ip_address(listener.address.socket_address.address)
    except ValueError:
        return None
    if address.is_unspecified or listener.use_original_dst.value or listener.additional_addresses:
        return None
    return address


def _server_name(seen: Seen) -> str:
    """The name that a caller asks for in TLS: the host of the authority, unless that is an address."""
    host = lowered(split_port(seen.host)[0])
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return host
    return ""


def _server_names(name: str) -> list[str]:
    """The server names of chains that fit a name, the most specific first."""
    labels = name.split(".")
    wildcards = ["*." + ".".join(labels[index:]) for index in range(1, len(labels))]
    return [name, *wildcards] if name else []


def _has_filter(listener: AnyMessage, message: str) -> bool:
    return any(message_name(each.typed_config.type_url) == message for each in listener.listener_filters)
