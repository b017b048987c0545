"""Which routes certainly do not take a request, at a glance: by the beginning of their paths, and by one header. Of the
routes that stay, `matching` judges each.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from xdscore.routing.matching import judged_everywhere
from xdscore.routing.seen import Seen
from xdscore.schema.fixed_texts import fixed_start, lowered
from xdscore.schema.walk import AnyMessage

_TEXTS: Final = frozenset({"prefix", "path"})
_NO_HEADER: Final = ("", "")


_Needs = tuple[str, bool, bool, str, str]
"""What every request that a route takes has: a path with this beginning, in any case where the second says so, which is
all of it where the third does; and, of the header of this name, this value, unless the name is empty.
"""


class Sieve:
    """The routes of a virtual host, each with what a request needs to have for it."""

    def __init__(self, routes: Sequence[AnyMessage]) -> None:
        names: dict[str, str] = {}
        self._needs = [_needs(each.match, names) for each in routes]

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


def _needs(match: AnyMessage, names: dict[str, str]) -> _Needs:
    """`names`: by the names of headers that were met, how a request has them; empty for those that are not judged
    everywhere.
    """
    start, folds, whole = "", False, False
    kind = match.WhichOneof("path_specifier")
    if kind in _TEXTS:
        start, whole = getattr(match, kind), kind == "path"
        if match.HasField("case_sensitive") and not match.case_sensitive.value:
            start, folds = lowered(start), True
    elif kind == "safe_regex":
        start = fixed_start(match.safe_regex.regex)[0]
    headers = match.headers
    name, value = _header(headers, names) if headers else _NO_HEADER
    if name and match.HasField("runtime_fraction"):  # which is judged first, and noted: such a route stays
        name, value = _NO_HEADER
    return start, folds, whole, name, value


def _header(headers: Sequence[AnyMessage], names: dict[str, str]) -> tuple[str, str]:
    """The first header that has to have one value alone."""
    for each in headers:
        wanted = each.string_match
        value = wanted.exact
        if not value or wanted.ignore_case or each.invert_match:
            continue
        name = each.name
        if name not in names:
            names[name] = lowered(name) if judged_everywhere(name) else ""
        if names[name]:
            return names[name], value
    return _NO_HEADER
