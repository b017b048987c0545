"""What one client was told of one name, what it answered, and why it waits: all states, and what leads to the next one.

Theory. A name that a stream may be sent is in three states at once, one for each of three questions:

* `Standing`: what was the client told of the name last? Mostly what the shared view shows, which needs no memory
  (decisions A6): then it is AT_REST. All other answers are noted name by name.
* `Acceptance`: what did the client say to that? Mostly yes. After a NACK nobody knows what it holds (B12), and content
  that it refused is not sent again (B7, N3).
* `Due`: why is something said of the name although nothing changed? Mostly for no reason.

A `NameState` is the three together with what goes with them: the content told, the versions refused. A name that is
AT_REST, ACCEPTED and not due has none (`REST`). `TABLE` says what each `Event` makes of each state; what it does not
list cannot happen, and is refused with an `IllegalStepError`. `SAYS` says what a look at a name finds, and what is sent
for it. Both variants of the protocol, and full states, have these tables; they differ in how a step is spelled on the
wire. Full states have no `Standing` (what was told is a body) and are due as a whole, so that they use `Acceptance`
alone.

Two steps follow from a state and not from an event: a name with a copy of its own is EXCUSED and never AT_REST, and who
refuses no version any more is DOUBTED where it was REFUSED, and ACCEPTED where it was PARKED.

Rules are numbers of docs/design/protocol.md; docs/reference/protocol-states.md shows the tables and is made of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from adsserver.engine.told import ABSENT, UNKNOWN_COPY, Told
from xdscore.snapshot import Content


class Standing(Enum):
    """What the client was told of a name last."""

    AT_REST = "what the view shows that its stream stands on"
    UNTOLD = "nothing"
    TOLD = "something else than the view shows: it changed, it went, or something stands in for it"
    REPORTED = "nothing on this stream; it said itself which version it holds"
    UNKNOWN = "nobody knows: the response that said it was refused, or crossed a request"
    EXCUSED = "what the view shows, an error after which it goes on with its copy"

    # There is one of each, and Enum's own hash is computed in Python.
    __hash__ = object.__hash__


class Acceptance(Enum):
    """What the client said to what it was sent of a name."""

    ACCEPTED = "it refused nothing of it, or acknowledged something newer"
    DOUBTED = "it was in a refused response: until the next ACK nobody knows which copy the client holds"
    REFUSED = "it refused what it would be sent, and nobody knows which copy it holds"
    PARKED = "it refused what it would be sent, and acknowledged something else since"

    __hash__ = object.__hash__


class Due(Enum):
    """Why something is said of a name although nothing changed; the later ones include the earlier."""

    NOTHING = "for no reason"
    MEND = "a NACK left open what the client holds of it"
    AGAIN = "a changed cluster needs it, or the client repeated its request"
    ASKED = "the client asked for it and waits for an answer"

    __hash__ = object.__hash__


class Event(Enum):
    """What happens to a name."""

    LEFT = "the client does not ask for it any more"
    FORGOTTEN = "the client asks for everything anew, whatever it was told"
    UNSEEN = "it is asked for, or shown, for the first time"
    OVERTAKEN = "the stream moves to a view, or a subscription, that shows something else of it"
    REPORTED = "a client that reconnects says which version it holds"
    CURRENT = "what such a client says it holds is what the view shows"
    ASKED = "the client asks for it"
    REPEATED = "the client repeats its request, or a cluster changed that needs it"
    LEFT_OPEN = "the client refused it, or the response with its error, and may lack something now"
    DELEGATED = "it is the name of a collection, for which its members answer"
    SETTLED = "a look finds that the view shows what the client was told"
    WITHHELD = "a look finds that it is withheld, of which a client that has a copy is told nothing"
    VOID = "a look finds nothing that could be said of it"
    FIXED = "a look finds that the view shows something else than what was refused"
    PASSED_OVER = "a look finds what was refused, and nothing to send in its place"
    SENT = "a response says what the view shows"
    STOOD_IN = "a response holds other content in its place"
    ACKNOWLEDGED = "the client acknowledged a response that held it"
    TRACED = "the client acknowledged a response that held it, and nobody knew what it holds"
    NACKED = "the client refused a response in which it was new, the last one that held it"
    LOST_TRACK = "its removal or error was in a refused response, or it is on its way to who asks for it anew"
    NACKED_LATE = "the client refused an earlier full state than the last one, and blames it"
    IN_COMPANY = "the client refused a full state in which it was new, and somebody else is to blame"
    CLEARED = "a version of it that was refused turned out to be good, or is sent again"
    DEPARTED = "a full state does not show it any more"

    __hash__ = object.__hash__


class Found(Enum):
    """What a look at a name finds."""

    SAME = "the view shows what the client was told"
    OTHER = "the view shows something else than the client was told, or nothing any more"
    WITHHELD = "the view shows nothing of it, for it is withheld, and the client has a copy"
    REFUSED = "the view shows what the client refused"

    __hash__ = object.__hash__


class Say(Enum):
    """What is sent of a name."""

    SILENCE = "nothing"
    SHOWN = "what the view shows: content, an error, a removal"
    COPY = "the client's own copy; where its bytes are not known, that it is gone"
    STAND_IN = "what stands in for it, if there is something"
    STAND_IN_OR_SHOWN = "what stands in for it; if there is nothing, what it refused"


_AT_REST, _UNTOLD, _TOLD, _REPORTED, _UNKNOWN, _EXCUSED = Standing
_ACCEPTED, _DOUBTED, _REFUSED, _PARKED = Acceptance
_NOTHING, _MEND, _AGAIN, _ASKED = Due
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Row:
    """What one event makes of each state in which it may happen, and the rules that say so.

    `ends_copy`: the client has no copy of its own after it but what the event gives.
    """

    rules: str
    standing: Mapping[Standing, Standing]
    acceptance: Mapping[Acceptance, Acceptance]
    due: Mapping[Due, Due]
    ends_copy: bool = False


_ANYWHERE = {each: each for each in Standing}
_RESTS = {_AT_REST: _AT_REST}
_BACK_TO_REST = dict.fromkeys(Standing, _AT_REST)
_STILL_DUE = {each: each for each in Due}
_NOT_DUE = {_NOTHING: _NOTHING}
_SAID = dict.fromkeys(Due, _NOTHING)
_AS_BEFORE = {each: each for each in Acceptance}
_ONLY_ACCEPTED = {_ACCEPTED: _ACCEPTED}
_REFUSES_NOTHING = {_ACCEPTED: _ACCEPTED, _DOUBTED: _DOUBTED}
_STILL_REFUSES = {_REFUSED: _REFUSED, _PARKED: _PARKED}
# What was refused is not what is shown any more.
_NO_LONGER_REFUSED = {**_REFUSES_NOTHING, _REFUSED: _DOUBTED, _PARKED: _ACCEPTED}
_IN_DOUBT = {_ACCEPTED: _DOUBTED, _DOUBTED: _DOUBTED, _REFUSED: _REFUSED, _PARKED: _REFUSED}
_BLAMED = {_ACCEPTED: _PARKED, _DOUBTED: _REFUSED, _REFUSED: _REFUSED, _PARKED: _PARKED}

TABLE: Mapping[Event, Row] = {
    # The subscription.
    Event.LEFT: Row("C1, C5, B7", _BACK_TO_REST, dict.fromkeys(Acceptance, _ACCEPTED), _SAID, ends_copy=True),
    Event.FORGOTTEN: Row(
        "C4, C6",
        {_UNTOLD: _AT_REST, _TOLD: _AT_REST, _REPORTED: _AT_REST, _UNKNOWN: _AT_REST},
        _AS_BEFORE,
        {_NOTHING: _NOTHING, _MEND: _MEND, _ASKED: _ASKED},
    ),
    Event.UNSEEN: Row("C1, C6, C8, D4", {_AT_REST: _UNTOLD, _EXCUSED: _UNTOLD}, _AS_BEFORE, _STILL_DUE),
    Event.OVERTAKEN: Row("A8, D6", {_AT_REST: _TOLD, _EXCUSED: _TOLD}, _AS_BEFORE, _STILL_DUE),
    Event.REPORTED: Row("E5, B9", {_AT_REST: _REPORTED, _UNTOLD: _REPORTED}, _ONLY_ACCEPTED, _NOT_DUE),
    Event.CURRENT: Row("E5, C6", {_UNTOLD: _AT_REST}, _ONLY_ACCEPTED, _NOT_DUE),
    # Why something is due.
    Event.ASKED: Row("C1, C6, C7", _ANYWHERE, _AS_BEFORE, dict.fromkeys(Due, _ASKED)),
    Event.REPEATED: Row(
        "B7, I3", _ANYWHERE, _AS_BEFORE, {_NOTHING: _AGAIN, _MEND: _AGAIN, _AGAIN: _AGAIN, _ASKED: _ASKED}
    ),
    Event.LEFT_OPEN: Row(
        "B12, F17a",
        {_AT_REST: _AT_REST, _TOLD: _TOLD, _EXCUSED: _EXCUSED},
        _AS_BEFORE,
        {_NOTHING: _MEND, _MEND: _MEND, _AGAIN: _AGAIN, _ASKED: _ASKED},
    ),
    Event.DELEGATED: Row(
        "F19, C6",
        {_AT_REST: _AT_REST, _UNTOLD: _UNTOLD, _TOLD: _TOLD, _REPORTED: _REPORTED, _UNKNOWN: _UNKNOWN},
        _AS_BEFORE,
        {_ASKED: _NOTHING, _AGAIN: _NOTHING},
    ),
    # What a look finds, and is not told.
    Event.SETTLED: Row(
        "D2, D6", {_UNTOLD: _AT_REST, _TOLD: _AT_REST, _REPORTED: _AT_REST}, _REFUSES_NOTHING, _STILL_DUE
    ),
    Event.WITHHELD: Row(
        "F18a, F22",
        {_UNTOLD: _TOLD, _TOLD: _TOLD, _REPORTED: _REPORTED, _UNKNOWN: _UNKNOWN, _EXCUSED: _TOLD},
        _AS_BEFORE,
        {_NOTHING: _NOTHING, _MEND: _NOTHING},
        ends_copy=True,
    ),
    Event.VOID: Row(
        "D1, D2, F4",
        {_AT_REST: _AT_REST, _UNTOLD: _AT_REST, _TOLD: _AT_REST, _UNKNOWN: _AT_REST},
        _NO_LONGER_REFUSED,
        _SAID,
    ),
    Event.FIXED: Row(
        "F17, B7",
        {_AT_REST: _AT_REST, _UNTOLD: _UNTOLD, _TOLD: _TOLD, _UNKNOWN: _UNKNOWN},
        {_REFUSED: _DOUBTED, _PARKED: _ACCEPTED},
        _STILL_DUE,
    ),
    Event.PASSED_OVER: Row(
        "B7, F17",
        {_AT_REST: _AT_REST, _UNTOLD: _UNTOLD, _TOLD: _TOLD, _UNKNOWN: _UNKNOWN},
        _STILL_REFUSES,
        {_MEND: _NOTHING, _AGAIN: _NOTHING},
    ),
    # Responses.
    Event.SENT: Row("D6, E1, F9, F12", _BACK_TO_REST, _NO_LONGER_REFUSED, _SAID, ends_copy=True),
    Event.STOOD_IN: Row(
        "F17, F17a, F18a",
        {_AT_REST: _TOLD, _UNTOLD: _TOLD, _TOLD: _TOLD, _UNKNOWN: _TOLD, _EXCUSED: _TOLD},
        _AS_BEFORE,
        _SAID,
        ends_copy=True,
    ),
    # Answers.
    Event.ACKNOWLEDGED: Row(
        "B11",
        {_AT_REST: _AT_REST, _UNTOLD: _UNTOLD, _TOLD: _TOLD, _EXCUSED: _EXCUSED},
        {_DOUBTED: _ACCEPTED, _REFUSED: _PARKED},
        _STILL_DUE,
    ),
    Event.TRACED: Row("B11, B12", {_UNKNOWN: _UNKNOWN}, _IN_DOUBT, _STILL_DUE),
    Event.NACKED: Row(
        "B7, B12",
        {_AT_REST: _AT_REST, _TOLD: _TOLD},
        dict.fromkeys(Acceptance, _REFUSED),
        {_NOTHING: _NOTHING, _AGAIN: _AGAIN, _ASKED: _ASKED},
    ),
    Event.LOST_TRACK: Row(
        "B12, F8", {_AT_REST: _UNKNOWN, _UNTOLD: _UNKNOWN, _TOLD: _UNKNOWN, _EXCUSED: _UNKNOWN}, _AS_BEFORE, _STILL_DUE
    ),
    # Answers to full states.
    Event.NACKED_LATE: Row("B7, B11", _RESTS, _BLAMED, _NOT_DUE),
    Event.IN_COMPANY: Row("B12", _RESTS, _IN_DOUBT, _NOT_DUE),
    Event.CLEARED: Row("B11, D9", _RESTS, _STILL_REFUSES, _NOT_DUE),
    Event.DEPARTED: Row("B12", _RESTS, {_DOUBTED: _ACCEPTED}, _NOT_DUE),
}

SAYS: Mapping[Found, Mapping[Due, Say]] = {
    # D6; C1, C6, B7, I3: who asks, or needs it, is told once more.
    Found.SAME: {**dict.fromkeys(Due, Say.SHOWN), _NOTHING: Say.SILENCE},
    # A8, C8, E1, F11, F12.
    Found.OTHER: dict.fromkeys(Due, Say.SHOWN),
    # F18a, F22; C7: who asks what becomes of a name that it left is told.
    Found.WITHHELD: {**dict.fromkeys(Due, Say.SILENCE), _ASKED: Say.COPY},
    # B7, N3; F17, F17a; C1, C6, T1: every name asked for is answered.
    Found.REFUSED: {
        _NOTHING: Say.SILENCE,
        _MEND: Say.STAND_IN,
        _AGAIN: Say.STAND_IN,
        _ASKED: Say.STAND_IN_OR_SHOWN,
    },
}


class IllegalStepError(Exception):
    """An event happened to a name in whose state it cannot happen: the engine is wrong about its client."""

    def __init__(self, state: "NameState", event: Event) -> None:
        words = f"{state.standing.name}, {state.acceptance.name} and due for {state.due.name}"
        super().__init__(f"{event.name} cannot happen to a name that is {words}")


class NameState(NamedTuple):
    """The state of one name, and what goes with it. A tuple, for there may be 10,000 of them.

    `told`: what the client was told last, where the view does not say it. `copy`: what it goes on with after an error
    that takes nothing away (F2, F18a). `refused`: versions it refused. `acknowledged`: where nobody knows what it
    holds, what it acknowledged last, which may be nothing. `moves`: whether a look at the name may find something to
    tell. `asks`: whether the client waits for an answer about it, or needs it once more.
    """

    standing: Standing = _AT_REST
    acceptance: Acceptance = _ACCEPTED
    due: Due = _NOTHING
    told: Told | None = None
    copy: Content | None = None
    refused: frozenset[str] = _NONE
    acknowledged: Told | None = None
    moves: bool = False
    asks: bool = False


REST = NameState()
"""The state of a name of which nothing is remembered."""

DOUBTFUL = frozenset({_DOUBTED, _REFUSED})
"""Nobody knows what the client holds of the name, for it was in a response that it refused."""

_IMPLIED: Mapping[Standing, Told] = {_UNTOLD: ABSENT, _UNKNOWN: UNKNOWN_COPY}
_REFUSING = frozenset({_REFUSED, _PARKED})
# What a named tuple does by itself, but for two calls.
_new = tuple.__new__


def after(
    state: NameState,
    event: Event,
    *,
    told: Told | None = None,
    copy: Content | None = None,
    version: str = "",
    acknowledged: Told | None = None,
) -> NameState:
    """The state of a name once `event` happened to it.

    `told`: what the client was told, where the next state holds that. `copy`: what it goes on with. `version`: the one
    that is refused, or cleared. `acknowledged`: what it had acknowledged before it refused something.
    """
    row = TABLE[event]
    try:
        standing, acceptance, due = row.standing[state.standing], row.acceptance[state.acceptance], row.due[state.due]
    except KeyError:
        raise IllegalStepError(state, event) from None
    if copy is None and not row.ends_copy:
        copy = state.copy
    refused, known = _NONE, None
    if acceptance is not _ACCEPTED:
        acceptance, refused, known = _answered(state, event, acceptance, version, acknowledged)
    if standing is _AT_REST:
        if copy is not None:
            standing = _EXCUSED
        elif acceptance is _ACCEPTED and due is _NOTHING:
            return REST
    if standing is _AT_REST or standing is _EXCUSED:
        told = None
    elif standing in _IMPLIED:
        told = _IMPLIED[standing]
    elif told is None:
        told = state.told
    moves = told is not None or due is not _NOTHING
    asks = due is _ASKED or due is _AGAIN
    return _new(NameState, (standing, acceptance, due, told, copy, refused, known, moves, asks))


def _answered(
    state: NameState, event: Event, acceptance: Acceptance, version: str, acknowledged: Told | None
) -> tuple[Acceptance, frozenset[str], Told | None]:
    """What was refused of a name, and what its client is known to have acknowledged, where it refused any of it."""
    refused = state.refused if acceptance in _REFUSING else _NONE
    if version:
        refused = refused - {version} if event is Event.CLEARED else refused | {version}
    if not refused:
        acceptance = _NO_LONGER_REFUSED[acceptance]
    if acceptance not in DOUBTFUL:
        return acceptance, refused, None
    return acceptance, refused, state.acknowledged if acknowledged is None else acknowledged
