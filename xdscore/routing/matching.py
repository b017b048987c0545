"""Whether a route takes a request: every matcher of `RouteMatch`, `HeaderMatcher` and `QueryParameterMatcher`.

As Envoy does it; proxyless gRPC clients know fewer matchers (gRFC A28), and what they do with others is not judged.
"""

import re
from collections.abc import Iterator
from typing import Final

from xdscore.routing.seen import Seen, set_by_proxy
from xdscore.routing.texts import quoted, regex_fits, string_fits, string_said, whole_number
from xdscore.routing.values import Miss
from xdscore.schema.fixed_texts import lowered
from xdscore.schema.positions import Path
from xdscore.schema.walk import AnyMessage

_PARAMETERS: Final = re.compile(";[^/]*")  # of each segment of a path (RFC 3986 section 3.3)
_GRPC_PATHS: Final = frozenset({"prefix", "path", "safe_regex"})
_PATHS: Final = _GRPC_PATHS | {"path_separated_prefix", "connect_matcher"}
# Fields of HeaderMatcher that StringMatcher came for; they are still read.
_OLD_TEXTS: Final = {"prefix_match": "a beginning", "suffix_match": "an end", "contains_match": "a text with"}


def route_miss(match: AnyMessage, seen: Seen, path: str) -> Miss | None:
    """Why a route with this `RouteMatch` does not take the request; None: it does, at least for some share of requests
    (`runtime_fraction`). `path`: that of the request as it is matched, without its query.
    """
    missed = path_miss(match, seen, path)
    if missed is not None and missed.judged:
        return missed
    for each in _conditions(match, seen):
        if each.judged:
            return each
        missed = missed or each
    return missed


def matched_path(seen: Seen, configuration: AnyMessage) -> str:
    """The request's path as routes of a `RouteConfiguration` match it: without query, and without path parameters where
    the configuration ignores these.
    """
    path = seen.path.partition("?")[0]
    return _PARAMETERS.sub("", path) if configuration.ignore_path_parameters_in_path_matching else path


def path_miss(match: AnyMessage, seen: Seen, path: str) -> Miss | None:
    """Why the path specifier of a route does not fit."""
    kind = match.WhichOneof("path_specifier") or ""
    at: Path = (kind,)
    if kind not in (_GRPC_PATHS if seen.grpc else _PATHS):
        return Miss(f"has a path matcher that is not judged ({kind or 'none'})", (kind or "prefix",), judged=False)
    if kind == "connect_matcher":
        said = "" if seen.headers[":method"] == "CONNECT" else "takes CONNECT requests only"
    elif not path:
        said = "takes no request without a path"
    elif kind == "safe_regex":
        regex, at = match.safe_regex, (kind, "regex")
        said = "" if regex_fits(regex, path) else f"wants a path that {quoted(regex.regex)} matches as a whole"
    else:
        said = _text_problem(match, kind, path)
    return Miss(said, at) if said else None


def _text_problem(match: AnyMessage, kind: str, path: str) -> str:
    """Why a path does not fit the text that a route wants; empty where it does."""
    wanted: str = getattr(match, kind)
    given, asked = path, wanted
    if match.HasField("case_sensitive") and not match.case_sensitive.value:
        given, asked = lowered(path), lowered(wanted)
    if kind == "path":
        return "" if given == asked else f"wants the path {quoted(wanted)}{_case(given, asked)}"
    if not given.startswith(asked):
        return f"wants a path that begins with {quoted(wanted)}{_case(given, asked)}"
    if kind == "path_separated_prefix" and given[len(asked) : len(asked) + 1] not in {"", "/"}:
        return f"wants a path that is {quoted(wanted)}, or goes on behind it with a slash"
    return ""


def _case(given: str, asked: str) -> str:
    """What to add where only upper and lower case keep a path from fitting."""
    return ", in this case" if lowered(given).startswith(lowered(asked)) else ""


def _conditions(match: AnyMessage, seen: Seen) -> Iterator[Miss]:
    """Everything besides the path that does not fit."""
    if match.HasField("runtime_fraction") and not match.runtime_fraction.default_value.numerator:
        yield Miss("takes 0 % of requests", ("runtime_fraction", "default_value"))
    if match.HasField("grpc") and not (seen.path and seen.says_grpc):
        yield Miss("takes gRPC only, by the header 'content-type'", ("grpc",))
    for index, header in enumerate(match.headers):
        if (missed := header_miss(header, seen, ("headers", index))) is not None:
            yield missed
    if match.query_parameters:
        yield from _query_misses(match, seen)
    if match.HasField("tls_context"):
        yield from _tls_misses(match.tls_context, seen)
    for field in ("dynamic_metadata", "filter_state"):
        if getattr(match, field):
            yield Miss("looks at what filters noted of the request", (field,), judged=False)


def header_miss(header: AnyMessage, seen: Seen, at: Path) -> Miss | None:
    """Why a `HeaderMatcher`, which stands at `at` in its route, does not fit."""
    name = lowered(header.name)
    kind = header.WhichOneof("header_match_specifier") or "present_match"
    if (doubt := _header_doubt(header, name, kind, seen)) is not None:
        return Miss(doubt, (*at, "name"), judged=False)
    value = seen.of(name)
    absent = value is None and (seen.grpc or not header.treat_missing_header_as_empty)
    if kind == "present_match":
        wanted = (header.present_match or not header.HasField(kind)) != header.invert_match
        said = "" if wanted != absent else f"wants the header '{name}' {'to be there' if wanted else 'not to be there'}"
    elif absent:
        # Also where the match is inverted: what is not there is not compared.
        said = f"wants the header '{name}', which the request does not have"
    else:
        fits, words = _value_fits(header, kind, value or "")
        if fits is None:
            return Miss(f"looks at the header '{name}' by an extension", (*at, kind, "custom"), judged=False)
        other = "anything but " if header.invert_match else ""
        wrong = f"wants {other}{words} in the header '{name}', which has {quoted(value or '')}"
        said = "" if fits != header.invert_match else wrong
    return Miss(said, (*at, kind)) if said else None


def judged_everywhere(name: str) -> bool:
    """Whether what a header of this name has is judged for every request: the request alone says it, also to gRPC."""
    return not set_by_proxy(name) and not name.startswith(":") and lowered(name) != "host"


def _header_doubt(header: AnyMessage, name: str, kind: str, seen: Seen) -> str | None:
    """Why a `HeaderMatcher` is not judged, whatever the value; None where it is."""
    if seen.grpc and not header.HasField(kind):
        return f"says nothing of the header '{name}', which gRPC refuses"
    if (set_by_proxy(name) and not seen.grpc) or (seen.grpc and name.startswith(":")):
        return f"looks at the header '{name}', which is not of the request alone"
    return None


def _value_fits(header: AnyMessage, kind: str, value: str) -> tuple[bool | None, str]:
    """Whether a header's value is what a `HeaderMatcher` wants, and that in words; None where it is not judged."""
    if kind == "string_match":
        return string_fits(header.string_match, value), string_said(header.string_match)
    if kind == "safe_regex_match":
        regex = header.safe_regex_match
        return regex_fits(regex, value), f"a match of {quoted(regex.regex)}"
    if kind == "range_match":
        start, end = header.range_match.start, header.range_match.end
        number = whole_number(value)
        return number is not None and start <= number < end, f"a number from {start} to below {end}"
    wanted: str = getattr(header, kind)
    if kind == "exact_match":
        # An empty text is what the field has when it is only there; it then asks for presence alone.
        return not wanted or value == wanted, quoted(wanted)
    fits = {"prefix_match": value.startswith(wanted), "suffix_match": value.endswith(wanted)}.get(kind, wanted in value)
    return fits, f"{_OLD_TEXTS[kind]} {quoted(wanted)}"


def _query_misses(match: AnyMessage, seen: Seen) -> Iterator[Miss]:
    if seen.grpc:
        yield Miss("looks at query parameters, which a call has none of", ("query_parameters",))
        return
    given = query_of(seen.path)
    for index, parameter in enumerate(match.query_parameters):
        path = ("query_parameters", index)
        value = given.get(parameter.name)
        kind = parameter.WhichOneof("query_parameter_match_specifier")
        if kind == "present_match" and not parameter.present_match:
            if value is not None:
                yield Miss(f"wants no query parameter {quoted(parameter.name)}", (*path, kind))
        elif value is None:
            yield Miss(f"wants the query parameter {quoted(parameter.name)}, which the request does not have", path)
        elif kind == "string_match":
            fits = string_fits(parameter.string_match, value)
            if fits is None:
                yield Miss("looks at a query parameter by an extension", (*path, "string_match"), judged=False)
            elif not fits:
                wanted = string_said(parameter.string_match)
                said = f"wants {wanted} in the query parameter {quoted(parameter.name)}, which has {quoted(value)}"
                yield Miss(said, (*path, "string_match"))


def query_of(path: str) -> dict[str, str]:
    """The query parameters of a path, of each name the first, undecoded as they are matched."""
    found: dict[str, str] = {}
    for each in path.partition("?")[2].split("&"):
        name, _, value = each.partition("=")
        found.setdefault(name, value)
    return found


def _tls_misses(options: AnyMessage, seen: Seen) -> Iterator[Miss]:
    """What of the caller's certificate does not fit. A request in plain text comes without one; of others it is not
    known.
    """
    for field in ("presented", "validated"):
        if not options.HasField(field):
            continue
        wanted = getattr(options, field).value
        if seen.secure:
            yield Miss(f"looks at whether a certificate is {field}", ("tls_context", field), judged=False)
        elif wanted:
            yield Miss(f"wants a certificate to be {field}, and the request comes without TLS", ("tls_context", field))
