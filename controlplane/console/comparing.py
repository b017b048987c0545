"""What differs between two snapshots of an environment, or between one and the catalogue as it is now: a dense list,
of which each line unfolds to the lines of its manifest that differ.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils.http import urlencode

from controlplane.builder.selectors import builds_of_epochs, causes_of_builds
from controlplane.catalog.contents import addresses_now
from controlplane.catalog.differences import ResourceDifference, actions_between, differences_of
from controlplane.catalog.models import Change
from controlplane.common.errors import InputInvalid
from controlplane.console.pages import Page
from controlplane.console.paging import Paged, page_number
from controlplane.snapshots.history import addresses_at, addresses_between, epoch_after, epoch_before
from controlplane.snapshots.selectors import snapshot_list
from xdscore.snapshot import EntryKey

LIVE: Final = "live"
SIGNS: Final = {"created": "+", "deleted": "-", "updated": "~"}
_FOLDED: Final = 100  # lines on a page; that many are found without reading a manifest
_UNFOLDED: Final = 25  # on a page with all differences: each manifest is written as YAML twice
_OFFERED: Final = 100  # snapshots to choose from, the newest
_MAX_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Side:
    """A state to choose: `word` is an epoch or `live`. `at`: when the snapshot was published, None for `live`;
    `cause`: the newest change that it was built for; None where none is kept.
    """

    word: str
    at: datetime | None = None
    cause: Change | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A resource that differs. `difference`: how; None while the line is folded. `url`: the page with it unfolded;
    `part`: the address of its difference alone, for scripts.
    """

    word: str
    name: str
    action: str
    url: str
    part: str
    difference: ResourceDifference | None = None

    @property
    def sign(self) -> str:
        """The sign that stands for what became of it: +, - or ~."""
        return SIGNS[self.action]


@dataclass(frozen=True, slots=True)
class Question:
    """What the address asks. `state`, `word`, `name`: only what became so, of this type, with this in the name; empty
    for all. `unfolded`: `all`, or the label of the resource whose difference is shown; empty for none.
    """

    before: str
    after: str
    state: str
    word: str
    name: str
    unfolded: str

    def query(self, **changed: str) -> str:
        """The query of this question, with some of its values replaced by `changed`."""
        given = {"from": self.before, "to": self.after, "state": self.state, "type": self.word, "name": self.name}
        return urlencode({key: value for key, value in {**given, "open": self.unfolded, **changed}.items() if value})

    def fits(self, key: EntryKey) -> bool:
        """Whether the filters by type and name let the resource through."""
        return (not self.word or key[0] == self.word) and self.name.lower() in key[1].lower()

    @property
    def size(self) -> int:
        """How many lines a page has."""
        return _UNFOLDED if self.unfolded == "all" else _FOLDED


class ComparePage(Page):
    """The page that compares two snapshots, or a snapshot with the catalogue as it is now."""

    template = "snapshots/compare.html"

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """The form to choose two states and, where the URL has both, one page of what differs. With `part`, the
        difference of one resource alone.
        """
        asked = _question(request)
        if not asked.before:
            return self.page({"asked": asked, "sides": self._sides(asked)})
        old, new = states_of(environment_key, asked.before, asked.after)
        if "part" in request.GET:
            key = (request.GET.get("of_type", ""), request.GET.get("of_name", ""))
            (found,) = differences_of([key], old, new, environment_key=environment_key)
            return self.part("snapshots/difference.html", {"difference": found})
        every = actions_between(old, new)
        actions = {key: action for key, action in every.items() if asked.fits(key)}
        shown = [key for key, action in actions.items() if asked.state in ("", action)]
        number = min(page_number(request), max(1, -(-len(shown) // asked.size)))
        keys = shown[(number - 1) * asked.size : number * asked.size]
        wanted = keys if asked.unfolded == "all" else [key for key in keys if _label(key) == asked.unfolded]
        differences = {each.key: each for each in differences_of(wanted, old, new, environment_key=environment_key)}
        sides = self._sides(asked)
        context = {
            "asked": asked,
            "sides": sides,
            "old": sides.get(asked.before),
            "new": sides.get(asked.after),
            "page": Paged(
                [_line(asked, key, actions[key], number, differences.get(key)) for key in keys],
                number,
                len(shown),
                asked.size,
            ),
            "counts": _counts(asked, actions.values()),
            "types": sorted({word for word, _ in every}),
            "compared": True,
            "filtered": bool(asked.state or asked.word or asked.name),
            **self._ways(asked, number),
        }
        return self.page(context)

    def _ways(self, asked: Question, number: int) -> dict[str, str]:
        """The queries that lead on from a comparison; empty where one leads nowhere."""
        first = (number - 1) * asked.size
        key, before, after = self.here.key, asked.before, asked.after
        earlier = epoch_before(environment_key=key, epoch=int(before)) if before != LIVE else None
        later = epoch_after(environment_key=key, epoch=int(after)) if after != LIVE else None
        folded = {"open": "", "page": str(first // _FOLDED + 1)}
        return {
            "swap": asked.query(**{"from": after, "to": before, "open": ""}),
            "earlier": asked.query(**{"from": str(earlier), "to": before, "open": ""}) if earlier is not None else "",
            "later": asked.query(**{"from": after, "to": str(later), "open": ""}) if later is not None else "",
            "fold": asked.query(**folded),
            "unfold": asked.query(open="all", page=str(first // _UNFOLDED + 1)),
            "everything": asked.query(state="", type="", name="", open=""),
        }

    def _sides(self, asked: Question) -> Mapping[str, Side]:
        """The states to choose from, by their words: the newest snapshots, those that are asked for, and `live`. Three
        queries.
        """
        key = self.here.key
        epochs = [int(each) for each in (asked.before, asked.after) if each and each != LIVE]
        newest = snapshot_list(environment_key=key).values_list("epoch", flat=True)[:_OFFERED]
        rows = list(snapshot_list(environment_key=key).filter(Q(epoch__in=list(newest)) | Q(epoch__in=epochs)))
        builds = builds_of_epochs(environment_key=key, epochs=[row.epoch for row in rows])
        causes = causes_of_builds(environment_key=key, builds=builds)
        sides = [Side(str(row.epoch), row.at, next(iter(causes.get(row.epoch, ())), None)) for row in rows]
        return {each.word: each for each in (Side(LIVE), *sides)}


def states_of(environment_key: str, before: str, after: str) -> tuple[Mapping[EntryKey, str], Mapping[EntryKey, str]]:
    """Two states of an environment, each given as the address (hash) of each resource's content. `before` and `after`:
    epochs, or `live` for the catalogue as it is now. Of two snapshots only what differs is read.
    """
    if LIVE not in (before, after):
        return addresses_between(environment_key=environment_key, before=epoch_of(before), after=epoch_of(after))
    old, new = (
        addresses_now(environment_key=environment_key)
        if state == LIVE
        else addresses_at(environment_key=environment_key, epoch=epoch_of(state))
        for state in (before, after)
    )
    return old, new


def epoch_of(text: str) -> int:
    """The epoch that was typed. Raises InputInvalid for what is none."""
    if text.isascii() and text.isdigit() and 0 < len(text) <= 18:
        return int(text)
    raise InputInvalid(f"'{text[:20]}' is not the number of a snapshot.")


def _question(request: HttpRequest) -> Question:
    given = request.GET
    before, after = given.get("from", "").strip(), given.get("to", LIVE).strip() or LIVE
    for each in (before, after):
        if each not in ("", LIVE):
            epoch_of(each)
    state = given.get("state", "")
    return Question(
        before,
        after,
        state if state in SIGNS else "",
        given.get("type", "").strip()[:_MAX_NAME],
        given.get("name", "").strip()[:_MAX_NAME],
        given.get("open", ""),
    )


def _label(key: EntryKey) -> str:
    return f"{key[0]}/{key[1]}"


def _line(asked: Question, key: EntryKey, action: str, number: int, difference: ResourceDifference | None) -> Line:
    url = asked.query(open="" if difference is not None else _label(key), page=str(number))
    part = asked.query(part="difference", of_type=key[0], of_name=key[1])
    return Line(key[0], key[1], action, url, part, difference)


def _counts(asked: Question, actions: Iterable[str]) -> list[tuple[str, str, int, str, bool]]:
    """For each way in which a resource can differ: its sign, its word, how many do, the query that shows only those,
    and whether they are shown alone now.
    """
    counted = Counter(actions)
    return [
        (sign, word, counted[word], asked.query(state="" if asked.state == word else word), asked.state == word)
        for word, sign in SIGNS.items()
    ]


urlpatterns = [path("e/<str:environment_key>/compare", ComparePage.as_view(), name="compare")]
