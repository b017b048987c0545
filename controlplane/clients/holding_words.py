"""The words about what a client has: one sentence for each state that has no words of its own, and which of several
streams counts. Pure.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from xdscore.holdings import Holding, HoldingState

WORST_FIRST: Final = (
    HoldingState.NACKED,
    HoldingState.UNKNOWN,
    HoldingState.ERROR_SENT,
    HoldingState.SILENT,
    HoldingState.SENT,
    HoldingState.REQUESTED,
    HoldingState.ACKED,
)
"""Of several streams of a client the state that comes first here is that of the client."""

SENTENCES: Final = {
    HoldingState.ACKED: "",
    HoldingState.SENT: "It was sent this and has not answered yet.",
    HoldingState.NACKED: "It refused this, and no words of it are known: it gave none, or they are not kept any more.",
    HoldingState.REQUESTED: "It asks for this and was sent nothing yet.",
    HoldingState.UNKNOWN: "It refused a response that had this in it, and it is not told apart yet what it took of it.",
}
NOT_SAID: Final = "Nobody knows: its stream is served by an ADS process of an earlier version, which does not say it."
FORGOTTEN: Final = "Nobody knows any more: what clients had is kept for {hours} h."

UNSAID: Final = Holding(HoldingState.UNKNOWN, message=NOT_SAID)
"""What a client has by the word of an ADS process that does not say it."""


def worst(holdings: Sequence[Holding]) -> int:
    """The place, in `holdings`, of the one that counts for a client with as many streams."""
    return min(range(len(holdings)), key=lambda place: WORST_FIRST.index(holdings[place].state))


def on_streams(holding: Holding, holdings: Sequence[Holding]) -> str:
    """On how many of a client's streams, which have `holdings`, it is so; empty where there is but one stream."""
    if len(holdings) == 1:
        return ""
    alike = sum(each.state is holding.state and each.version == holding.version for each in holdings)
    return f"This is so on {alike} of its {len(holdings)} streams."


def went_away(at: datetime, holding: Holding, revision: int | None) -> str:
    """That the client went away at this time, and what it had then; `revision`: of that."""
    had = called(holding.acked, revision) if holding.acked else "nothing of it"
    return f"It went away at {at:%Y-%m-%dT%H:%M:%SZ}; it had {had}."


def called(version: str, revision: int | None) -> str:
    """What to call a content: its revision, else its version."""
    return f"r{revision}" if revision is not None else f"version {version}, which is of no revision known here"


def label(holding: Holding, revision: int | None) -> str:
    """Under what clients of one state are counted: the revision they were sent or have, or the code they were told."""
    if holding.code:
        return holding.code
    if not holding.version:
        return "none"
    return f"r{revision}" if revision is not None else "other"
