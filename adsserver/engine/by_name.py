"""What a client was told, name by name: all of delta, and SotW of every type that may be sent in parts (D1).

`memory` has the state of each name, `name_state` the table of what happens to it; here is when: what a request asks
for, which names a look finds something to tell of, what of it goes into the next response, and what an answer means.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

from adsserver.engine.agenda import Agenda
from adsserver.engine.change import Change, Room, errors_of, fitting, members_of
from adsserver.engine.client_view import ClientView, Step
from adsserver.engine.events import Nack, NamedContent
from adsserver.engine.ledger import Entry
from adsserver.engine.looking import Viewer, look
from adsserver.engine.memory import Memory
from adsserver.engine.name_state import DOUBTFUL, Due, Event, after
from adsserver.engine.refusals import Suspects, is_refused
from adsserver.engine.rejection import blamed
from adsserver.engine.settings import EngineSettings
from adsserver.engine.subscription import Subscription, memory_of
from adsserver.engine.substream import NOTHING, Later, SubStream
from adsserver.engine.told import ABSENT, UNKNOWN_COPY, Absent, Told, same
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content


class Owed(Enum):
    """Which answer the client waits for that is about no name in particular."""

    NOTHING = "none"
    REST = "the answer that was begun goes on in another response"
    EVERYTHING = "it asked for everything, and is answered even if that is nothing (D3, E6)"


class ByName(SubStream):
    """One type whose responses hold any part of the state.

    The variants differ in what a loss and a version look like on the wire.
    """

    __slots__ = ("_agenda", "_memory", "_owed", "_reported_bytes", "_suspects")

    def __init__(self, kind: ResourceType, settings: EngineSettings, *, heals: bool) -> None:
        super().__init__(kind, settings, heals=heals)
        self._memory = Memory(settings.public_url)
        self._suspects = Suspects(settings.limits.isolation_resends, reverts=kind.remembers_refused)
        # None: what there is to look at may be something else than before.
        self._agenda: Agenda | None = None
        self._owed = Owed.NOTHING
        # Of the names that the client said it holds, until it was told of all of them.
        self._reported_bytes = 0

    @property
    def name_bytes(self) -> int:
        """The memory of the names that the client made this stream remember, in bytes."""
        return super().name_bytes + (self._reported_bytes if self._memory.moving else 0)

    @property
    def dirty(self) -> bool:
        """Whether there may be something to write."""
        return (
            self._memory.view is not self.view
            or self._owed is Owed.EVERYTHING
            or self._memory.moving
            or bool(self._suspects.resends)
        )

    # What the variants say differently.

    @abstractmethod
    def removed_by(self, losses: Iterable[Change]) -> tuple[str, ...]:
        """Which of these names the response says were removed."""

    @abstractmethod
    def version_after(self, changes: Iterable[Change], view: ClientView) -> str:
        """The version of the state once the client was told these changes."""

    @abstractmethod
    def says_gone(self, name: str, has_copy: bool) -> bool:
        """Whether a response mentions a name of which there is nothing to show any more, not even an error.

        `has_copy`: the client has content of it by our knowledge.
        """

    def copy_left(self, change: Change) -> Content | None:  # noqa: ARG002  SotW removes nothing, and sends no copy
        """The copy that a client goes on with, although it is told this of a name; None where there is none."""
        return None

    # Requests.

    def subscribe(self, subscription: Subscription, asked: frozenset[str]) -> None:
        """The client is subscribed to this from now on, and waits for an answer about the names in `asked`.

        A name that is new was told nothing of yet; one that left is forgotten.
        """
        current, memory = self.subscription, self._memory
        self._agenda = None
        if subscription.wildcard and not current.wildcard:
            # Whatever else the view shows was never told: stand on nothing again, apart from the names asked for so
            # far.
            known = current.names | memory.members_of(current.globs)
            memory.pin(known, current)
            memory.stand_on_nothing(but_for=known)
            self._owed = Owed.EVERYTHING
        if not current.wildcard:
            members = memory.members_of(subscription.globs - current.globs)
            memory.pin((subscription.names - current.names) | members, current)
            # C1, C6: what the client knows of a member by its own name is an answer about the collection, too.
            asked |= {name for name in members if memory[name].told is not ABSENT}
            # What is on its way to the client arrives after it subscribed again, and counts for it.
            on_the_way = {name for entry in self.ledger.outstanding for name in entry.contents}
            new = {name for name in on_the_way if subscription.covers(name) and not current.covers(name)}
            memory.each(new, Event.LOST_TRACK)
        self.subscription = subscription
        if not subscription.wildcard and self._owed is Owed.EVERYTHING:
            self._owed = Owed.NOTHING
        memory.each(asked, Event.ASKED)
        if not current.names <= subscription.names or (current.wildcard and not subscription.wildcard):
            memory.forget_unless(subscription.covers)

    def holds(self, versions: Mapping[str, str]) -> None:
        """What a client says, on a new stream, it still has of what it is subscribed to (E5)."""
        if not versions:
            # A new client: told everything by the step that all of them share.
            return
        self._agenda = None
        memory, subscription = self._memory, self.subscription
        if subscription.wildcard and not subscription.globs and not isinstance(self.view, Absent):
            memory.join(self.view, subscription.names, versions)
        else:
            memory.report({name: version for name, version in versions.items() if subscription.covers(name)})
        self._reported_bytes = memory_of(memory.moving_names())

    def was_told(self, name: str) -> bool:
        """Whether the client holds something of this name by our knowledge."""
        return isinstance(self._told(name), Content)

    def forget_all(self) -> None:
        """The client asks for everything once more, whatever it was told (C6)."""
        self._agenda = None
        self._memory.stand_on_nothing()
        self._owed = Owed.EVERYTHING

    def send_again(self, names: frozenset[str]) -> None:
        """Send these names once more although the client was told them (I3, B7); not what it refused."""
        if again := {name for name in names if self.subscription.covers(name)}:
            self._agenda = None
            self._memory.each(again, Event.REPEATED)

    def _told(self, name: str) -> Told:
        return self._memory.told(name, self.subscription)

    # Responses.

    def make(self, now: float, *, gently: bool) -> Entry | Later:  # noqa: ARG002  a part never takes away by adding
        """Answers, and what is new or different; what goes away waits for `take_away`."""
        view = self.view
        if isinstance(view, Absent) or not self.dirty:
            return NOTHING
        if self.subscription.globs:
            self._ask_for_members(view)
        step = self._shared_step(view)
        if step is not None:
            return self._take_the_step(view, step, now)
        answer = self._owed is not Owed.NOTHING or self._memory.answers_due
        agenda = self._look(view)
        if not agenda.complete:
            # The rest as soon as everybody else had a turn.
            return Later(now)
        if not agenda.chosen and self._owed is not Owed.EVERYTHING:
            return self._resend_group(view, now)
        due_s = self.ledger.answer_due_s() if answer else self.ledger.push_due_s()
        if due_s > now:
            return Later(due_s)
        chosen = agenda.take()
        return self._respond(view, chosen, more=bool(agenda.chosen), push=not answer)

    def take_away(self, now: float) -> Entry | Later:
        """What the client was told and does not get any more."""
        view = self.view
        if isinstance(view, Absent) or not self.dirty or self._memory.view is not view:
            # What `make` waits with is not begun here.
            return NOTHING
        agenda = self._look(view)
        if not agenda.complete:
            return Later(now)
        if agenda.chosen or not agenda.losses:
            return NOTHING
        due_s = self.ledger.push_due_s()
        if due_s > now:
            return Later(due_s)
        losses = fitting(agenda.losses, self.settings.limits)
        del agenda.losses[: len(losses)]
        return self._respond(view, losses, more=bool(agenda.losses), push=True)

    def _ask_for_members(self, view: ClientView) -> None:
        """Who asks for a collection asks for its members; what a client just said it holds is only compared (C6)."""
        for glob in self.subscription.globs:
            state = self._memory[glob.name]
            event = _ASKED_OF_MEMBERS.get(state.due)
            members = view.members_of((glob,)) if event is not None else None
            if event is not None and members:
                self._agenda = None
                self._memory[glob.name] = after(state, Event.DELEGATED)
                apart = {name for name in members if self._memory[name].told is not None}
                self._memory.each(members - {name for name in apart if self._is_current(view, name)}, event)

    def _is_current(self, view: ClientView, name: str) -> bool:
        return same(self._told(name), view.shown(name, self.subscription, self.settings.public_url))

    def _shared_step(self, view: ClientView) -> Step | None:
        """The step to `view`, if this stream is told exactly what every other wildcard stream in its place is told.

        Names asked for besides the wildcard are answered with the first step, and later ones that do not concern them
        are taken as if there were none.
        """
        subscription, memory = self.subscription, self._memory
        if not subscription.wildcard or subscription.globs or self._owed is Owed.REST:
            return None
        step = view.step_from(memory.view)
        if step.size > self.settings.limits.delta_response_bytes:
            return None
        if isinstance(memory.view, Absent):
            shared = memory.fresh
        else:
            concerned = bool(subscription.names) and (step.all_names or not step.names.isdisjoint(subscription.names))
            shared = not memory.moving and not concerned and not any(memory.refusals)
        return step if shared else None

    def _take_the_step(self, view: ClientView, step: Step, now: float) -> Entry | Later:
        """The shared way for wildcard streams at rest: costs the same however large the step is."""
        owed = self._owed is Owed.EVERYTHING
        if step.gains or owed:
            due_s = self.ledger.answer_due_s() if owed else self.ledger.push_due_s()
            if due_s > now:
                return Later(due_s)
        self._agenda = None
        self._memory.take(view, step)
        if not step.gains and not owed:
            return NOTHING
        self._owed = Owed.NOTHING
        at_rest = self.ledger.idle and not self._memory.in_doubt
        entry = Entry(
            version=self.version_after((), view),
            resources=step.gains,
            changed=step.gains,
            push=not owed,
            # Every stream at rest has acknowledged what it was told.
            before=dict(step.held) if at_rest else self._acknowledged_copies(step.held),
        )
        if self._memory.answers_due:
            self._answer_with(entry, view, step)
        return entry

    def _answer_with(self, entry: Entry, view: ClientView, step: Step) -> None:
        """Say with a first step why names that were asked for besides are not in it, as far as there is room."""
        losses = self._look(view, Room(self.settings.limits, used_bytes=step.size)).take()
        entry.errors = errors_of(losses)
        entry.removed = self.removed_by(losses)
        self._told_now(view, losses)

    def _respond(self, view: ClientView, sent: list[Change], *, more: bool, push: bool) -> Entry:
        gains = [change for change in sent if isinstance(change.now, Content)]
        losses = [change for change in sent if not isinstance(change.now, Content)]
        entry = self._entry(view, gains, losses, push=push)
        entry.heal = bool(gains) and not losses and all(self._is_healed_by(entry, gain) for gain in gains)
        self._owed = Owed.REST if more else Owed.NOTHING
        self._told_now(view, sent)
        return entry

    def _told_now(self, view: ClientView, sent: Iterable[Change]) -> None:
        """The client is told of these names what the view shows, or what stands in for it."""
        memory = self._memory
        for change in sent:
            state, member = memory[change.name], view.named.get(change.name)
            if isinstance(change.now, Content) and (member is None or not same(change.now, member.content)):
                memory[change.name] = after(state, Event.STOOD_IN, told=change.now)
            else:
                memory[change.name] = after(state, Event.SENT, copy=self.copy_left(change))

    def _entry(self, view: ClientView, gains: list[Change], losses: list[Change], *, push: bool) -> Entry:
        resources = members_of(view, gains)
        return Entry(
            version=self.version_after([*gains, *losses], view),
            resources=resources,
            changed=tuple(
                member for member, gain in zip(resources, gains, strict=True) if not same(gain.before, gain.now)
            ),
            errors=errors_of(losses),
            removed=self.removed_by(losses),
            push=push,
            before=self._acknowledged_copies({gain.name: gain.before for gain in gains}),
        )

    # What there is to tell.

    def _look(self, view: ClientView, room: Room | None = None) -> Agenda:
        """Look at the names that are still to be looked at, by name, until a response is full; but at no more of them
        than keep the loop for some ms.

        What was found before counts, as long as nothing else happened. From then on the client stands on `view`, but
        for the names that are still to be told.
        """
        agenda = self._agenda
        if agenda is None or agenda.view is not view:
            names = self._arrive(view)
            agenda = self._agenda = Agenda(view, names, self.settings.limits, room)
        for name in agenda.next_names():
            change = self._look_at(view, name)
            if change is not None:
                agenda.note(change)
        return agenda

    def _arrive(self, view: ClientView) -> set[str]:
        """Stand on `view`; the names of which something else may be to be told than the client was told."""
        return self._memory.arrive(view, self.subscription)

    def _look_at(self, view: ClientView, name: str) -> Change | None:
        """What the client has to be told about a name; None when it was told this, or goes on with something else."""
        state, before = self._memory[name], self._told(name)
        viewer = Viewer(self.subscription, self.settings.public_url, self.says_gone)
        seen = look(view, viewer, name, state, before)
        if seen.state is not state:
            self._memory[name] = seen.state
        if seen.over:
            self.count_over(name, before)
        return seen.change

    def count_over(self, name: str, before: Told) -> None:
        """What was told of a name, `before`, is over without a word: an old error, and what cannot be said (D1)."""

    def _is_healed_by(self, entry: Entry, gain: Change) -> bool:
        """Whether the client is sent again what it had acknowledged of a name before it refused something newer."""
        return bool(self._memory[gain.name].refused) and same(entry.before.get(gain.name, ABSENT), gain.now)

    # Answers to responses.

    def needed(self) -> Iterator[Content]:
        """Content that the client acknowledged and may be sent again, whether or not a snapshot still has it."""
        view, told_view = self.view, self._memory.view
        for entry in self.ledger.outstanding:
            yield from (copy for copy in entry.before.values() if copy.blob)
        yield from self._memory.copies()
        if isinstance(view, ClientView) and isinstance(told_view, ClientView) and view is not told_view:
            yield from view.step_from(told_view).held.values()

    def _acknowledged_copies(self, told: Mapping[str, Told]) -> dict[str, Content]:
        """Of the names about to be sent, told this before: the content this client acknowledged last, where it did."""
        copies = {}
        for name, copy in told.items():
            state = self._memory[name]
            if state.acceptance in DOUBTFUL:
                copy = state.acknowledged  # type: ignore[assignment] # noqa: PLW2901  what is known better
            elif not self.ledger.idle and (entry := self.ledger.newest_with(name)) is not None:
                copy = entry.before.get(name, ABSENT)  # noqa: PLW2901
            if isinstance(copy, Content) and copy is not UNKNOWN_COPY:
                copies[name] = copy
        return copies

    def _acknowledged(self, entry: Entry) -> None:
        # Of a stream at rest nothing is to be looked up: most ACKs end here, however much they are about.
        if self._memory.acknowledge(entry.contents):
            self._agenda = None
        for later in self.ledger.outstanding:
            if later.sent_after(entry):
                # Of a resource that the client asks for no longer, its ACK says nothing.
                both = (
                    name for name in entry.contents.keys() & later.contents.keys() if self.subscription.covers(name)
                )
                later.before.update((name, entry.contents[name]) for name in both)

    def _new_to_client(self, entry: Entry) -> tuple[NamedContent, ...]:
        return tuple(m for m in entry.resources if not same(entry.before.get(m.name, ABSENT), m.content))

    def _rejected(self, entry: Entry, nack: Nack, changed: tuple[NamedContent, ...]) -> tuple[NamedContent, ...]:
        memory = self._memory
        self._agenda = None
        suspects = blamed(self.kind, entry, changed, nack)
        for member in changed:
            # What is on its way once more is judged by the answer to that.
            if self._stands_on(member) and self.ledger.newest_with(member.name) is None:
                before = entry.before.get(member.name, ABSENT)
                memory[member.name] = after(
                    memory[member.name], Event.NACKED, version=member.content.version, acknowledged=before
                )
        if entry.resources:
            # B12: whether removals and errors were taken in is not known; they are said again, by themselves. Where
            # there was nothing else to reject, they are what was rejected, and saying them again would not help (F8).
            said = {*entry.removed, *(e.name for e in entry.errors if isinstance(self._told(e.name), Absent))}
            gone = [name for name in said if self.subscription.covers(name)]
            memory.each([name for name in gone if not isinstance(self._told(name), Content)], Event.LOST_TRACK)
            memory.each([e.name for e in entry.errors if same(self._told(e.name), e)], Event.LEFT_OPEN)
        self._suspects.plan(entry, changed, suspects)
        memory.each(self._lacking(), Event.LEFT_OPEN)
        return suspects

    def _lacking(self) -> list[str]:
        """Names of which other content has to stand in for what the client was sent last and refused (F17, F17a).

        Who has a copy of its own goes on with it, unless its kind may have dropped it. Suspects that are still to be
        told apart come again by themselves.
        """
        awaited = self._suspects.resends.awaited
        return [
            name
            for name, state in self._memory.refusals
            if name not in awaited
            and isinstance(told := self._told(name), Content)
            and told.version in state.refused
            and (self.heals or not isinstance(state.acknowledged, Content))
        ]

    def _had(self, entry: Entry, name: str) -> Told:
        return entry.before.get(name, ABSENT)

    @property
    def _heals_next(self) -> bool:
        return self.heals and bool(self._lacking())

    def _stands_on(self, member: NamedContent) -> bool:
        """Whether this is what the client was told last of a name it still asks for."""
        return self.subscription.covers(member.name) and same(self._told(member.name), member.content)

    def _resend_group(self, view: ClientView, now: float) -> Entry | Later:
        """The next group of suspects, alone in a response (decisions C8), without those that changed meanwhile."""
        resends = self._suspects.resends
        while group := resends.next_group():
            names = tuple(name for name in group if is_refused(view, name, self._memory[name]))
            due_s = self.ledger.push_due_s()
            if names and due_s > now:
                return Later(due_s)
            if copies := self._suspects.reverted(view, self._memory, names):
                return self._resend(view, copies)
            resends.drop_group()
            if names:
                return self._resend(view, {name: view.named[name].content for name in names})
        return NOTHING

    def _resend(self, view: ClientView, contents: Mapping[str, Content]) -> Entry:
        self._agenda = None
        self._suspects.resends.count()
        gains = [Change(name, self._told(name), content, forced=True) for name, content in contents.items()]
        entry = self._entry(view, gains, [], push=True)
        entry.isolating = True
        self._told_now(view, gains)
        return entry


# Members are asked for as their collection is.
_ASKED_OF_MEMBERS = {Due.ASKED: Event.ASKED, Due.AGAIN: Event.REPEATED}
