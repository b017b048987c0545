"""Headers that proxies are told to add or to remove. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from xdscore.schema.codes import UNCHANGEABLE
from xdscore.schema.positions import Path
from xdscore.schema.relations.formats import judged
from xdscore.schema.relations.said import Rule, Said, together
from xdscore.schema.walk import AnyMessage

_NO_HEADER: Final = "may not be a header that begins with ':', nor 'Host'"


def _is_fixed(name: str) -> bool:
    """Whether a header is one that a list of headers cannot change: Envoy has fields of their own for them."""
    return name.startswith(":") or name.lower() == "host"


def _added(option: AnyMessage, place: Path) -> Iterator[Said]:
    """What is wrong with a HeaderValueOption at `place`."""
    yield from _value(option.header, (*place, "header"))
    if option.HasField("append") and option.append_action != option.APPEND_IF_EXISTS_OR_ADD:
        yield together((*place, "append"), "cannot be given together with 'append_action'")


def _value(header: AnyMessage, place: Path) -> Iterator[Said]:
    if _is_fixed(header.key):
        yield Said((*place, "key"), UNCHANGEABLE, {"problem": _NO_HEADER})
    yield from judged(header.value, (*place, "value"))


def _lists(*fields: str) -> Rule:
    """The rule of these fields, which are lists of headers to add."""

    def rule(message: AnyMessage) -> Iterator[Said]:
        for field in fields:
            for index, each in enumerate(getattr(message, field)):
                yield from _added(each, (field, index))

    return rule


def _changes(*kinds: str) -> Rule:
    """The rule of the fields KIND_headers_to_add and KIND_headers_to_remove."""
    added = _lists(*(f"{kind}_headers_to_add" for kind in kinds))

    def rule(message: AnyMessage) -> Iterator[Said]:
        yield from added(message)
        for field in (f"{kind}_headers_to_remove" for kind in kinds):
            for index, name in enumerate(getattr(message, field)):
                if _is_fixed(name):
                    yield Said((field, index), UNCHANGEABLE, {"problem": _NO_HEADER})

    return rule


def _appended(mutation: AnyMessage) -> Iterator[Said]:
    if mutation.HasField("append"):
        yield from _added(mutation.append, ("append",))


def _authorization(request: AnyMessage) -> Iterator[Said]:
    for index, header in enumerate(request.headers_to_add):
        yield from _value(header, ("headers_to_add", index))


_both = _changes("request", "response")
_ROUTE: Final = "envoy.config.route.v3."
_HTTP: Final = "envoy.extensions.filters.http."
_NETWORK: Final = "envoy.extensions.filters.network."
_RESPONSE: Final = "envoy.extensions.http.custom_response."
RULES: Final[Mapping[str, Rule]] = {
    _ROUTE + "Route": _both,
    _ROUTE + "RouteConfiguration": _both,
    _ROUTE + "VirtualHost": _both,
    _ROUTE + "WeightedCluster.ClusterWeight": _both,
    "envoy.config.common.mutation_rules.v3.HeaderMutation": _appended,
    "envoy.config.core.v3.HealthCheck.GrpcHealthCheck": _lists("initial_metadata"),
    "envoy.config.core.v3.HealthCheck.HttpHealthCheck": _changes("request"),
    _HTTP + "ext_authz.v3.AuthorizationRequest": _authorization,
    _HTTP + "local_ratelimit.v3.LocalRateLimit": _lists(
        "request_headers_to_add_when_not_enforced", "response_headers_to_add"
    ),
    _HTTP + "ratelimit.v3.RateLimit": _lists("response_headers_to_add"),
    _NETWORK + "http_connection_manager.v3.ResponseMapper": _lists("headers_to_add"),
    _NETWORK + "tcp_proxy.v3.TcpProxy.TunnelingConfig": _lists("headers_to_add"),
    _RESPONSE + "local_response_policy.v3.LocalResponsePolicy": _lists("response_headers_to_add"),
}
"""The rules by the full name of the message that each is about."""
