"""What every list shares: its toolbar, the view with which it opens, and the same rows as a file."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from controlplane.common.errors import InputInvalid
from controlplane.console.pages import Page
from controlplane.console.times import zone_shown
from controlplane.listing.frames import EVERYTHING, SORT, Asked, Filter, Frame, Kind, Option
from controlplane.listing.registry import frame_enter
from controlplane.listing.selectors import View, default_query, views_of
from controlplane.listing.tables import MAX_ROWS, Column, csv_text, json_text
from xdscore.labels import MAX_SELECTOR_CHARS, selector_problem

FILE: Final = "file"
"""The parameter that asks for the rows as a file, in one of FORMATS."""
FINDINGS: Final = (Option("with", "with findings"), Option("without", "without"))
"""The choices of a filter by whether something was found."""
LABELS: Final = Filter("label", "Labels", max_chars=MAX_SELECTOR_CHARS, judge=selector_problem)
"""The filter by labels that lists share."""
FORMATS: Final = {"csv": ("text/csv; charset=utf-8", csv_text), "json": ("application/json", json_text)}


@dataclass(frozen=True, slots=True)
class Field:
    """A filter in the toolbar. `options`: its choices, in which what is asked for always is; `problem`: what is wrong
    with the value, as a sentence.
    """

    filter: Filter
    value: str
    options: tuple[Option, ...]
    problem: str


@dataclass(frozen=True, slots=True)
class Toolbar:
    """What stands above a list.

    `base`: the list's own address, without a query.
    `times_in`: the zone in which its times are meant that say none; empty for a list without times.
    `fields`: its filters; `carried`: pairs of what the form keeps without showing it.
    `views`: those that the reader has of the list; `views_url`: where they are kept.
    """

    asked: Asked
    base: str
    times_in: str
    fields: tuple[Field, ...]
    carried: tuple[tuple[str, str], ...]
    views: tuple[View, ...]
    views_url: str

    @property
    def filtered(self) -> bool:
        """Whether a filter is set."""
        return bool(self.asked.values)

    @property
    def everything(self) -> str:
        """The address of the whole list, also for whom it opens with a view."""
        return f"{self.base}?{EVERYTHING}"

    @property
    def current(self) -> View | None:
        """The view that is shown; None where what is shown has no name."""
        return next((each for each in self.views if each.query == self.asked.query), None)

    @property
    def sort(self) -> str:
        """The order that is asked for, as the address has it; empty for the list's own."""
        return dict(parse_qsl(self.asked.query)).get(SORT, "")

    @property
    def orders(self) -> list[tuple[str, str]]:
        """Each order as the address has it, and in words: for narrow screens, where a table has no heads."""
        found = []
        for each in self.asked.frame.orders:
            ways = ((f"-{each.word}", "falling"), (each.word, "rising"))
            found += [(value, f"{each.label.lower()}, {way}") for value, way in (ways if each.falls else ways[::-1])]
        return found

    @property
    def files(self) -> list[tuple[str, str]]:
        """For each format of a file, its name and address."""
        query = self.asked.query
        return [(each, f"{self.base}?{query}{'&' if query else ''}{urlencode({FILE: each})}") for each in FORMATS]

    @property
    def keep_url(self) -> str:
        """The address at which what is shown can be kept as a view."""
        return f"{self.views_url}?{urlencode({'query': self.asked.query})}"

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with what has no field to stand at."""
        named = {each.filter.name for each in self.fields}
        return tuple(sentence for name, sentence in self.asked.problems.items() if name not in named)


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column that a list can be sorted by. `state`: for `aria-sort`; empty where it is not sorted so."""

    query: str
    state: str


@dataclass(frozen=True, slots=True)
class ListShown:
    """One page of a list. `context`: its template values; `choices`: of filters whose choices depend on the data."""

    context: Mapping[str, object]
    choices: Mapping[str, Sequence[Option]] = field(default_factory=dict)


class ListPage(Page, ABC):
    """The base class of pages that are a list.

    Where the address asks nothing, the list opens with the reader's default view. Where something in it cannot be read,
    nothing is listed and the toolbar says what is wrong.
    """

    frame: ClassVar[Frame]
    columns: ClassVar[Sequence[Column[Any]]]

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "frame" in cls.__dict__:
            frame_enter(cls.frame)

    @abstractmethod
    def shown(self, asked: Asked) -> ListShown:
        """The page of the list that is asked for."""

    @abstractmethod
    def lines(self, asked: Asked, limit: int) -> Iterable[Any]:
        """The first `limit` lines of all pages, for a file."""

    def get(self, request: HttpRequest, **_where: str) -> HttpResponseBase:
        """One page of the list, or all of it as a file."""
        if not request.GET and (query := self._opens_with()):
            return redirect(f"{request.path}?{query}")
        asked = self.frame.read(request.GET, timezone.now())
        if asked.problems:
            return self.listed(asked, ListShown({}), status=422)
        if request.GET.get(FILE):
            return self._file(asked, request.GET[FILE])
        return self.listed(asked, self.shown(asked))

    def listed(self, asked: Asked, shown: ListShown, *, status: int = 200) -> HttpResponse:
        """The page with these template values and its toolbar."""
        bar = self._toolbar(asked, shown.choices)
        return self.page({"bar": bar, "filtered": bar.filtered, "asked": asked, **shown.context}, status=status)

    @property
    def _key(self) -> str:
        return self.here.key if self.frame.of_environment else ""

    def _opens_with(self) -> str:
        return default_query(principal=self.principal, listed=self.frame.name, environment_key=self._key)

    def _toolbar(self, asked: Asked, choices: Mapping[str, Sequence[Option]]) -> Toolbar:
        fields = tuple(
            Field(
                each,
                asked.text(each.name),
                _options(each, asked.text(each.name), choices),
                asked.problems.get(each.name, ""),
            )
            for each in self.frame.filters
            if not each.hidden
        )
        carried = [
            (each.name, asked.text(each.name)) for each in self.frame.filters if each.hidden and asked.text(each.name)
        ]
        keys = [self._key] if self.frame.of_environment else []
        return Toolbar(
            asked,
            reverse(self.frame.route, args=keys),
            self._times_in(asked),
            tuple(fields),
            tuple(carried),
            views_of(principal=self.principal, listed=self.frame.name, environment_key=self._key),
            reverse("views" if keys else "views-anywhere", args=[*keys, self.frame.name]),
        )

    def _times_in(self, asked: Asked) -> str:
        """The zone that an address with times has said, else the reader's."""
        if not any(each.kind is Kind.TIME for each in self.frame.filters):
            return ""
        return (asked.times_in or str(UTC)) if asked.times else zone_shown()

    def _file(self, asked: Asked, wanted: str) -> HttpResponse:
        """All lines as a file. Raises InputInvalid for a format that there is not, and for too many lines."""
        if wanted not in FORMATS:
            raise InputInvalid(f"A list can be had as {' or '.join(FORMATS)}, and in no other format.")
        media, text = FORMATS[wanted]
        # Not streamed: under ASGI Django would gather what is made piece by piece as well, and warn about it.
        answer = HttpResponse(text(self.columns, _bounded(self.lines(asked, MAX_ROWS + 1))), content_type=media)
        name = "-".join(each for each in (self._key, self.frame.name, f"{timezone.now():%Y%m%d-%H%M%S}") if each)
        answer["Content-Disposition"] = f'attachment; filename="{name}.{wanted}"'
        answer["Cache-Control"] = "private, no-store"
        return answer


def found_or_not(asked: Asked) -> bool | None:
    """What the filter `findings` asks for; None for both."""
    return asked.text("findings") == "with" if asked.text("findings") else None


def head_of(asked: Asked, word: str) -> Head:
    """The head of the column `word` of a list, for what is asked of it now."""
    state = ("descending" if asked.falls else "ascending") if asked.sort == word else ""
    return Head(asked.sorted_by(word), state)


def _options(filter_: Filter, value: str, choices: Mapping[str, Sequence[Option]]) -> tuple[Option, ...]:
    known = tuple(choices.get(filter_.name, filter_.options))
    return known if not value or value in {each.value for each in known} else (*known, Option(value, value))


def _bounded(lines: Iterable[Any]) -> Iterator[Any]:
    for number, line in enumerate(lines):
        if number == MAX_ROWS:
            raise InputInvalid(
                f"These are more than {MAX_ROWS:,} rows, and a file that leaves some out would read as if it were "
                "whole. Filter by type, owner or time, and take it in parts."
            )
        yield line
