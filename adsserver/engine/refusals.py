"""What a client refused of a type that comes in parts (B7, B12, N3), and the suspects that are still to be told apart.

Refused content is not sent again before it changes. Two things may come in its place: what this client had acknowledged
before, and what any client ever acknowledged (F17).
"""

from collections.abc import Callable, Iterable

from adsserver.engine.client_view import ClientView
from adsserver.engine.events import NamedContent
from adsserver.engine.ledger import Entry
from adsserver.engine.rejection import Group, Resends, groups_to_resend
from adsserver.engine.told import ABSENT, Told
from adsserver.engine.waiting import Waiting
from xdscore.snapshot import Content


class Refusals:
    """Of one type on one stream."""

    __slots__ = ("_reverts", "_to_revert", "acknowledged", "resends", "versions")

    def __init__(self, max_resends: int, *, reverts: bool) -> None:
        """`reverts`: clients compare with what they refused, and would acknowledge it unseen when it comes again."""
        # By name: versions this client refused, while they are what it would be sent.
        self.versions: dict[str, frozenset[str]] = {}
        # Names of rejected responses: what the client had acknowledged of them before; its copy now is unknown.
        self.acknowledged: dict[str, Told] = {}
        self.resends = Resends(max_resends)
        self._reverts = reverts
        # Suspects whose refused content would be acknowledged unseen: what was acknowledged before goes first.
        self._to_revert: set[str] = set()

    def note(self, member: NamedContent, before: Told) -> None:
        """The client refused this; `before` is what it had acknowledged of the name until then."""
        self.versions[member.name] = self.versions.get(member.name, frozenset()) | {member.content.version}
        self.acknowledged[member.name] = before

    def plan(self, entry: Entry, changed: tuple[NamedContent, ...], suspects: tuple[NamedContent, ...]) -> None:
        """Plan which of the content new in a rejected response is to be sent again, apart (decisions C8)."""
        groups = groups_to_resend(changed, suspects)
        self.resends.plan(groups, isolating=entry.isolating)
        if self._reverts:
            self._to_revert |= {name for group in groups for name in group} & entry.before.keys()

    def forget_unless(self, covers: Callable[[str], bool]) -> None:
        """Of names no longer asked for there is nothing to remember."""
        self.versions = {name: refused for name, refused in self.versions.items() if covers(name)}
        self.acknowledged = {name: told for name, told in self.acknowledged.items() if covers(name)}

    def forget_answered(self, names: Iterable[str]) -> None:
        """The client acknowledged a response with these names: what it holds of them is known again."""
        for name in names:
            self.acknowledged.pop(name, None)

    def still_shown(self, view: ClientView, group: Group) -> tuple[str, ...]:
        """Those of the group of which the view still shows what was refused."""
        return tuple(name for name in group if self._is_shown(view, name))

    def reverted(self, view: ClientView, group: Group) -> dict[str, Content]:
        """What the client acknowledged of the suspects before, so that it looks at them anew when they come again.

        Once, before the first group that has such a name in it.
        """
        if self._to_revert.isdisjoint(group):
            return {}
        due, self._to_revert = sorted(self._to_revert), set()
        copies = {name: self.acknowledged.get(name, ABSENT) for name in due if self._is_shown(view, name)}
        return {name: copy for name, copy in copies.items() if isinstance(copy, Content)}

    def unless_refused(
        self, view: ClientView, name: str, before: Told, now: Told, waiting: Waiting
    ) -> tuple[Told, bool]:
        """What is told of a name of which the client refused some content, and whether even if it is the same.

        Refused content is not sent again (B7, N3): when the client needs something, other content stands in (F17). Only
        who asks for the name itself gets it once more where there is none, for every name asked for is answered (C1,
        C6, T1).
        """
        refused = self.versions[name]
        if not isinstance(now, Content) or now.version not in refused:
            del self.versions[name]
            return now, name in waiting
        if name not in waiting:
            return before, False
        # What this client has, or had, comes before what others have.
        for content in (self.acknowledged.get(name, ABSENT), before, view.proven(name)):
            # Of some copies nothing but the version is known, or not even that: they cannot be sent.
            if isinstance(content, Content) and content.blob and content.version not in refused:
                return content, True
        if name in waiting.asked:
            return now, True
        waiting.settle((name,))
        return before, False

    def _is_shown(self, view: ClientView, name: str) -> bool:
        member = view.named.get(name)
        return member is not None and member.content.version in self.versions.get(name, ())
