"""What a route that takes a request does with it: clusters by weight, redirects with their location, and in words
what else the winner says.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from xdscore.routing.seen import Seen, split_port
from xdscore.routing.shares import weighed
from xdscore.routing.texts import quoted, regex_replaced
from xdscore.routing.values import Miss
from xdscore.schema.positions import Path
from xdscore.schema.walk import AnyMessage

_REDIRECT_STATUS: Final = {0: 301, 1: 302, 2: 303, 3: 307, 4: 308}  # RedirectAction.RedirectResponseCode
_NOT_FOUND_STATUS: Final = {0: 503, 1: 404, 2: 500}  # RouteAction.ClusterNotFoundResponseCode
_STANDARD_PORTS: Final = {"http": "80", "https": "443"}
_DEFAULT_TIMEOUT: Final = "15 s by default"


@dataclass(frozen=True, slots=True)
class Towards:
    """A cluster that a route sends requests to, how many percent of all, and the field that names it."""

    cluster: str
    percent: float
    path: Path


def towards(action: AnyMessage, seen: Seen, share: int) -> list[Towards] | Miss:
    """The clusters of a `RouteAction` for a share of requests; why there is none, or none that is judged."""
    kind = action.WhichOneof("cluster_specifier")
    whole = weighed(share, [1])[0]
    match kind:
        case "cluster":
            return [Towards(action.cluster, whole, (kind,))]
        case "cluster_header" if not seen.grpc:
            return _by_header(action.cluster_header, seen, whole, (kind,))
        case "weighted_clusters":
            return _weighted(action.weighted_clusters, seen, share)
        case _:
            return Miss("has its cluster chosen by what is not judged", (kind or "cluster",), judged=False)


def _by_header(name: str, seen: Seen, percent: float, path: Path) -> list[Towards] | Miss:
    value = seen.of(name)
    if not value:
        return Miss(f"takes the cluster's name from the header {quoted(name)}, which the request does not have", path)
    return [Towards(value, percent, path)]


def _weighted(weighted: AnyMessage, seen: Seen, share: int) -> list[Towards] | Miss:
    here = "weighted_clusters"
    kind = weighted.WhichOneof("random_value_specifier")
    if kind == "header_name" and seen.of(weighted.header_name) is not None:
        return Miss("has its cluster chosen by a header's number", (here, kind), judged=False)
    if weighted.runtime_key_prefix:
        return Miss("has weights that a runtime may change", (here, "runtime_key_prefix"), judged=False)
    found: list[Towards] = []
    percents = weighed(share, [each.weight.value for each in weighted.clusters])
    for index, (each, percent) in enumerate(zip(weighted.clusters, percents, strict=True)):
        if not percent:
            continue
        if each.cluster_header:
            named = _by_header(each.cluster_header, seen, percent, (here, "clusters", index, "cluster_header"))
            if isinstance(named, Miss):
                return named
            found += named
        else:
            found.append(Towards(each.name, percent, (here, "clusters", index, "name")))
    return found


def not_found_status(action: AnyMessage) -> int:
    """The status of the answer where the cluster of a `RouteAction` does not exist."""
    return _NOT_FOUND_STATUS.get(action.cluster_not_found_response_code, 503)


def redirected(route: AnyMessage, seen: Seen) -> tuple[int, str]:
    """The status and the location of a route's redirect."""
    redirect = route.redirect
    kind = redirect.WhichOneof("scheme_rewrite_specifier")
    if kind == "scheme_redirect":
        scheme = redirect.scheme_redirect.lower()
    elif kind == "https_redirect" and redirect.https_redirect:
        scheme = "https"
    else:
        scheme = seen.headers[":scheme"]
    port = f":{redirect.port_redirect}" if redirect.port_redirect else ""
    host = redirect.host_redirect or _own_host(seen, scheme, port)
    return _REDIRECT_STATUS[redirect.response_code], f"{scheme}://{host}{port}{_redirect_path(route, seen.path)}"


def https_location(seen: Seen) -> str:
    """The location of the redirect by which a virtual host asks for TLS; empty for a request without a path."""
    return "" if not seen.path else f"https://{seen.host}{seen.path}"


def _own_host(seen: Seen, scheme: str, port: str) -> str:
    """The request's own host in a location: without a port where that was the standard one of another scheme, or the
    redirect has its own.
    """
    host, number = split_port(seen.host)
    before = seen.headers.get("x-forwarded-proto", "")
    if port or (scheme != before and number == _STANDARD_PORTS.get(before)):
        return host
    return seen.host


def _redirect_path(route: AnyMessage, path: str) -> str:
    redirect = route.redirect
    if redirect.path_redirect:
        if "?" in redirect.path_redirect:
            return str(redirect.path_redirect)
        _, question, query = path.partition("?")
        path = redirect.path_redirect + question + query
    else:
        path = rewritten(route.match, redirect, path)
    return path.partition("?")[0] if redirect.strip_query else path


def rewritten(match: AnyMessage, action: AnyMessage, path: str) -> str:
    """The path behind `prefix_rewrite` or `regex_rewrite` of a `RouteAction` or `RedirectAction`."""
    bare, question, query = path.partition("?")
    if action.prefix_rewrite:
        kind = match.WhichOneof("path_specifier")
        matched = len(getattr(match, kind)) if kind in {"prefix", "path_separated_prefix"} else len(bare)
        bare = action.prefix_rewrite + bare[matched:]
    elif action.HasField("regex_rewrite"):
        bare = regex_replaced(action.regex_rewrite, bare)
    return bare + question + query


def also_said(route: AnyMessage, host: AnyMessage, configuration: AnyMessage, seen: Seen) -> Iterator[str]:
    """What else the winning route says of a request that it sends to a cluster, a sentence each."""
    action = route.route
    if not seen.grpc:
        path = rewritten(route.match, action, seen.path)
        if path != seen.path:
            yield f"The path goes on as {quoted(path)}."
        kind = action.WhichOneof("host_rewrite_specifier")
        if kind == "host_rewrite_literal":
            yield f"The authority goes on as {quoted(action.host_rewrite_literal)}."
        elif kind is not None:
            yield f"The authority is rewritten ({kind})."
        yield f"The time limit for an answer is {_timeout(action)}."
    policy = action.retry_policy if action.HasField("retry_policy") else host.retry_policy
    if policy.retry_on:
        retries = policy.num_retries.value if policy.HasField("num_retries") else 1
        yield f"It is tried again up to {retries} times on {policy.retry_on}."
    mirrors = action.request_mirror_policies or host.request_mirror_policies or configuration.request_mirror_policies
    if mirrors and not seen.grpc:
        yield f"Copies go to {', '.join(quoted(each.cluster or each.cluster_header) for each in mirrors)}."


def _timeout(action: AnyMessage) -> str:
    if not action.HasField("timeout"):
        return _DEFAULT_TIMEOUT
    seconds = action.timeout.seconds + action.timeout.nanos / 1e9
    return f"{seconds:g} s" if seconds else "none"
