"""What a client was told, name by name: all of delta, and SotW of every type that may be sent in parts (D1).

`standing` is what it was told so far, `refusals` what it refused of that; here is what follows from both: which names
have something to tell, what of it goes into the next response, and what an answer to a response means.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping

from adsserver.engine.agenda import Agenda
from adsserver.engine.change import Change, Room, errors_of, fitting, members_of
from adsserver.engine.client_view import ClientView, Step
from adsserver.engine.events import Nack, NamedContent
from adsserver.engine.ledger import Entry
from adsserver.engine.refusals import Refusals
from adsserver.engine.rejection import blamed
from adsserver.engine.settings import EngineSettings
from adsserver.engine.standing import Standing
from adsserver.engine.subscription import Subscription, memory_of
from adsserver.engine.substream import NOTHING, Later, SubStream
from adsserver.engine.told import ABSENT, UNKNOWN_COPY, Absent, Told, differing, reported, same
from adsserver.engine.waiting import Waiting
from xdscore.errors import ResourceError
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content


class ByName(SubStream):
    """One type whose responses hold any part of the state.

    The variants differ in what a loss and a version look like on the wire.
    """

    __slots__ = ("_agenda", "_more", "_owed", "_refusals", "_reported_bytes", "_standing", "_waiting")

    def __init__(self, kind: ResourceType, settings: EngineSettings, *, heals: bool) -> None:
        super().__init__(kind, settings, heals=heals)
        self._standing = Standing(settings.public_url)
        self._refusals = Refusals(settings.limits.isolation_resends, reverts=kind.remembers_refused)
        self._waiting = Waiting()
        # None: what there is to look at may be something else than before.
        self._agenda: Agenda | None = None
        # The wildcard waits for an answer, even an empty one; and an answer goes on in another response.
        self._owed = False
        self._more = False
        # Of the names that the client said it holds, until it was told of all of them.
        self._reported_bytes = 0

    @property
    def name_bytes(self) -> int:
        """See the base."""
        return super().name_bytes + (self._reported_bytes if self._standing.behind else 0)

    @property
    def dirty(self) -> bool:
        """Whether there may be something to write."""
        return (
            self._standing.view is not self.view
            or self._owed
            or bool(self._waiting or self._standing.behind or self._refusals.resends)
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
        current, standing = self.subscription, self._standing
        self._agenda = None
        if subscription.wildcard and not current.wildcard:
            # Whatever else the view shows was never told: stand on nothing again, apart from the names asked for so
            # far.
            known = current.names | standing.members_of(current.globs)
            standing.stand_on_nothing({name: self._told(name) for name in known})
            self._owed = True
        if not current.wildcard:
            members = standing.members_of(subscription.globs - current.globs)
            added = {name: self._told(name) for name in (subscription.names - current.names) | members}
            standing.behind.update(added)
            # C1, C6: what the client knows of a member by its own name is an answer about the collection, too.
            asked |= {name for name in members if not isinstance(added[name], Absent)}
            # What is on its way to the client arrives after it subscribed again, and counts for it.
            on_the_way = {name for entry in self.ledger.outstanding for name in entry.contents}
            standing.behind.update(
                (n, UNKNOWN_COPY) for n in on_the_way if subscription.covers(n) and not current.covers(n)
            )
        self.subscription = subscription
        self._owed = self._owed and subscription.wildcard
        self._waiting.asked |= asked
        if not current.names <= subscription.names or (current.wildcard and not subscription.wildcard):
            for each in (self._standing, self._refusals, self._waiting):
                each.forget_unless(subscription.covers)

    def holds(self, versions: Mapping[str, str]) -> None:
        """What a client says, on a new stream, it still has of what it is subscribed to (E5)."""
        if not versions:
            # A new client: told everything by the step that all of them share.
            return
        self._agenda = None
        view, whole = self.view, self.subscription.wildcard and not self.subscription.globs
        if whole and not isinstance(view, Absent):
            # A reconnect joins the shared view, but for what differs (performance.md law 3): with everything current
            # nothing is kept of it, and with tens of thousands of names the loop is not held up (reliability F25).
            self._standing.view = view
            self._standing.behind = {name: ABSENT for name in self.subscription.names if name not in view.named}
            if versions != view.versions:
                self._standing.behind |= differing(versions, view.versions)
        else:
            covered = {name: reported(version) for name, version in versions.items() if self.subscription.covers(name)}
            self._standing.behind.update(covered)
        self._reported_bytes = memory_of(self._standing.behind)

    def was_told(self, name: str) -> bool:
        """Whether the client holds something of this name by our knowledge."""
        return isinstance(self._told(name), Content)

    def forget_all(self) -> None:
        """The client asks for everything once more, whatever it was told (C6)."""
        self._agenda = None
        self._standing.stand_on_nothing({})
        self._owed = True

    def send_again(self, names: frozenset[str]) -> None:
        """See the base."""
        if again := {name for name in names if self.subscription.covers(name)}:
            self._agenda = None
            self._waiting.again |= again

    def _told(self, name: str) -> Told:
        return self._standing.told(name, self.subscription)

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
        answer = self._owed or self._more or bool(self._waiting.asked or self._waiting.again)
        agenda = self._look(view)
        if not agenda.complete:
            # The rest as soon as everybody else had a turn.
            return Later(now)
        if not agenda.chosen and not self._owed:
            return self._resend_group(view, now)
        due_s = self.ledger.answer_due_s() if answer else self.ledger.push_due_s()
        if due_s > now:
            return Later(due_s)
        chosen = agenda.take()
        return self._respond(view, chosen, more=bool(agenda.chosen), push=not answer)

    def take_away(self, now: float) -> Entry | Later:
        """What the client was told and does not get any more."""
        view = self.view
        if isinstance(view, Absent) or not self.dirty or self._standing.view is not view:
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
            for names in (self._waiting.asked, self._waiting.again):
                members = view.members_of((glob,)) if glob.name in names else set()
                if members:
                    self._agenda = None
                    names.discard(glob.name)
                    names.update(n for n in members if n not in self._standing.behind or not self._is_current(view, n))

    def _is_current(self, view: ClientView, name: str) -> bool:
        return same(self._told(name), view.shown(name, self.subscription, self.settings.public_url))

    def _shared_step(self, view: ClientView) -> Step | None:
        """The step to `view`, if this stream is told exactly what every other wildcard stream in its place is told.

        Names asked for besides the wildcard are answered with the first step, and later ones that do not concern them
        are taken as if there were none.
        """
        subscription, standing, waiting = self.subscription, self._standing, self._waiting
        if not subscription.wildcard or subscription.globs or self._refusals.versions or self._more:
            return None
        step = view.step_from(standing.view)
        if step.size > self.settings.limits.delta_response_bytes:
            return None
        if isinstance(standing.view, Absent):
            shared = not (waiting.again or waiting.mend) and all(told is ABSENT for told in standing.behind.values())
        else:
            concerned = bool(subscription.names) and (step.all_names or not step.names.isdisjoint(subscription.names))
            shared = not (waiting or standing.behind or concerned)
        return step if shared else None

    def _take_the_step(self, view: ClientView, step: Step, now: float) -> Entry | Later:
        """The shared way for wildcard streams at rest: costs the same however large the step is."""
        standing = self._standing
        earlier = standing.view
        if step.gains or self._owed:
            due_s = self.ledger.answer_due_s() if self._owed else self.ledger.push_due_s()
            if due_s > now:
                return Later(due_s)
        self._agenda = None
        if isinstance(earlier, Absent):
            self._waiting.settle([name for name in self._waiting.asked if name in view.named])
            standing.behind = {name: told for name, told in standing.behind.items() if name not in view.named}
        else:
            standing.behind = {name: earlier.named[name].content for name in step.losses}
        standing.view = view
        if not step.gains and not self._owed:
            return NOTHING
        at_rest = self.ledger.idle and not self._refusals.acknowledged
        push, self._owed = not self._owed, False
        entry = Entry(
            version=self.version_after((), view),
            resources=step.gains,
            changed=step.gains,
            push=push,
            # Every stream at rest has acknowledged what it was told.
            before=dict(step.held) if at_rest else self._acknowledged_copies(step.held),
        )
        if self._waiting:
            self._answer_with(entry, view, step)
        return entry

    def _answer_with(self, entry: Entry, view: ClientView, step: Step) -> None:
        """Say with a first step why names that were asked for besides are not in it, as far as there is room."""
        losses = self._look(view, Room(self.settings.limits, used_bytes=step.size)).take()
        entry.errors = errors_of(losses)
        entry.removed = self.removed_by(losses)
        self._told_now(losses)

    def _respond(self, view: ClientView, sent: list[Change], *, more: bool, push: bool) -> Entry:
        gains = [change for change in sent if isinstance(change.now, Content)]
        losses = [change for change in sent if not isinstance(change.now, Content)]
        entry = self._entry(view, gains, losses, push=push)
        entry.heal = bool(gains) and not losses and all(self._is_healed_by(entry, gain) for gain in gains)
        self._owed = False
        self._more = more
        self._told_now(sent)
        self._stand_in(view, gains)
        return entry

    def _told_now(self, sent: list[Change]) -> None:
        """The client is told of these names what the view shows, or what `_stand_in` says."""
        self._waiting.settle([change.name for change in sent])
        for change in sent:
            self._standing.behind.pop(change.name, None)

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

    def _stand_in(self, view: ClientView, gains: list[Change]) -> None:
        """Keep in mind which of this content is not the view's own; what the client gets anew is no longer refused."""
        for gain in gains:
            member = view.named.get(gain.name)
            if member is not None and same(gain.now, member.content):
                self._refusals.versions.pop(gain.name, None)
            else:
                self._standing.behind[gain.name] = gain.now

    # What there is to tell.

    def _look(self, view: ClientView, room: Room | None = None) -> Agenda:
        """Look at the names that are still to be looked at, by name, until a response is full; but at no more of them
        than keep the loop for some ms.

        What was found before counts, as long as nothing else happened. From then on the client stands on `view`, but
        for the names that are still to be told.
        """
        agenda = self._agenda
        if agenda is None or agenda.view is not view:
            names = self._arrive(view) | self._waiting.names
            agenda = self._agenda = Agenda(view, names, self.settings.limits, room)
        for name in agenda.next_names():
            change = self._look_at(view, name)
            if change is not None:
                agenda.note(change)
        return agenda

    def _arrive(self, view: ClientView) -> set[str]:
        """Stand on `view`; the names of which something else may be to be told than the client was told."""
        return self._standing.arrive(view, self.subscription)

    def _look_at(self, view: ClientView, name: str) -> Change | None:
        """What the client has to be told about a name. What it was told before is kept where it is not what is shown.

        Nothing to tell: it was told this, or it goes on with something else.
        """
        behind, forced = self._standing.behind, name in self._waiting
        before = self._told(name)
        stood_apart = behind.pop(name, None) is not None
        now = view.shown(name, self.subscription, self.settings.public_url)
        copy = self._copy(name, before) if isinstance(now, Absent) else ABSENT
        if isinstance(copy, Content) and view.withholds(name):
            # F18a: it goes on with its copy, and a wildcard is told nothing (F22). Who asks what becomes of the name
            # (C7) is sent that copy again, where it is known.
            if name not in self._waiting.asked:
                behind[name] = copy
                self._waiting.settle((name,))
                return None
            now = copy if copy.blob else now
        farewell = self._farewell(view, name, before) if isinstance(now, Absent) else ABSENT
        if isinstance(farewell, ResourceError):
            now = farewell
        if isinstance(now, Absent) and not self.says_gone(name, before):
            self._void(name, before)
            return None
        if isinstance(now, Absent) and isinstance(before, ResourceError):
            before = ABSENT
        if name in self._refusals.versions:
            now, forced = self._refusals.unless_refused(view, name, before, now, self._waiting)
        if forced or not same(before, now):
            if not same(before, now):
                behind[name] = before
            return Change(name, before, now, forced, farewell is not ABSENT)
        if stood_apart and name in self._refusals.versions:
            behind[name] = before
        return None

    def _copy(self, name: str, before: Told) -> Told:  # noqa: ARG002  delta knows more
        """What the client has of a name of which it was told `before` last."""
        return before

    def _farewell(self, view: ClientView, name: str, before: Told) -> Told:
        """What a client that was told of a member of its collection hears, once, when it is none any more (F19)."""
        if isinstance(before, Absent):
            return ABSENT
        farewell = view.farewell(name, self.subscription, self.settings.public_url)
        return ABSENT if same(farewell, before) else farewell

    def _void(self, name: str, before: Told) -> None:  # noqa: ARG002  SotW counts it
        """What was told of a name, `before`, is over without a word: an old error, and what cannot be said (D1)."""
        self._waiting.settle((name,))
        self._refusals.versions.pop(name, None)

    def _is_healed_by(self, entry: Entry, gain: Change) -> bool:
        """Whether the client is sent again what it had acknowledged of a name before it refused something newer."""
        return gain.name in self._refusals.versions and same(entry.before.get(gain.name, ABSENT), gain.now)

    # Answers to responses.

    def needed(self) -> Iterator[Content]:
        """See the base."""
        view, standing = self.view, self._standing
        copies: list[Iterable[Told]] = [entry.before.values() for entry in self.ledger.outstanding]
        copies += (standing.behind.values(), self._refusals.acknowledged.values())
        if isinstance(view, ClientView) and isinstance(standing.view, ClientView) and view is not standing.view:
            copies.append(view.step_from(standing.view).held.values())
        # Of some copies nothing but the version is known.
        return (copy for some in copies for copy in some if isinstance(copy, Content) and copy.blob)

    def _acknowledged_copies(self, told: Mapping[str, Told]) -> dict[str, Content]:
        """Of the names about to be sent, told this before: the content this client acknowledged last, where it did."""
        copies = {}
        for name, copy in told.items():
            if name in self._refusals.acknowledged:
                copy = self._refusals.acknowledged[name]  # noqa: PLW2901  what is known better
            elif not self.ledger.idle and (entry := self.ledger.newest_with(name)) is not None:
                copy = entry.before.get(name, ABSENT)  # noqa: PLW2901
            if isinstance(copy, Content) and copy is not UNKNOWN_COPY:
                copies[name] = copy
        return copies

    def _acknowledged(self, entry: Entry) -> None:
        # Of a stream at rest nothing is to be looked up: most ACKs end here, however much they are about.
        if self._refusals.acknowledged:
            self._agenda = None
            self._refusals.forget_answered(entry.contents)
        for name in entry.contents.keys() & self._standing.behind.keys() if self._standing.behind else ():
            if self._standing.behind[name] is UNKNOWN_COPY:
                self._agenda = None
                self._refusals.acknowledged[name] = entry.contents[name]
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
        self._agenda = None
        suspects = blamed(self.kind, entry, changed, nack)
        for member in changed:
            # What is on its way once more is judged by the answer to that.
            if self._stands_on(member) and self.ledger.newest_with(member.name) is None:
                self._refusals.note(member, entry.before.get(member.name, ABSENT))
        if entry.resources:
            # B12: whether removals and errors were taken in is not known; they are said again, by themselves. Where
            # there was nothing else to reject, they are what was rejected, and saying them again would not help (F8).
            said = [*entry.removed, *(e.name for e in entry.errors if isinstance(self._told(e.name), Absent))]
            gone = [name for name in said if self.subscription.covers(name)]
            self._standing.behind.update((n, UNKNOWN_COPY) for n in gone if not isinstance(self._told(n), Content))
            self._waiting.mend |= {error.name for error in entry.errors if same(self._told(error.name), error)}
        self._refusals.plan(entry, changed, suspects)
        self._waiting.mend |= self._lacking()
        return suspects

    def _lacking(self) -> set[str]:
        """Names of which other content has to stand in for what the client was sent last and refused (F17, F17a).

        Who has a copy of its own goes on with it, unless its kind may have dropped it. Suspects that are still to be
        told apart come again by themselves.
        """
        refusals = self._refusals
        awaited = refusals.resends.awaited
        return {
            name
            for name, refused in refusals.versions.items()
            if name not in awaited
            and isinstance(told := self._told(name), Content)
            and told.version in refused
            and (self.heals or not isinstance(refusals.acknowledged.get(name, ABSENT), Content))
        }

    def _had(self, entry: Entry, name: str) -> Told:
        return entry.before.get(name, ABSENT)

    @property
    def _heals_next(self) -> bool:
        return self.heals and bool(self._waiting.mend & self._refusals.versions.keys())

    def _stands_on(self, member: NamedContent) -> bool:
        """Whether this is what the client was told last of a name it still asks for."""
        return self.subscription.covers(member.name) and same(self._told(member.name), member.content)

    def _resend_group(self, view: ClientView, now: float) -> Entry | Later:
        """The next group of suspects, alone in a response (decisions C8), without those that changed meanwhile."""
        resends = self._refusals.resends
        while group := resends.next_group():
            names = self._refusals.still_shown(view, group)
            due_s = self.ledger.push_due_s()
            if names and due_s > now:
                return Later(due_s)
            if copies := self._refusals.reverted(view, names):
                return self._resend(view, copies)
            resends.drop_group()
            if names:
                return self._resend(view, {name: view.named[name].content for name in names})
        return NOTHING

    def _resend(self, view: ClientView, contents: Mapping[str, Content]) -> Entry:
        self._agenda = None
        self._refusals.resends.count()
        gains = [Change(name, self._told(name), content, forced=True) for name, content in contents.items()]
        entry = self._entry(view, gains, [], push=True)
        entry.isolating = True
        self._standing.forget_unless(lambda name: name not in contents)
        self._stand_in(view, gains)
        return entry
