"""The node matchers of a status request (envoy/type/matcher/v3/node.proto), compiled: matchers OR-ed, fields AND-ed.

Node ids are matched as they were reported. Of a node's metadata the facts hold nothing; what can be matched is what
this server itself puts into the metadata of its answers: `parley.environment`, `parley.identity`, `parley.client`.
Whatever cannot be matched truly is refused by name, never ignored: an ignored field would show more than was asked for.
"""

import string
from collections.abc import Callable, Iterable
from typing import Any, Final

import re2

from adsserver.ports import FleetClient

NAMESPACE: Final = "parley"
"""The key under which answers carry our facts of a client in `node.metadata`, and matchers find them."""

MAX_MATCHERS: Final = 32
MAX_VALUE_CHARS: Final = 1_024  # as long as a node id may be (reliability (e))
_REGEX_MEMORY: Final = 1024 * 1024

Matches = Callable[[FleetClient], bool]
_TextMatches = Callable[[str], bool]

_FACTS: Final[dict[str, Callable[[FleetClient], str]]] = {
    "environment": lambda client: client.environment,
    "identity": lambda client: client.identity,
    "client": lambda client: client.id,
}
# ignore_case is about ASCII letters in Envoy, too.
_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class MatcherError(Exception):
    """A NodeMatcher cannot be used. The text names the field and is sent (INVALID_ARGUMENT)."""


def facts_of(client: FleetClient) -> dict[str, str]:
    """What answers of the status service (CSDS) say about a client in its node metadata, under the key NAMESPACE."""
    return {name: read(client) for name, read in _FACTS.items()}


def compile_matchers(matchers: Any, *, max_regex_chars: int) -> Matches:
    """A function that says whether any of these NodeMatchers matches a client; without matchers it always returns True.

    Raises MatcherError for a matcher that cannot be used.
    """
    if len(matchers) > MAX_MATCHERS:
        raise MatcherError(f"node_matchers: {len(matchers)} matchers; at most {MAX_MATCHERS} are allowed.")
    compiled = [_node(each, f"node_matchers[{index}]", max_regex_chars) for index, each in enumerate(matchers)]
    return lambda client: not compiled or any(matches(client) for matches in compiled)


def _node(matcher: Any, field: str, max_regex_chars: int) -> Matches:
    every: list[Matches] = []
    if matcher.HasField("node_id"):
        node_id = _text(matcher.node_id, f"{field}.node_id", max_regex_chars)
        every.append(lambda client: node_id(client.node_id))
    if len(matcher.node_metadatas) > MAX_MATCHERS:
        raise MatcherError(f"{field}.node_metadatas: at most {MAX_MATCHERS} are allowed.")
    for index, metadata in enumerate(matcher.node_metadatas):
        every.append(_metadata(metadata, f"{field}.node_metadatas[{index}]", max_regex_chars))
    return lambda client: all(matches(client) for matches in every)


def _metadata(matcher: Any, field: str, max_regex_chars: int) -> Matches:
    path = tuple(segment.key for segment in matcher.path)
    read = _FACTS.get(path[1]) if len(path) == 2 and path[0] == NAMESPACE else None
    if read is None:
        known = ", ".join(f"{NAMESPACE}.{name}" for name in _FACTS)
        raise MatcherError(
            f"{field}.path: the metadata of nodes is not kept; only these paths can be matched: {known}."
        )
    if matcher.value.WhichOneof("match_pattern") != "string_match":
        raise MatcherError(f"{field}.value: only string_match can be matched; the value is always a string.")
    text = _text(matcher.value.string_match, f"{field}.value.string_match", max_regex_chars)
    # Checked above; bound here, so that the function does not see a later loop's.
    fact = read
    return lambda client: text(fact(client))


def _text(matcher: Any, field: str, max_regex_chars: int) -> _TextMatches:
    """A function that says whether a text matches this StringMatcher. A regular expression must match the whole text,
    as in Envoy; it is run by RE2 only (threat 13). `field` names the matcher in errors.
    """
    pattern = matcher.WhichOneof("match_pattern")
    if pattern == "safe_regex":
        return _regex(matcher.safe_regex.regex, f"{field}.safe_regex.regex", max_regex_chars)
    if pattern not in {"exact", "prefix", "suffix", "contains"}:
        detail = f"'{pattern}' cannot be matched here" if pattern else "a match pattern is missing"
        raise MatcherError(f"{field}: {detail}; use exact, prefix, suffix, contains or safe_regex.")
    value: str = getattr(matcher, pattern)
    if not value and pattern != "exact":
        raise MatcherError(f"{field}.{pattern}: it must not be empty.")
    if len(value) > MAX_VALUE_CHARS:
        raise MatcherError(f"{field}.{pattern}: it has {len(value)} characters; at most {MAX_VALUE_CHARS} are allowed.")
    plain = _plain(pattern)
    if matcher.ignore_case:
        wanted = value.translate(_LOWER)
        return lambda text: plain(text.translate(_LOWER), wanted)
    return lambda text: plain(text, value)


def _plain(pattern: str) -> Callable[[str, str], bool]:
    match pattern:
        case "prefix":
            return str.startswith
        case "suffix":
            return str.endswith
        case "contains":
            return str.__contains__
        case _:
            return str.__eq__


def _regex(regex: str, field: str, max_chars: int) -> _TextMatches:
    if not regex:
        raise MatcherError(f"{field}: it must not be empty.")
    if len(regex) > max_chars:
        raise MatcherError(f"{field}: it has {len(regex)} characters; at most {max_chars} are allowed.")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _REGEX_MEMORY
    try:
        compiled = re2.compile(regex, options)
    except re2.error as error:
        raise MatcherError(f"{field}: RE2 cannot compile it: {_problem(error.args)}.") from error
    return lambda text: compiled.fullmatch(text) is not None


def _problem(arguments: Iterable[object]) -> str:
    first = next(iter(arguments), "unknown")
    return first.decode("utf-8", "replace") if isinstance(first, bytes) else str(first)
