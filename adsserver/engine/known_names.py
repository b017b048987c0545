"""What is known of a client's names, where a response holds any part of the state: what it asked for, has and refused.

Here is what requests say: subscriptions, ACKs and NACKs. `by_name` makes the responses that follow.
"""

from collections.abc import Iterator, Mapping
from enum import Enum

from adsserver.engine.agenda import Agenda
from adsserver.engine.client_view import ClientView
from adsserver.engine.events import Nack, NamedContent
from adsserver.engine.holdings import Holdings, Known, ViewGround, holding_of
from adsserver.engine.ledger import Entry
from adsserver.engine.name_state import DOUBTFUL, Due, Event
from adsserver.engine.refusals import Suspects, copy_of, is_refused
from adsserver.engine.rejection import named_by
from adsserver.engine.renewals import Renewals
from adsserver.engine.settings import EngineSettings
from adsserver.engine.subscription import Subscription, memory_of
from adsserver.engine.substream import SubStream
from adsserver.engine.told import ABSENT, UNKNOWN_COPY, Absent, Told, same
from xdscore.errors import ResourceError
from xdscore.holdings import REQUESTED, Holding
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content


class Owed(Enum):
    """Which answer the client waits for that is about no name in particular."""

    NOTHING = "none"
    REST = "the answer that was begun goes on in another response"
    EVERYTHING = "it asked for everything, and is answered even if that is nothing (D3, E6)"


class KnownNames(SubStream):
    """One type on one stream, as far as the client said something of it: what it asked for, answered and refused."""

    __slots__ = ("_agenda", "_healing", "_owed", "_reported_bytes", "_suspects")

    def __init__(
        self, kind: ResourceType, settings: EngineSettings, *, heals: bool, renewals: Renewals | None = None
    ) -> None:
        super().__init__(kind, settings, heals=heals, renewals=renewals)
        self._suspects = Suspects(settings.limits.isolation_resends, reverts=kind.remembers_refused)
        # None: what there is to look at may be something else than before.
        self._agenda: Agenda | None = None
        self._owed = Owed.NOTHING
        # Whether the last NACK left something open that the client had acknowledged before (F17a).
        self._healing = False
        # Of the names that the client said it holds, until it was told of all of them.
        self._reported_bytes = 0

    @property
    def name_bytes(self) -> int:
        """The memory of the names that the client made this stream remember, in bytes."""
        return super().name_bytes + (self._reported_bytes if self._memory.moving else 0)

    @property
    def dirty(self) -> bool:
        """Whether there may be a response to write; cheap, and true a little too often."""
        return (
            self._memory.view is not self.view
            or self._owed is Owed.EVERYTHING
            or (bool(self._memory) and self._memory.moving)
            or bool(self._suspects.resends)
        )

    # Requests.

    def subscribe(self, subscription: Subscription, asked: frozenset[str]) -> None:
        """The client is subscribed to this from now on, and waits for an answer about the names in `asked`.

        A name that is new was told nothing of yet; one that left is forgotten.
        """
        current, memory = self.subscription, self._memory
        self._agenda = None
        if subscription.wildcard and not current.wildcard:
            self._begin_wildcard()
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
        if current.globs and not current.globs <= subscription.globs:
            # No resource has a collection's name, so that a wildcard does not ask for it either (F19).
            memory.each([glob.name for glob in current.globs - subscription.globs], Event.LEFT)

    def _begin_wildcard(self) -> None:
        """Whatever else the view shows was never told: stand on nothing again, apart from what the client asked for so
        far, and from what it said itself it has of that (E5).
        """
        current, memory = self.subscription, self._memory
        known = current.names | memory.members_of(current.globs)
        known |= {name for name in memory.names if current.covers(name)}
        memory.pin(known, current)
        memory.stand_on_nothing(but_for=known)
        self._owed = Owed.EVERYTHING

    def holds(self, versions: Mapping[str, str]) -> None:
        """What a client says, on a new stream, it still has of what it is subscribed to (E5)."""
        if not versions:
            # A new client: told everything by the step that all of them share.
            return
        self._agenda = None
        if self.renewals is not None:
            self.renewals.begin_with_what_is_held()
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

    def state(self) -> tuple[tuple[NamedContent, ...], tuple[ResourceError, ...]]:
        """All that the client was told and did not refuse, name by name."""
        subscription, view = self.subscription, self._memory.view
        names = subscription.names | self._memory.members_of(subscription.globs)
        if subscription.wildcard and not isinstance(view, Absent):
            names |= view.named.keys()
        resources: list[NamedContent] = []
        errors: list[ResourceError] = []
        for name in sorted(names):
            told = self._told(name)
            if isinstance(told, ResourceError):
                errors.append(told)
            elif isinstance(told, Content) and told.blob and told.version not in self._memory[name].refused:
                resources.append(NamedContent(name, told))
        return tuple(resources), tuple(errors)

    def holdings(self, *, tells: bool) -> Holdings:
        """What the client has of each name. `tells`: whether it is told errors."""
        memory, covers = self._memory, self.subscription.covers
        ground = ViewGround(memory.view, self.subscription, self.settings.public_url, tells)
        names = {name for entry in self.ledger.outstanding for name in entry.contents if covers(name)}
        apart: dict[str, Holding | None] = {}
        if memory:
            # Of 10,000 names that are just asked for, or about to be sent, nothing is to be found out one by one.
            apart = dict.fromkeys(memory.untold - names, REQUESTED)
            names.update(name for name in memory.names if name not in apart)
        asked = self.subscription.names
        for name in names:
            holding = holding_of(self._known(name), tells=tells)
            # Who asks for everything, or for a collection, waits for no name in particular.
            apart[name] = holding if holding is not REQUESTED or name in asked else None
        return Holdings(ground, apart)

    def _known(self, name: str) -> Known:
        state, told, view = self._memory[name], self._told(name), self.view
        doubted = state.acceptance in DOUBTFUL
        entry = self.ledger.newest_with(name)
        acked: Told | None
        if entry is not None:
            acked = entry.before.get(name)
        elif doubted or told is UNKNOWN_COPY:
            acked = state.acknowledged
        else:
            acked = told if isinstance(told, Content) else state.copy
        refused = isinstance(view, ClientView) and is_refused(view, name, state)
        if state.due is Due.ASKED and isinstance(told, ResourceError):
            # What the view says of a name that was not asked for before was not said yet.
            told = ABSENT
        elif isinstance(told, Content) and not refused:
            # What it refused and is withheld now is no copy of it (F18a).
            told = copy_of(state, told) or ABSENT
        return Known(
            told,
            acked if isinstance(acked, Content) else None,
            view.named[name].content if isinstance(view, ClientView) and refused else None,
            entry is not None,
            name in self._suspects.resends.undecided,
            doubted,
        )

    # Answers to responses.

    def needed(self) -> Iterator[Content]:
        """Content that the client acknowledged and may be sent again, whether or not a snapshot still has it."""
        view, told_view = self.view, self._memory.view
        for entry in self.ledger.outstanding:
            yield from (copy for copy in entry.before.values() if copy.blob)
        yield from self._memory.copies()
        if isinstance(view, ClientView) and isinstance(told_view, ClientView) and view is not told_view:
            yield from view.step_from(told_view).held.values()

    def _acknowledged(self, entry: Entry) -> None:
        gone = (*entry.removed, *(error.name for error in entry.errors))
        # Of a stream at rest nothing is to be looked up: most ACKs end here, however much they are about.
        if self._memory and self._memory.acknowledge(entry.contents, gone):
            self._agenda = None
        for later in self.ledger.outstanding:
            if later.sent_after(entry):
                # Of a resource that the client asks for no longer, its ACK says nothing.
                both = (
                    name for name in entry.contents.keys() & later.contents.keys() if self.subscription.covers(name)
                )
                later.before.update((name, entry.contents[name]) for name in both)
                for name in entry.removed:
                    later.before.pop(name, None)

    def _new_to_client(self, entry: Entry) -> tuple[NamedContent, ...]:
        return tuple(m for m in entry.resources if not same(entry.before.get(m.name, ABSENT), m.content))

    def _rejected(
        self, entry: Entry, nack: Nack, changed: tuple[NamedContent, ...], turned: tuple[NamedContent, ...]
    ) -> tuple[NamedContent, ...]:
        memory = self._memory
        self._agenda = None
        suspects = named_by(self.kind, entry, changed, nack) or (() if turned else changed)
        for member in changed:
            # What is on its way once more is judged by the answer to that.
            if self._stands_on(member) and self.ledger.newest_with(member.name) is None:
                before = entry.before.get(member.name, ABSENT)
                memory.happens(member.name, Event.NACKED, version=member.content.version, acknowledged=before)
        if entry.resources:
            # B12: whether removals and errors were taken in is not known; they are said again, by themselves. Where
            # there was nothing else to reject, they are what was rejected, and saying them again would not help (F8).
            said = {*entry.removed, *(e.name for e in entry.errors if isinstance(self._told(e.name), Absent))}
            gone = [name for name in said if self.subscription.covers(name)]
            memory.each([name for name in gone if not isinstance(self._told(name), Content)], Event.LOST_TRACK)
            memory.each([e.name for e in entry.errors if same(self._told(e.name), e)], Event.LEFT_OPEN)
        self._suspects.plan(entry, changed, suspects)
        lacking = self._lacking()
        memory.each(lacking, Event.LEFT_OPEN)
        self._healing = any(self._goes_back(memory[name].acknowledged) for name in lacking)
        return suspects

    def _lacking(self) -> list[str]:
        """Names of which other content has to stand in for what the client was sent last and refused (F17, F17a).

        Who has a copy of its own goes on with it, unless its kind may have dropped it. Suspects that are still to be
        told apart come again by themselves.
        """
        awaited = self._suspects.resends.awaited
        return [
            name
            for name, state in self._memory.refusals.items()
            if name not in awaited
            and isinstance(told := self._told(name), Content)
            and told.version in state.refused
            and (not isinstance(state.acknowledged, Content) or self._goes_back(state.acknowledged))
        ]

    def _goes_back(self, acknowledged: Told | None) -> bool:
        """Whether a client that refused something newer is sent again what it had acknowledged: it may have dropped it,
        or it would run out, because only what a client was sent last is renewed (G2).
        """
        return self.heals or (isinstance(acknowledged, Content) and acknowledged.ttl_ms > 0)

    def _had(self, entry: Entry, name: str) -> Told:
        return entry.before.get(name, ABSENT)

    @property
    def _heals_next(self) -> bool:
        return self._healing

    def _stands_on(self, member: NamedContent) -> bool:
        """Whether this is what the client was told last of a name it still asks for."""
        return self.subscription.covers(member.name) and same(self._told(member.name), member.content)
