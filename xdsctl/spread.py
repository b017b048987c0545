"""How a change spread: when the clients took it that were connected when it was published. Lines for people."""

from typing import Final

from xdsctl.exits import JsonObject
from xdsctl.session import Session

_MAX_LINES: Final = 20
_BAR_CHARS: Final = 40


def with_spread(session: Session, change: JsonObject) -> JsonObject:
    """The change, with how it spread as its member `convergence`."""
    return {**change, "convergence": session.api.get(f"/changes/{change['id']}/convergence")}


def spread_lines(found: JsonObject) -> list[str]:
    """How a change spread, `found` as the API tells it: a line that says when half, 99 % and the last of the clients
    had it, and a line with a bar for each moment at which more of them did.
    """
    if not found["known"]:
        return ["spread   not known: it is not published, or what clients had at that time is not kept any more"]
    if not found["of"]:
        return ["spread   no connected client was to take it"]
    reached = (
        f"half {_after(found['p50_s'])}, 99 % {_after(found['p99_s'])}, the last of them {_after(found['last_s'])}"
    )
    return [
        f"spread   {found['took']} of {found['of']} clients took it: {reached}",
        *(_bar(each, found["of"]) for each in (_thinned(found["steps"]) if found["took"] else ())),
    ]


def _after(second: float | None) -> str:
    return "not yet" if second is None else f"after {second:g} s"


def _bar(step: JsonObject, of: int) -> str:
    return f"{step['second']:>10g} s  {step['clients']:>6}  {'#' * round(_BAR_CHARS * step['clients'] / of)}".rstrip()


def _thinned(steps: list[JsonObject]) -> list[JsonObject]:
    """At most so many steps that a screen can show them, the first and the last among them."""
    if len(steps) <= _MAX_LINES:
        return steps
    return [steps[round(place * (len(steps) - 1) / (_MAX_LINES - 1))] for place in range(_MAX_LINES)]
