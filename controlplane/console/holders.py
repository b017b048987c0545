"""Who has which revision of a resource: how many clients have what, and the clients, those that refuse it first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.utils.http import urlencode

from controlplane.clients.holder_facts import HolderFacts, holder_facts
from controlplane.clients.holding_words import WORST_FIRST
from controlplane.clients.holdings import Counts, resource_holders
from controlplane.clients.in_use import Unused
from controlplane.clients.uses import Uses, not_in_use
from controlplane.console.holding_lines import HoldingLine, diff_url, lines_of, published_versions
from controlplane.console.paging import SIZE
from controlplane.console.resources import resource_url
from controlplane.console.states import look_of
from xdscore.holdings import HoldingState
from xdscore.resource_types import ResourceType

_STATES: Final = {each.value: each for each in HoldingState}
_LABELS: Final = {"none": "nothing", "other": "other content"}
_MAX_TEXT: Final = 100


@dataclass(frozen=True, slots=True)
class Share:
    """The connected clients that are in one state with one content.

    `what`: a revision such as `r12`, `other content`, the code of an error, or `nothing`. `behind`: they took another
        revision than is published.
    `start`, `width`: the place in the bar, in percent of it. `url`: the list of these clients; `chosen`: it is shown.
    """

    state: HoldingState
    what: str
    clients: int
    behind: bool
    start: float
    width: float
    url: str
    diff_url: str
    chosen: bool

    @property
    def tone(self) -> str:
        """The colour of the part of the bar, as in `states.Look`."""
        return "warn" if self.behind else look_of(self.state.value).tone

    @property
    def percent(self) -> str:
        """How many of the clients these are, in words such as `12 %`."""
        return f"{self.width:.0f} %" if self.width >= 1 else "< 1 %"


@dataclass(frozen=True, slots=True)
class HolderLine:
    """A client that asks for the resource, with what it has of it. `facts`: None where its stream just ended."""

    line: HoldingLine
    facts: HolderFacts | None


@dataclass(frozen=True, slots=True)
class Holders:
    """Who has what of a resource.

    `asking`: how many connected clients ask for it; `running`: how many of them acknowledged the published revision,
        `published`, which is None where nothing is served.
    `unused`: of those that acknowledged the published revision, how many do not use it yet; None where all do.
    `next`: the cursor of the page after this one, empty on the last; `later`: this is not the first page.
    """

    shares: tuple[Share, ...]
    asking: int
    running: int
    published: int | None
    unused: Unused | None
    lines: tuple[HolderLine, ...]
    next: str
    later: bool
    chosen: bool


def holders_shown(request: HttpRequest, environment_key: str, kind: ResourceType, name: str) -> Holders:
    """The shares of the clients that ask for the resource, and the page of them that the URL asks for."""
    state = _STATES.get(request.GET.get("state", ""))
    revision = _number(request.GET.get("revision", ""))
    after = request.GET.get("after", "")[:_MAX_TEXT]
    uses, key = Uses(environment_key), (kind.word, name)
    served = published_versions(environment_key, {key})
    # First, for it reads what clients ask for of everybody.
    found = not_in_use(uses=uses, versions=served)
    counts, page = resource_holders(
        environment_key=environment_key,
        key=key,
        states=() if state is None else (state,),
        revision=revision,
        after=after,
        limit=SIZE,
        uses=uses,
        served=served.get(key, ""),
    )
    published = page.served
    facts = holder_facts(word=kind.word, streams={row.stream for row in page.rows})
    lines = lines_of(environment_key, page.rows, {key: published} if published is not None else {})
    return Holders(
        shares=_shares(counts, environment_key, key, published, (state, revision)),
        asking=sum(sum(each.values()) for each in counts.values()),
        running=counts.get(HoldingState.ACKED, {}).get(f"r{published}", 0),
        published=published,
        unused=next(iter(found.resources), None),
        lines=tuple(HolderLine(each, facts.get(each.row.stream)) for each in lines),
        next=page.after,
        later=bool(after),
        chosen=state is not None or revision is not None,
    )


def _shares(
    counts: Counts,
    environment_key: str,
    key: tuple[str, str],
    published: int | None,
    chosen: tuple[HoldingState | None, int | None],
) -> tuple[Share, ...]:
    total = sum(sum(each.values()) for each in counts.values())
    found: list[Share] = []
    start = 0.0
    for state in WORST_FIRST:
        for label, clients in _ordered(counts.get(state, {})):
            number = _number(label.removeprefix("r")) if label.startswith("r") else None
            behind = state is HoldingState.ACKED and label != f"r{published}"
            asked = {"tab": "clients", "state": state.value}
            if number is not None:
                asked["revision"] = str(number)
            width = 100 * clients / total
            found.append(
                Share(
                    state=state,
                    what=_LABELS.get(label, label),
                    clients=clients,
                    behind=behind,
                    start=round(start, 2),
                    width=round(width, 2),
                    url=f"{resource_url(environment_key, *key)}&{urlencode(asked)}",
                    diff_url=diff_url(environment_key, key, number, published)
                    if number is not None and published is not None and number != published
                    else "",
                    chosen=chosen[0] is state and chosen[1] in {None, number},
                )
            )
            start += width
    return tuple(found)


def _ordered(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The counts of one state, most clients first."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
