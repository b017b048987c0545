"""What is sent in place of content that a client refused, and which suspects are sent once more to be told apart.

What was refused of a name is part of its state (`name_state`); here is what follows from it, for types that come in
parts and for full states alike.
"""

from collections.abc import Iterable

from adsserver.engine.client_view import ClientView
from adsserver.engine.events import NamedContent
from adsserver.engine.ledger import Entry
from adsserver.engine.memory import Memory
from adsserver.engine.name_state import NameState
from adsserver.engine.rejection import Group, Resends, groups_to_resend
from adsserver.engine.told import ABSENT, Absent, Told
from xdscore.snapshot import Content


def is_refused(view: ClientView, name: str, state: NameState) -> bool:
    """Whether the view shows content of this name that the client refused."""
    member = view.named.get(name)
    return member is not None and member.content.version in state.refused


def copy_of(state: NameState, told: Told) -> Content | None:
    """The content that a client in this state, who was told `told` last, goes on with of a name; None where it has none
    by our knowledge. What it refused is none: it goes on with what it had acknowledged before.
    """
    if not isinstance(told, Content):
        return state.copy
    if told.version not in state.refused:
        return told
    return state.acknowledged if isinstance(state.acknowledged, Content) else None


def stand_in(candidates: Iterable[Told | None], refused: frozenset[str]) -> Content | Absent:
    """The first of these contents that was not refused, whose bytes are known (F17); absent when there is none."""
    usable = (each for each in candidates if isinstance(each, Content) and each.blob and each.version not in refused)
    return next(usable, ABSENT)


class Suspects:
    """The suspects of one type that comes in parts, on one stream: which refused contents are to be sent again in which
    groups, to find the culprit (decisions C8). `resends`: the groups.
    """

    __slots__ = ("_reverts", "_to_revert", "resends")

    def __init__(self, max_resends: int, *, reverts: bool) -> None:
        """`reverts`: clients compare with what they refused, and would acknowledge it unseen when it comes again."""
        self.resends = Resends(max_resends)
        self._reverts = reverts
        # Suspects whose refused content would be acknowledged unseen: what was acknowledged before goes first.
        self._to_revert: set[str] = set()

    def plan(self, entry: Entry, changed: tuple[NamedContent, ...], suspects: tuple[NamedContent, ...]) -> None:
        """Plan which of the content new in a rejected response is to be sent again, apart."""
        groups = groups_to_resend(changed, suspects)
        self.resends.plan(groups, changed, isolating=entry.isolating)
        if self._reverts:
            self._to_revert |= {name for group in groups for name in group} & entry.before.keys()

    def reverted(self, view: ClientView, memory: Memory, group: Group) -> dict[str, Content]:
        """What the client acknowledged of the suspects before, so that it looks at them anew when they come again.

        By name; once, before the first group that has such a name in it.
        """
        if self._to_revert.isdisjoint(group):
            return {}
        due, self._to_revert = sorted(self._to_revert), set()
        states = ((name, memory[name]) for name in due)
        copies = ((name, state.acknowledged) for name, state in states if is_refused(view, name, state))
        # Of what a client that reconnected says it holds, nobody here has the bytes.
        return {name: copy for name, copy in copies if isinstance(copy, Content) and copy.blob}
