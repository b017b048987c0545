"""What a client was told, name by name: all of delta, and SotW of every type that may be sent in parts (D1).

A stream's state is a reference to the shared view it was told, plus what differs from it in `behind` (architecture.md
decision 6): names that were added but not answered, that did not fit into one response, whose removal has to wait, or
of which the client holds something else. Both are empty for a stream at rest.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping

from adsserver.engine.change import MAX_RESPONSE_BYTES, Change, fitting, gains_of, members_of
from adsserver.engine.client_view import ClientView, Step
from adsserver.engine.events import Nack, NamedContent
from adsserver.engine.ledger import Entry
from adsserver.engine.rejection import MAX_RESENDS, Group, blamed, groups_to_resend
from adsserver.engine.settings import EngineSettings
from adsserver.engine.subscription import Subscription
from adsserver.engine.substream import NOTHING, Later, SubStream
from adsserver.engine.told import ABSENT, UNKNOWN_COPY, Absent, Told, reported, same
from xdscore.errors import ResourceError
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content
from xdscore.xdstp import Glob


class ByName(SubStream):
    """One type whose responses hold any part of the state.

    The variants differ in what a loss and a version look like on the wire.
    """

    __slots__ = (
        "_again",
        "_asked",
        "_behind",
        "_groups",
        "_mend",
        "_more",
        "_owed",
        "_refused",
        "_resends_left",
        "_to_revert",
        "_told_view",
        "_unsure",
    )

    def __init__(self, kind: ResourceType, settings: EngineSettings) -> None:
        super().__init__(kind, settings)
        self._told_view: ClientView | Absent = ABSENT
        self._behind: dict[str, Told] = {}
        self._asked: set[str] = set()
        # Forced, but nobody asked: behind a changed cluster or a repeated ask; and after a NACK.
        self._again: set[str] = set()
        self._mend: set[str] = set()
        self._owed = False
        self._more = False
        # By name: versions this client refused, while they are what it would be sent (B7, N3).
        self._refused: dict[str, frozenset[str]] = {}
        # Names of rejected responses: what the client had acknowledged of them before; its copy now is unknown (B12).
        self._unsure: dict[str, Told] = {}
        self._groups: list[Group] = []
        self._resends_left = 0
        # Suspects whose refused content would be acknowledged unseen: what was acknowledged before goes first.
        self._to_revert: set[str] = set()

    @property
    def dirty(self) -> bool:
        """Whether there may be something to write."""
        return (
            self._told_view is not self.view
            or self._owed
            or bool(self._asked or self._again or self._mend or self._behind or self._groups)
        )

    # What the variants say differently.

    @abstractmethod
    def removed_by(self, losses: Iterable[Change]) -> tuple[str, ...]:
        """Which of these names the response says were removed."""

    @abstractmethod
    def version_after(self, changes: Iterable[Change], view: ClientView) -> str:
        """The version of the state once the client was told these changes."""

    @abstractmethod
    def says_gone(self, name: str, before: Told) -> bool:
        """Whether a name of which there is nothing to show, not even an error, and `before` was told, is mentioned."""

    # Requests.

    def subscribe(self, subscription: Subscription, asked: frozenset[str]) -> None:
        """See the base. A name that is new was told nothing of yet; one that left is forgotten."""
        current = self.subscription
        if subscription.wildcard and not current.wildcard:
            # Whatever else the view shows was never told: stand on nothing again, apart from the names asked for so
            # far.
            self._behind = {name: self._told(name) for name in current.names | self._members_told(current.globs)}
            self._told_view = ABSENT
            self._owed = True
        if not current.wildcard:
            added = (subscription.names - current.names) | self._members_told(subscription.globs - current.globs)
            self._behind.update({name: self._told(name) for name in added})
            # What is on its way to the client arrives after it subscribed again, and counts for it.
            on_the_way = {name for entry in self.ledger.outstanding for name in entry.contents}
            self._behind.update(
                (n, UNKNOWN_COPY) for n in on_the_way if subscription.covers(n) and not current.covers(n)
            )
        self.subscription = subscription
        self._owed = self._owed and subscription.wildcard
        self._asked |= asked
        if not current.names <= subscription.names or (current.wildcard and not subscription.wildcard):
            self._forget_uncovered()

    def holds(self, versions: Mapping[str, str]) -> None:
        """What a client says, on a new stream, it still has of what it is subscribed to (E5)."""
        view, alone = self.view, self.subscription.wildcard and not self.subscription.names
        if alone and not isinstance(view, Absent) and versions == view.versions:
            # A reconnect with everything current joins the shared view (performance.md law 3).
            self._told_view = view
            return
        covered = {name: reported(version) for name, version in versions.items() if self.subscription.covers(name)}
        self._behind.update(covered)

    def was_told(self, name: str) -> bool:
        """Whether the client holds something of this name by our knowledge."""
        return isinstance(self._told(name), Content)

    def forget_all(self) -> None:
        """The client asks for everything once more, whatever it was told (C6)."""
        self._told_view, self._behind, self._owed = ABSENT, {}, True

    def send_again(self, names: frozenset[str]) -> None:
        """See the base."""
        self._again |= {name for name in names if self.subscription.covers(name)}

    def _members_told(self, globs: Iterable[Glob]) -> set[str]:
        """Members of these collections in the view that the client stands on."""
        return set() if isinstance(self._told_view, Absent) else self._told_view.members_of(globs)

    def _forget_uncovered(self) -> None:
        covers = self.subscription.covers
        self._behind = {name: told for name, told in self._behind.items() if covers(name)}
        self._refused = {name: refused for name, refused in self._refused.items() if covers(name)}
        self._unsure = {name: told for name, told in self._unsure.items() if covers(name)}
        self._asked = {name for name in self._asked if covers(name)}
        self._again = {name for name in self._again if covers(name)}
        self._mend = {name for name in self._mend if covers(name)}

    # Responses.

    def make(self, now: float, *, gently: bool) -> Entry | Later:  # noqa: ARG002  a part never takes away by adding
        """Answers, and what is new or different; what goes away waits for `take_away`."""
        view = self.view
        if isinstance(view, Absent) or not self.dirty:
            return NOTHING
        if self.subscription.globs:
            self._ask_for_members(view)
        if self._may_take_the_step(view):
            return self._take_the_step(view, view.step_from(self._told_view), now)
        answer = self._owed or self._more or bool(self._asked or self._again)
        changes = self._changes(view)
        chosen = [change for change in changes if change.forced or isinstance(change.now, Content)]
        if not chosen and not self._owed:
            self._advance(view, changes)
            return self._resend_group(view, now)
        due_s = self.ledger.answer_due_s() if answer else self.ledger.push_due_s()
        if due_s > now:
            return Later(due_s)
        return self._respond(view, changes, chosen, push=not answer)

    def take_away(self, now: float) -> Entry | Later:
        """What the client was told and does not get any more."""
        view = self.view
        if isinstance(view, Absent) or not self.dirty:
            return NOTHING
        changes = self._changes(view)
        chosen = [change for change in changes if not isinstance(change.now, Content)]
        if not chosen:
            return NOTHING
        due_s = self.ledger.push_due_s()
        if due_s > now:
            return Later(due_s)
        return self._respond(view, changes, chosen, push=True)

    def _ask_for_members(self, view: ClientView) -> None:
        """Who asks for a collection asks for its members; what a client just said it holds is only compared (C6)."""
        for glob in self.subscription.globs:
            for names in (self._asked, self._again):
                members = view.members_of((glob,)) if glob.name in names else set()
                if members:
                    names.discard(glob.name)
                    names.update(n for n in members if n not in self._behind or not self._is_current(view, n))

    def _is_current(self, view: ClientView, name: str) -> bool:
        return same(self._told(name), view.shown(name, self.subscription, self.settings.public_url))

    def _may_take_the_step(self, view: ClientView) -> bool:
        """Whether this stream is told exactly what every other wildcard stream on the same view is told."""
        return (
            self.subscription.wildcard
            and not self.subscription.names
            and not (self._behind or self._asked or self._again or self._mend or self._refused or self._more)
            and view.step_from(self._told_view).size <= MAX_RESPONSE_BYTES
        )

    def _take_the_step(self, view: ClientView, step: Step, now: float) -> Entry | Later:
        """The shared way for wildcard streams at rest: costs the same however large the step is."""
        earlier = self._told_view
        if step.gains or self._owed:
            due_s = self.ledger.answer_due_s() if self._owed else self.ledger.push_due_s()
            if due_s > now:
                return Later(due_s)
        if not isinstance(earlier, Absent):
            self._behind = {name: earlier.named[name].content for name in step.losses}
        self._told_view = view
        if not step.gains and not self._owed:
            return NOTHING
        push, self._owed = not self._owed, False
        return Entry(
            version=self.version_after((), view),
            resources=step.gains,
            changed=step.gains,
            push=push,
            before={} if isinstance(earlier, Absent) else self._acknowledged_copies(gains_of(step, earlier)),
        )

    def _respond(self, view: ClientView, changes: list[Change], chosen: list[Change], *, push: bool) -> Entry:
        sent_now = fitting(chosen)
        gains = [change for change in sent_now if isinstance(change.now, Content)]
        losses = [change for change in sent_now if not isinstance(change.now, Content)]
        sent = {change.name for change in sent_now}
        entry = self._entry(view, gains, losses, push=push)
        self._asked -= sent
        self._again -= sent
        self._mend -= sent
        self._owed = False
        self._more = len(sent_now) < len(chosen)
        self._advance(view, [change for change in changes if change.name not in sent])
        self._stand_in(view, gains)
        return entry

    def _entry(self, view: ClientView, gains: list[Change], losses: list[Change], *, push: bool) -> Entry:
        resources = members_of(view, gains)
        return Entry(
            version=self.version_after([*gains, *losses], view),
            resources=resources,
            changed=tuple(
                member for member, gain in zip(resources, gains, strict=True) if not same(gain.before, gain.now)
            ),
            errors=tuple(change.now for change in losses if isinstance(change.now, ResourceError)),
            removed=self.removed_by(losses),
            push=push,
            before=self._acknowledged_copies(gains),
        )

    def _stand_in(self, view: ClientView, gains: list[Change]) -> None:
        """Keep in mind which of this content is not the view's own; what the client gets anew is no longer refused."""
        for gain in gains:
            if same(gain.now, view.named[gain.name].content):
                self._refused.pop(gain.name, None)
            else:
                self._behind[gain.name] = gain.now

    def _advance(self, view: ClientView, untold: Iterable[Change]) -> None:
        """The client was told everything of `view` but these, and but what it refused."""
        stand_ins = {name: self._behind[name] for name in self._refused if name in self._behind}
        self._behind = stand_ins | {
            change.name: change.before for change in untold if not same(change.before, change.now)
        }
        self._told_view = view

    # What there is to tell.

    def _changes(self, view: ClientView) -> list[Change]:
        """Every name about which the client has to be told something, by name."""
        changes = []
        for name in sorted(self._candidates(view)):
            forced = name in self._asked or name in self._again or name in self._mend
            before = self._told(name)
            now = view.shown(name, self.subscription, self.settings.public_url)
            if isinstance(now, Absent) and not self.says_gone(name, before):
                self._void(name, before)
                continue
            if isinstance(now, Absent) and isinstance(before, ResourceError):
                before = ABSENT
            if name in self._refused:
                now = self._unless_refused(view, name, before, now)
                forced = forced and (name in self._asked or now is not before)
            if forced or not same(before, now):
                changes.append(Change(name, before, now, forced))
        return changes

    def _void(self, name: str, before: Told) -> None:
        """What was told of a name is over, without a word: of an old error, and of what cannot be said (D1)."""
        for names in (self._asked, self._again, self._mend):
            names.discard(name)
        self._refused.pop(name, None)
        if not isinstance(before, Absent):
            self._behind[name] = ABSENT

    def _unless_refused(self, view: ClientView, name: str, before: Told, now: Told) -> Told:
        """What is told of a name of which the client refused some content.

        Refused content is not sent again (B7, N3): the last proven content stands in when the client needs something.
        Only who asks for the name itself gets it once more where nothing was proven, for every name asked for is
        answered (C1, C6, T1).
        """
        refused = self._refused[name]
        if not isinstance(now, Content) or now.version not in refused:
            del self._refused[name]
            return now
        if name not in self._asked and name not in self._again and name not in self._mend:
            return before
        proven = view.proven(name)
        if isinstance(proven, Content) and proven.version not in refused:
            return proven
        if name in self._asked:
            return now
        self._again.discard(name)
        self._mend.discard(name)
        return before

    def _candidates(self, view: ClientView) -> set[str]:
        names = set(self._behind) | self._asked | self._again | self._mend
        explicit, told_view = self.subscription.names, self._told_view
        if told_view is view:
            return names
        if self.subscription.wildcard:
            names |= view.step_from(told_view).names
        globs = self.subscription.globs
        if isinstance(told_view, Absent):
            return names | explicit | view.members_of(globs)
        step = view.step_from(told_view)
        if step.all_names:
            return names | explicit | view.members_of(globs) | told_view.members_of(globs)
        members = {name for name in step.names if self.subscription.in_collection(name)} if globs else set()
        # The first and the last member decide what is told of a collection itself.
        return names | (step.names & explicit) | members | {glob.name for glob in globs if members}

    def _told(self, name: str) -> Told:
        """What the client was told of this name last."""
        if name in self._behind:
            return self._behind[name]
        if isinstance(self._told_view, Absent) or not self.subscription.covers(name):
            return ABSENT
        return self._told_view.shown(name, self.subscription, self.settings.public_url)

    # Answers to responses.

    def _acknowledged_copies(self, gains: Iterable[Change]) -> dict[str, Content]:
        """Of the names about to be sent: the content this client acknowledged last, where it did."""
        copies = {}
        for gain in gains:
            copy = gain.before
            if gain.name in self._unsure:
                copy = self._unsure[gain.name]
            elif not self.ledger.idle and (entry := self.ledger.newest_with(gain.name)) is not None:
                copy = entry.before.get(gain.name, ABSENT)
            if isinstance(copy, Content) and copy is not UNKNOWN_COPY:
                copies[gain.name] = copy
        return copies

    def _acknowledged(self, entry: Entry) -> None:
        if self._unsure:
            self._unsure = {name: told for name, told in self._unsure.items() if name not in entry.contents}
        for name in entry.contents.keys() & self._behind.keys():
            if self._behind[name] is UNKNOWN_COPY:
                self._unsure[name] = entry.contents[name]
        for later in self.ledger.outstanding:
            if later.sent_after(entry):
                # Of a resource that the client asks for no longer, its ACK says nothing.
                both = (
                    name for name in entry.contents.keys() & later.contents.keys() if self.subscription.covers(name)
                )
                later.before.update((name, entry.contents[name]) for name in both)

    def _new_to_client(self, entry: Entry) -> tuple[NamedContent, ...]:
        return tuple(m for m in entry.resources if not same(entry.before.get(m.name, ABSENT), m.content))

    def _rejected(self, entry: Entry, nack: Nack) -> tuple[NamedContent, ...]:
        changed = self._new_to_client(entry)
        suspects = blamed(self.kind, entry, changed, nack)
        for member in changed:
            # What is on its way once more is judged by the answer to that.
            if self._stands_on(member) and self.ledger.newest_with(member.name) is None:
                self._refused[member.name] = self._refused.get(member.name, frozenset()) | {member.content.version}
                self._unsure[member.name] = entry.before.get(member.name, ABSENT)
        if entry.resources:
            # B12: whether removals and errors were taken in is not known; they are said again, by themselves. Where
            # there was nothing else to reject, they are what was rejected, and saying them again would not help (F8).
            gone = [name for name in entry.removed if self.subscription.covers(name)]
            self._behind.update((name, UNKNOWN_COPY) for name in gone if not isinstance(self._told(name), Content))
            self._mend |= {error.name for error in entry.errors if same(self._told(error.name), error)}
        if not entry.isolating:
            self._resends_left = MAX_RESENDS
        groups = groups_to_resend(changed, suspects)
        self._groups = groups + self._groups
        if self.kind.remembers_refused:
            self._to_revert |= {name for group in groups for name in group if name in entry.before}
        apart = {name for group in groups for name in group}
        # F17: who has no copy of its own is given the last proven content, if there is any; who has one goes on with
        # it.
        self._mend |= {
            m.name for m in suspects if m.name not in entry.before and m.name not in apart and m.name in self._refused
        }
        return suspects

    def _stands_on(self, member: NamedContent) -> bool:
        """Whether this is what the client was told last of a name it still asks for."""
        return self.subscription.covers(member.name) and same(self._told(member.name), member.content)

    def _resend_group(self, view: ClientView, now: float) -> Entry | Later:
        """The next group of suspects, alone in a response (resolutions C8), without those that changed meanwhile."""
        while self._groups and self._resends_left:
            names = tuple(name for name in self._groups[0] if self._is_still_refused(view, name))
            due_s = self.ledger.push_due_s()
            if names and due_s > now:
                return Later(due_s)
            if gains := self._reverted(view, names):
                return self._resend(view, gains)
            del self._groups[0]
            if names:
                gains = [Change(name, self._told(name), view.named[name].content, forced=True) for name in names]
                return self._resend(view, gains)
        self._groups.clear()
        return NOTHING

    def _resend(self, view: ClientView, gains: list[Change]) -> Entry:
        self._resends_left -= 1
        entry = self._entry(view, gains, [], push=True)
        entry.isolating = True
        sent = {gain.name for gain in gains}
        self._behind = {name: told for name, told in self._behind.items() if name not in sent}
        self._stand_in(view, gains)
        return entry

    def _reverted(self, view: ClientView, names: tuple[str, ...]) -> list[Change]:
        """What the client acknowledged of the suspects before, so that it looks at them anew when they come again."""
        if self._to_revert.isdisjoint(names):
            return []
        due, self._to_revert = sorted(self._to_revert), set()
        return [
            Change(name, self._told(name), copy, forced=True)
            for name in due
            if self._is_still_refused(view, name) and isinstance(copy := self._unsure.get(name), Content)
        ]

    def _is_still_refused(self, view: ClientView, name: str) -> bool:
        member = view.named.get(name)
        return member is not None and member.content.version in self._refused.get(name, ())
