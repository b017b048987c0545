"""What a client is told, name by name: all of delta, and SotW of every type that may be sent in parts (D1).

`known_names` has what the client said, `name_state` the table of what happens to a name; here is which names a look
finds something to tell of, and what of it goes into the next response.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping

from adsserver.engine.agenda import Agenda
from adsserver.engine.change import Change, Room, errors_of, members_of
from adsserver.engine.client_view import ClientView, Step
from adsserver.engine.known_names import KnownNames, Owed
from adsserver.engine.ledger import Entry
from adsserver.engine.looking import Viewer, look
from adsserver.engine.name_state import DOUBTFUL, Due, Event, after
from adsserver.engine.refusals import copy_of, is_refused
from adsserver.engine.substream import NOTHING, Later
from adsserver.engine.told import ABSENT, UNKNOWN_COPY, Absent, Told, same
from xdscore.errors import ResourceError, StatusCode
from xdscore.snapshot import Content


class ByName(KnownNames):
    """One type whose responses hold any part of the state.

    The variants differ in what a loss and a version look like on the wire.
    """

    __slots__ = ()

    # What the variants say differently.

    @abstractmethod
    def removed_by(self, losses: Iterable[Change]) -> tuple[str, ...]:
        """The names that the response lists as removed, of those that are lost."""

    @abstractmethod
    def unresolved_by(self, losses: Iterable[Change]) -> tuple[str, ...]:
        """The names that the response lists as aliases of nothing, of those that are lost."""

    @abstractmethod
    def version_after(self, changes: Iterable[Change], view: ClientView) -> str:
        """The version of the state once the client was told these changes."""

    @abstractmethod
    def says_gone(self, name: str, has_copy: bool) -> bool:
        """Whether a response mentions a name of which there is nothing to show any more, not even an error.

        `has_copy`: the client has content of it by our knowledge.
        """

    # Responses.

    def make(self, now: float, *, gently: bool) -> Entry | Later:  # noqa: ARG002  a part never takes away by adding
        """Answers, and what is new or different; what goes away waits for `take_away`, unless what comes may need its
        place (I6).
        """
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
        """The next response that says what the client does not get any more; asked for when nothing is left to add."""
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
        losses = agenda.take_losses()
        return self._respond(view, losses, more=bool(agenda.losses), push=True)

    def _ask_for_members(self, view: ClientView) -> None:
        """Who asks for a collection asks for its members; what a client just said it holds is only compared (C6)."""
        for glob in self.subscription.globs:
            state = self._memory[glob.name]
            event = _ASKED_OF_MEMBERS.get(state.due)
            members = view.members_of((glob,)) if event is not None else None
            if event is not None and members:
                self._agenda = None
                # Its members may be what the client says it holds: then nothing is sent, and it is answered so.
                self.unheard = True
                self._memory.happens(glob.name, Event.DELEGATED)
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
        if self.kind.exclusive and step.gains and step.losses:
            return None
        if isinstance(memory.view, Absent):
            shared = memory.fresh
        else:
            concerned = bool(subscription.names) and (step.all_names or not step.names.isdisjoint(subscription.names))
            shared = not concerned and not (memory and (memory.moving or memory.refusals))
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
        at_rest = self.ledger.idle and not (self._memory and self._memory.in_doubt)
        entry = Entry(
            version=self.version_after((), view),
            resources=step.gains,
            changed=step.gains,
            push=not owed,
            # Every stream at rest has acknowledged what it was told.
            before=dict(step.held) if at_rest else self._acknowledged_copies(step.held),
        )
        if self._memory and self._memory.answers_due:
            self._answer_with(entry, view, step)
        return entry

    def _answer_with(self, entry: Entry, view: ClientView, step: Step) -> None:
        """Say with a first step why names that were asked for besides are not in it, as far as there is room."""
        losses = self._look(view, Room(self.settings.limits, used_bytes=step.size)).take()
        entry.errors = errors_of(losses)
        entry.removed, entry.unresolved = self.removed_by(losses), self.unresolved_by(losses)
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
        named, memory = view.named, self._memory
        for change in sent:
            name, now, before = change.name, change.now, memory[change.name]
            if not isinstance(now, Content):
                state = after(before, Event.SENT, copy=self._copy_left(change))
            elif (member := named.get(name)) is not None and same(now, member.content):
                state = after(before, Event.SENT)
            else:
                state = after(before, Event.STOOD_IN, told=now)
                self.expires = self.expires or (self.renewals is not None and now.ttl_ms > 0)
            memory.put(name, before, state)

    def _copy_left(self, change: Change) -> Content | None:
        """The copy that a client goes on with, although it is told this of a name; None where there is none.

        What passes by itself takes nothing away (F14), and what is withheld nothing from a client that has a copy:
        after INTERNAL it goes on with that (TP3, F18a).
        """
        code = change.now.code if isinstance(change.now, ResourceError) else None
        if code is StatusCode.UNAVAILABLE or code is StatusCode.INTERNAL:
            return copy_of(self._memory[change.name], change.before)
        return None

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
            unresolved=self.unresolved_by(losses),
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
        viewer = self._viewer()
        for name in agenda.next_names():
            change = self._look_at(view, viewer, name)
            if change is not None:
                agenda.note(change)
        return agenda

    def _arrive(self, view: ClientView) -> set[str]:
        """Stand on `view`; the names of which something else may be to be told than the client was told."""
        return self._memory.arrive(view, self.subscription)

    def _viewer(self) -> Viewer:
        return Viewer(self.subscription, self.settings.public_url, self.says_gone)

    def _look_at(self, view: ClientView, viewer: Viewer, name: str) -> Change | None:
        """What the client has to be told about a name; None when it was told this, or goes on with something else."""
        memory = self._memory
        state = memory[name]
        before = memory.told(name, viewer.subscription) if state.told is None else state.told
        seen = look(view, viewer, name, state, before)
        if seen.state is not state:
            memory.put(name, state, seen.state)
        if seen.over:
            self.count_over(name, before)
        return seen.change

    def count_over(self, name: str, before: Told) -> None:
        """What was told of a name, `before`, is over without a word: an old error, and what cannot be said (D1)."""

    def _is_healed_by(self, entry: Entry, gain: Change) -> bool:
        """Whether the client is sent again what it had acknowledged of a name before it refused something newer."""
        return bool(self._memory[gain.name].refused) and same(entry.before.get(gain.name, ABSENT), gain.now)

    def _acknowledged_copies(self, told: Mapping[str, Told]) -> dict[str, Content]:
        """Of the names about to be sent, told this before: the content this client acknowledged last, where it did."""
        copies = {}
        for name, copy in told.items():
            state = self._memory[name]
            if state.acceptance in DOUBTFUL:
                copy = state.acknowledged  # type: ignore[assignment] # noqa: PLW2901  what is known better
            elif not self.ledger.idle and (entry := self.ledger.newest_with(name)) is not None:
                copy = entry.before.get(name, ABSENT)  # noqa: PLW2901
            elif isinstance(copy, ResourceError) and state.copy is not None:
                copy = state.copy  # noqa: PLW2901
            if isinstance(copy, Content) and copy is not UNKNOWN_COPY:
                copies[name] = copy
        return copies

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
