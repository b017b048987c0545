"""Print docs/reference/protocol-states.md, made from the tables of `adsserver.engine.name_state` (`make states`)."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from adsserver.engine.name_state import SAYS, TABLE, Acceptance, Due, Event, Found, Say, Standing

_HEAD = """# The states of a name

What a stream remembers of a name that it may send, and what each thing that can happen makes of that. This page is
made from the tables in [adsserver/engine/name_state.py](../../adsserver/engine/name_state.py) by `make states`: what
stands here is what the server does. The rules that a step obeys are those of [the protocol](../design/protocol.md);
who keeps each is in [the list of rules](protocol.md).

A name has three states at once, one for each of three questions. A name that is `AT_REST`, `ACCEPTED` and due for
`NOTHING` takes no memory: almost all names of almost all streams are like that, for streams share the view that they
were told.

* **Parts** (delta, and SotW types other than LDS, CDS and SRDS) have all three.
* **Full states** (SotW LDS, CDS and SRDS) are told and due as a whole, so that their names have an acceptance alone.

What differs between the variants is how a step is spelled on the wire: that a name is gone is a removal, an error or
both in delta, an error in SotW parts, and absence in a full state.
"""

_STATES: Mapping[str, type[Enum]] = {
    "Standing: what was the client told of the name last?": Standing,
    "Acceptance: what did the client say to that?": Acceptance,
    "Due: why is something said of the name although nothing changed?": Due,
}

_EVENTS = """
## What leads to the next state

An arrow is the next state, `kept` a state that stays, and a state that is not listed cannot be when this happens: the
engine raises `IllegalStepError`, and the stream ends, sooner than that a client is told something by mistake. Two
steps follow by themselves: a name of which the client has a copy of its own is `EXCUSED` where it would be `AT_REST`,
and one of which it refuses no version any more is `DOUBTED` where it would be `REFUSED`, and `ACCEPTED` where it
would be `PARKED`.

| event | happens when | rules | standing | acceptance | due |
|---|---|---|---|---|---|"""

_SAYS = """
## What is sent

When a stream looks at a name, it finds one of these; what it sends depends on why the name is due.
"""

_CITED = """
`SAME`: D6, C1, C6, B7, I3. `OTHER`: A8, C8, E1, F11, F12. `WITHHELD`: F18a, F22, C7. `REFUSED`: B7, N3, F17, F17a.
What stands in is, in this order, what this client acknowledged last, what it was told last, and what any client
acknowledged last (F17)."""


def page() -> str:
    """The page as it must be."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD.rstrip("\n")
    for question, states in _STATES.items():
        yield from ("", f"## {question}", "", "| state | answer |", "|---|---|")
        yield from (f"| `{state.name}` | {state.value} |" for state in states)
    yield _EVENTS
    yield from (_event(event) for event in Event)
    yield _SAYS
    yield "| a look finds | " + " | ".join(f"due for `{due.name}`" for due in Due) + " |"
    yield "|---" * (len(Due) + 1) + "|"
    for found in Found:
        said = " | ".join(f"`{SAYS[found][due].name}`" for due in Due)
        yield f"| `{found.name}`: {found.value} | {said} |"
    yield from ("", "| what is sent | |", "|---|---|")
    yield from (f"| `{say.name}` | {say.value} |" for say in Say)
    yield _CITED


def _event(event: Event) -> str:
    row = TABLE[event]
    parts = (
        _steps(part, states)
        for part, states in ((row.standing, Standing), (row.acceptance, Acceptance), (row.due, Due))
    )
    return f"| `{event.name}` | {event.value} | {row.rules} | " + " | ".join(parts) + " |"


def _steps(steps: Mapping[Any, Enum], states: Iterable[Enum]) -> str:
    """One part of a row, with what leads to the same state together."""
    kept = [state for state in states if steps.get(state) is state]
    if len(kept) == len(list(states)):
        return "kept"
    said = [f"{_names(kept)} kept"] if kept else []
    for after in states:
        befores = [state for state in states if steps.get(state) is after and state is not after]
        said += [f"{_names(befores)} → `{after.name}`"] if befores else []
    return "; ".join(said)


def _names(states: Iterable[Enum]) -> str:
    return ", ".join(f"`{state.name}`" for state in states)


if __name__ == "__main__":
    sys.stdout.write(page())
