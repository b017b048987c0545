"""The frame of a list: what it can be filtered by and sorted by, read from the query of an address. Pure.

A list never shows more than was asked: a filter that cannot be read is said to be wrong, and is not left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from enum import Enum
from typing import Final
from urllib.parse import parse_qsl, urlencode

from controlplane.common.errors import InputInvalid
from controlplane.common.zones import zone_named
from controlplane.http.moments import clock_problem, moment_typed
from xdscore.codes import shown
from xdscore.findings import Finding, Severity
from xdscore.schema.codes import FIELD_UNKNOWN, VALUE_REFUSED

SORT: Final = "sort"
VIEW: Final = "view"
"""The parameter that says which view is meant where the query is empty: `all` is none, not even one's own default."""
EVERYTHING: Final = f"{VIEW}=all"
MAX_QUERY_CHARS: Final = 1_000
TIMES_IN: Final = "times_in"
"""The parameter with the name of the time zone in which times without an offset are meant; without it, in UTC. So an
address means the same to everybody who opens it.
"""
_TIME_HINT: Final = "a time such as 2026-07-01 12:00 or 2026-07-01T12:00:00+02:00, or an age such as 2 h"


class Kind(Enum):
    """What is written into the field of a filter."""

    TEXT = "text"
    CHOICE = "choice"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of a filter: its word in the address, and for people."""

    value: str
    label: str


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter of a list. `name`: its parameter in the address; `label`: what its field is called.

    `options`: what a choice offers. `free`: a choice takes other words, too.
    `judge`: what else is wrong with a value, as a sentence; empty where nothing is.
    `unasked`: what the choice is called that filters by nothing.
    `hidden`: it has no field; links set it, and the form keeps it.
    `width`: the class of its field in the toolbar.
    """

    name: str
    label: str
    kind: Kind = Kind.TEXT
    options: tuple[Option, ...] = ()
    free: bool = False
    unasked: str = "any"
    max_chars: int = 200
    hidden: bool = False
    width: str = "half"
    judge: Callable[[str], str] | None = None

    def problem(self, value: str, now: datetime, zone: tzinfo = UTC) -> str:
        """What is wrong with `value`, as a sentence; empty where nothing is."""
        if len(value) > self.max_chars:
            return f"'{self.label}' has {len(value)} characters; at most {self.max_chars} are allowed."
        if not value.isprintable():
            return f"'{self.label}' holds a character that cannot be printed on one line."
        if self.kind is Kind.TIME and moment_typed(value, now, zone) is None:
            if unclear := clock_problem(value, zone):
                return f"'{self.label}' cannot be '{shown(value)}'. {unclear}"
            return f"'{self.label}' cannot be '{shown(value)}': it is {_TIME_HINT}."
        if self.kind is Kind.CHOICE and not self.free and value not in {each.value for each in self.options}:
            known = ", ".join(each.value for each in self.options)
            return f"'{self.label}' cannot be '{shown(value)}'. Choices: {known}."
        return self.judge(value) if self.judge is not None else ""


SINCE: Final = Filter("since", "Since", Kind.TIME, max_chars=40)
UNTIL: Final = Filter("until", "Until", Kind.TIME, max_chars=40)
"""The filters by time that lists share: what is listed happened at one of the two times or in between."""
_SPAN: Final = (SINCE.name, UNTIL.name)


@dataclass(frozen=True, slots=True)
class Asked:
    """What one address asks of a list.

    `values`: what was given for each filter, as it was typed, without those that are empty.
    `times`: the times among them.
    `times_in`: the name of the zone in which times without an offset are meant; empty for UTC.
    `sort`: the word of the order, empty for the list's own; `falls`: from the highest to the lowest.
    `problems`: what cannot be read, as a sentence for each parameter. Then nothing is to be listed.
    """

    frame: "Frame"
    values: Mapping[str, str] = field(default_factory=dict)
    times: Mapping[str, datetime] = field(default_factory=dict)
    times_in: str = ""
    sort: str = ""
    falls: bool = False
    problems: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """What was given for the filter `name`; empty for nothing."""
        return self.values.get(name, "")

    @property
    def since(self) -> datetime | None:
        """The time from which on; None without one."""
        return self.times.get(SINCE.name)

    @property
    def until(self) -> datetime | None:
        """The time up to which; None without one."""
        return self.times.get(UNTIL.name)

    @property
    def query(self) -> str:
        """What is asked as a query, in one spelling: filters in the order of the frame, then the order of the list."""
        names = [each.name for each in self.frame.filters if self.text(each.name)]
        pairs = [(name, self.text(name)) for name in names]
        if self.times_in and self.times:
            pairs.append((TIMES_IN, self.times_in))
        return urlencode([*pairs, (SORT, self._sorted(self.sort, self.falls))] if self.sort else pairs)

    def sorted_by(self, word: str) -> str:
        """The query that asks for the same in the order `word`: first in its natural direction, then in the other."""
        order = self.frame.order(word)
        falls = not self.falls if word == self.sort else order is not None and order.falls
        pairs = [pair for pair in parse_qsl(self.query) if pair[0] != SORT]
        return urlencode([*pairs, (SORT, self._sorted(word, falls))])

    def require(self) -> None:
        """Raise InputInvalid with all problems; return where there are none."""
        if self.problems:
            findings = tuple(
                Finding(code=VALUE_REFUSED.code, severity=Severity.ERROR, detail=sentence)
                for sentence in self.problems.values()
            )
            raise InputInvalid(" ".join(self.problems.values()), findings=findings)

    @staticmethod
    def _sorted(word: str, falls: bool) -> str:
        return f"-{word}" if falls else word


@dataclass(frozen=True, slots=True)
class Order:
    """An order of a list, by the word of its column. `label`: what it is called; `falls`: whoever asks for it first
    wants the highest first.
    """

    word: str
    label: str
    falls: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """What a list can be asked. `name`: its word, also in the addresses of its views; `noun`: what is listed, in
    plural; `route`: the name of the page's path, which names an environment where `of_environment`.
    """

    name: str
    noun: str
    route: str
    filters: tuple[Filter, ...]
    orders: tuple[Order, ...] = ()
    of_environment: bool = True

    def order(self, word: str) -> Order | None:
        """The order with this word; None where the list has none."""
        return next((each for each in self.orders if each.word == word), None)

    def read(self, given: Mapping[str, str], now: datetime) -> Asked:
        """What these parameters ask; those of nobody are left to others."""
        times_in = given.get(TIMES_IN, "").strip()
        zone = zone_named(times_in) if times_in else UTC
        typed = {each.name: given.get(each.name, "").strip() for each in self.filters}
        values = {name: value for name, value in typed.items() if value}
        problems = {
            each.name: sentence
            for each in self.filters
            if each.name in values and (sentence := each.problem(values[each.name], now, zone or UTC))
        }
        if zone is None:
            problems[TIMES_IN] = f"There is no time zone '{shown(times_in)}'."
        times = {
            each.name: found
            for each in self.filters
            if each.kind is Kind.TIME
            and (found := moment_typed(values.get(each.name, ""), now, zone or UTC)) is not None
        }
        if backwards := self._backwards(times):
            problems[UNTIL.name] = backwards
        sort = given.get(SORT, "").strip()
        word = sort.removeprefix("-")
        if word and self.order(word) is None:
            known = ", ".join(each.word for each in self.orders) or "nothing"
            problems[SORT] = f"This list cannot be sorted by '{shown(word)}'. It can by: {known}."
            word = ""
        return Asked(self, values, times, times_in, word, sort.startswith("-"), problems)

    def _backwards(self, times: Mapping[str, datetime]) -> str:
        """What is wrong with two times of which the second is before the first; empty where nothing is."""
        if not all(name in times for name in _SPAN) or times[SINCE.name] <= times[UNTIL.name]:
            return ""
        first, last = (next(each.label for each in self.filters if each.name == name) for name in _SPAN)
        return f"'{last}' is before '{first}', so nothing can be in between."

    def kept(self, query: str, now: datetime) -> str:
        """The query as a view keeps it. Raises InputInvalid for one that is not wholly of this list: a view leads
        nowhere else and says nothing that the list does not know.
        """
        pairs = parse_qsl(query[: MAX_QUERY_CHARS + 1])
        known = {SORT, TIMES_IN, *(each.name for each in self.filters)}
        strange = [name for name, _ in pairs if name not in known]
        if strange:
            names = ", ".join(f"'{shown(name)}'" for name in strange)
            said = f"A view of {self.noun} cannot keep {names}. Nothing was changed."
            raise InputInvalid(said, findings=(_unknown(names),))
        asked = self.read(dict(pairs), now)
        asked.require()
        if len(asked.query) > MAX_QUERY_CHARS:
            raise InputInvalid(f"A view keeps at most {MAX_QUERY_CHARS} characters of filters. Nothing was changed.")
        return asked.query


def options(values: Sequence[str]) -> tuple[Option, ...]:
    """Choices that read for people as they do in the address."""
    return tuple(Option(value, value) for value in values)


def _unknown(names: str) -> Finding:
    return Finding(code=FIELD_UNKNOWN.code, severity=Severity.ERROR, detail=f"The list has no filter {names}.")
