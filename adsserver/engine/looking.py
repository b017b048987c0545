"""What a look at one name finds: what there is to tell a client, given what it was told and what it answered.

What is said of a finding is decided by `name_state.SAYS`. Here is how the finding follows from a view and a state, and
which content is said.
"""

from collections.abc import Callable
from typing import NamedTuple

from adsserver.engine.change import Change
from adsserver.engine.client_view import ClientView
from adsserver.engine.name_state import SAYS, Due, Event, Found, NameState, Say, after
from adsserver.engine.refusals import stand_in
from adsserver.engine.subscription import Subscription
from adsserver.engine.told import ABSENT, Absent, Told, same
from xdscore.errors import ResourceError
from xdscore.snapshot import Content

_SAME, _OTHER, _NOTHING = Found.SAME, Found.OTHER, Due.NOTHING


class Look(NamedTuple):
    """The state of a name after a look at it, and what there is to tell of it, if anything.

    `over`: what the client was told of it does not hold any more, and no response says so.
    """

    state: NameState
    change: Change | None = None
    over: bool = False


class Viewer(NamedTuple):
    """Whom something is told of a view: a subscription, where links in error texts lead, and the ways of the variant.

    `says_gone`: of a name, and of whether the client has a copy of it, whether a response mentions that there is
    nothing to show of the name any more, not even an error.
    """

    subscription: Subscription
    public_url: str
    says_gone: Callable[[str, bool], bool]


def look(view: ClientView, viewer: Viewer, name: str, state: NameState, before: Told) -> Look:
    """What a look at a name finds, of which the client was told `before` last: its next state, and what to tell."""
    now = view.shown(name, viewer.subscription, viewer.public_url)
    farewell = False
    if isinstance(now, Absent):
        instead = _look_at_nothing(view, viewer, name, state, before)
        if isinstance(instead, Look):
            return instead
        before, now, farewell = instead
    if state.refused:
        if isinstance(now, Content) and now.version in state.refused:
            return _look_at_refused(view, name, state, before, now)
        if isinstance(now, Content) or not isinstance(before, Content) or before.version not in state.refused:
            # Else what it refused is remembered until it is told otherwise: that is no copy to go on with.
            state = after(state, Event.FIXED)
    found = _OTHER
    if same(before, now):
        found = _SAME
        state = after(state, Event.SETTLED) if state.told is not None else state
    if SAYS[found][state.due] is Say.SILENCE:
        return Look(state)
    return Look(state, Change(name, before, now, state.due is not _NOTHING, farewell))


def _look_at_nothing(
    view: ClientView, viewer: Viewer, name: str, state: NameState, before: Told
) -> Look | tuple[Told, Told, bool]:
    """The view shows nothing of the name, not even an error: what the look finds, if nothing is said of it.

    Else what the client was told as it sees it now, what it is to be told, and whether that is a farewell.
    """
    copy = before if isinstance(before, Content) else state.copy
    if copy is not None and view.withholds(name):
        if SAYS[Found.WITHHELD][state.due] is Say.SILENCE:
            return Look(after(state, Event.WITHHELD, told=copy))
        if copy.blob:
            return before, copy, False
    elif not isinstance(before, Absent):
        # F19: who was told of a member of its collection hears, once, why it is none any more.
        farewell = view.farewell(name, viewer.subscription, viewer.public_url)
        if isinstance(farewell, ResourceError) and not same(farewell, before):
            return before, farewell, True
    if not viewer.says_gone(name, copy is not None):
        return Look(after(state, Event.VOID), over=True)
    return (ABSENT if isinstance(before, ResourceError) else before), ABSENT, False


def _look_at_refused(view: ClientView, name: str, state: NameState, before: Told, refused: Content) -> Look:
    """The view shows content that the client refused: what this client has, or had, stands in before what others have
    (F17).
    """
    say = SAYS[Found.REFUSED][state.due]
    if say is Say.SILENCE:
        return Look(state)
    instead = stand_in((state.acknowledged, before, view.proven(name)), state.refused)
    if isinstance(instead, Content):
        return Look(state, Change(name, before, instead, forced=True))
    if say is Say.STAND_IN_OR_SHOWN:
        return Look(state, Change(name, before, refused, forced=True))
    return Look(after(state, Event.PASSED_OVER))
