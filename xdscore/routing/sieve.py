"""Which routes certainly do not take a request, at a glance: by the beginning of their paths, and by one header. Of the
routes that stay, `matching` judges each.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from xdscore.routing.matching import judged_everywhere
from xdscore.routing.seen import Seen
from xdscore.schema.fixed_texts import fixed_start, lowered
from xdscore.schema.walk import AnyMessage

_TEXTS: Final = frozenset({"prefix", "path"})


class _Needs(NamedTuple):
    """What every request that a route takes has: a path with this beginning, in any case where `folds`, which is all of
    it where `whole`; and this value of the header, unless the name is empty.
    """

    start: str
    folds: bool
    whole: bool
    header: str
    value: str


class Sieve:
    """The routes of a virtual host, each with what a request needs to have for it."""

    def __init__(self, routes: Sequence[AnyMessage]) -> None:
        self._needs = [_needs(each.match) for each in routes]

    def left(self, first: int, seen: Seen, path: str) -> Iterator[int]:
        """The numbers of the routes, from `first` on, that may take the request. `path`: as routes match it."""
        folded, headers = lowered(path), seen.headers
        for index in range(first, len(self._needs)):
            start, folds, whole, header, value = self._needs[index]
            given = folded if folds else path
            if not given.startswith(start) or (whole and given != start):
                continue
            if not header or headers.get(header) == value:
                yield index


def _needs(match: AnyMessage) -> _Needs:
    start, folds, whole = "", False, False
    kind = match.WhichOneof("path_specifier")
    if kind in _TEXTS:
        start, whole = getattr(match, kind), kind == "path"
        folds = match.HasField("case_sensitive") and not match.case_sensitive.value
        start = lowered(start) if folds else start
    elif kind == "safe_regex":
        start = fixed_start(match.safe_regex.regex)[0]
    return _Needs(start, folds, whole, *_header(match))


def _header(match: AnyMessage) -> tuple[str, str]:
    """The first header that has to have one value alone. A fraction is judged first, and noted; such a route stays."""
    if match.HasField("runtime_fraction"):
        return "", ""
    for each in match.headers:
        value = each.string_match.exact if each.HasField("string_match") else ""
        if value and not each.string_match.ignore_case and not each.invert_match and judged_everywhere(each.name):
            return lowered(each.name), value
    return "", ""
