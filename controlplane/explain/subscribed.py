"""The third rung: whether a client asks for a name, or asked for it at a time (truth.md H6). Pure."""

from datetime import datetime

from controlplane.explain.values import Asked, ClientSide, Question, Rung, RungState, clock, listed, skipped
from xdscore.names import canonical


def asking(client: ClientSide | None, question: Question) -> Asked | None:
    """A subscription of the client that asks for the name; None where no open stream does."""
    if client is None or not client.connected:
        return None
    return next((each for each in client.asked if each.covers(question.name)), None)


def subscribed_rung(question: Question, client: ClientSide | None, asked: Asked | None) -> Rung:
    """Whether the client asks for the name or, where the question is about a time, asked for it then. `asked`: its
    subscription to it.
    """
    if client is None:
        return skipped(3, "subscribed", "No client of this environment was named.")
    word = question.kind.word
    if question.time is not None:
        return Rung(3, "subscribed", *_then(question, client, asked, question.time))
    if not client.connected:
        text = f"It has no open stream since {clock(client.last_seen)}; what it holds cannot be known."
        return Rung(3, "subscribed", RungState.UNKNOWN, text)
    if asked is not None:
        how = "by this name" if canonical(question.name) in map(canonical, asked.names) else f"to every {word}"
        return Rung(3, "subscribed", RungState.OK, f"Connected and subscribed {how}.")
    near = f" Closest that it asks for: {listed(client.near)}." if client.near else ""
    text = f"Connected, but it does not ask for {word} '{question.name}'.{near}"
    return Rung(3, "subscribed", RungState.FAIL, text)


def _then(question: Question, client: ClientSide, asked: Asked | None, time: datetime) -> tuple[RungState, str]:
    """Whether the client asked for the name at a time, and the sentence that says so."""
    if client.unknown:
        return RungState.UNKNOWN, client.unknown
    if not client.connected:
        text = f"No stream of it is known that was open at {clock(time)}; what it held then cannot be known."
        return RungState.UNKNOWN, text
    if asked is not None:
        return RungState.OK, "Connected and subscribed then."
    return RungState.FAIL, f"Connected then, but it did not ask for {question.kind.word} '{question.name}'."
