"""What a stream remembers of the names of one type: the shared view it stands on, and the state of each name that does
not rest on it (decisions A6, performance.md law 3).

A stream at rest remembers nothing but its view. Whatever happens to a name goes through `name_state.after`.
"""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping

from adsserver.engine.client_view import ClientView, Step
from adsserver.engine.name_state import DOUBTFUL, REST, Acceptance, Due, Event, NameState, Standing, after
from adsserver.engine.subscription import Subscription
from adsserver.engine.told import ABSENT, Absent, Told, reported
from xdscore.snapshot import Content
from xdscore.xdstp import Glob

_NOTHING, _ASKED = Due.NOTHING, Due.ASKED


class Memory:
    """The names of one type on one stream.

    `view`: the view that the client was told, but for what the names' states say; absent before it was told anything.
    """

    __slots__ = ("_answers_due", "_moving", "_names", "_public_url", "view")

    def __init__(self, public_url: str) -> None:
        """`public_url`: where the links in error texts lead."""
        self._public_url = public_url
        self.view: ClientView | Absent = ABSENT
        self._names: dict[str, NameState] = {}
        # How many of them a look may find something of, and of how many the client waits for an answer.
        self._moving = 0
        self._answers_due = 0

    # One name.

    def __getitem__(self, name: str) -> NameState:
        """The state of this name; `REST` if nothing is remembered of it."""
        return self._names.get(name, REST)

    def put(self, name: str, before: NameState, state: NameState) -> None:
        """Remember this state of a name, which was in the state `before`; at rest there is nothing to remember."""
        self._moving += state.moves - before.moves
        self._answers_due += state.asks - before.asks
        if state is not REST:
            self._names[name] = state
        elif before is not REST:
            del self._names[name]

    def happens(
        self,
        name: str,
        event: Event,
        *,
        told: Told | None = None,
        copy: Content | None = None,
        version: str = "",
        acknowledged: Told | None = None,
    ) -> None:
        """Take in what happens to a name; what an event brings along is said at `name_state.after`."""
        before = self._names.get(name, REST)
        state = after(before, event, told=told, copy=copy, version=version, acknowledged=acknowledged)
        self.put(name, before, state)

    def told(self, name: str, subscription: Subscription) -> Told:
        """What the client was told of this name last."""
        told = self[name].told
        if told is not None:
            return told
        if isinstance(self.view, Absent) or not subscription.covers(name):
            return ABSENT
        return self.view.shown(name, subscription, self._public_url)

    # All names.

    def __bool__(self) -> bool:
        """Whether anything is remembered of any name."""
        return bool(self._names)

    @property
    def names(self) -> Collection[str]:
        """The names of which anything is remembered."""
        return self._names.keys()

    @property
    def untold(self) -> set[str]:
        """The names, of those of which anything is remembered, that wait to be told anything for the first time."""
        nothing = isinstance(self.view, Absent)
        return {
            name
            for name, state in self._names.items()
            if (state.told is ABSENT or (nothing and state.told is None)) and state.acceptance is Acceptance.ACCEPTED
        }

    @property
    def moving(self) -> bool:
        """Whether a look at some name may find something to tell."""
        return self._moving > 0

    @property
    def answers_due(self) -> bool:
        """Whether some name waits for an answer, or is needed once more."""
        return self._answers_due > 0

    @property
    def fresh(self) -> bool:
        """Whether the client was told nothing yet, and refused nothing; all it may have done is to ask."""
        return isinstance(self.view, Absent) and all(
            (state.told is None or state.told is ABSENT)
            and (state.due is _NOTHING or state.due is _ASKED)
            and not state.refused
            for state in self._names.values()
        )

    @property
    def in_doubt(self) -> bool:
        """Whether of some name nobody knows what the client holds since a NACK."""
        return any(state.acceptance in DOUBTFUL for state in self._names.values())

    @property
    def refusals(self) -> dict[str, NameState]:
        """The names of which the client refused something, and their states."""
        return {name: state for name, state in self._names.items() if state.refused}

    @property
    def doubted(self) -> list[str]:
        """The names that were in a refused response, of which the client may hold anything since."""
        return [name for name, state in self._names.items() if state.acceptance in DOUBTFUL]

    def moving_names(self) -> set[str]:
        """The names of which a look may find something to tell."""
        return {name for name, state in self._names.items() if state.moves}

    def members_of(self, globs: Iterable[Glob]) -> set[str]:
        """Members of these collections in the view that the client stands on."""
        return set() if isinstance(self.view, Absent) else self.view.members_of(globs)

    def copies(self) -> Iterator[Content]:
        """What the client has, or had acknowledged, of names that do not rest on the view.

        Of some nothing but the version is known, or not even that; they cannot be sent and are not among them.
        """
        for state in self._names.values():
            for copy in (state.told, state.copy, state.acknowledged):
                if isinstance(copy, Content) and copy.blob:
                    yield copy

    # Events of one name or more.

    def each(self, names: Iterable[str], event: Event) -> None:
        """Let the same event happen to each of these names."""
        before = result = REST
        known = False
        for name in names:
            state = self[name]
            if state is not before or not known:
                # Most of 10,000 names are in one and the same state.
                before, result, known = state, after(state, event), True
            self.put(name, state, result)

    def pin(self, names: Iterable[str], subscription: Subscription) -> None:
        """Note what the client was told of these names, for the view or the subscription is about to say otherwise."""
        untold = []
        for name in names:
            state = self[name]
            if state.told is None:
                told = self.told(name, subscription)
                if told is ABSENT:
                    untold.append(name)
                else:
                    self.put(name, state, after(state, Event.OVERTAKEN, told=told))
        self.each(untold, Event.UNSEEN)

    def forget_unless(self, covers: Callable[[str], bool]) -> None:
        """Forget the names that `covers` does not cover: the client asks for them no more."""
        self.each([name for name in self._names if not covers(name)], Event.LEFT)

    def stand_on_nothing(self, but_for: Container[str] = ()) -> None:
        """The client asks for everything anew: it counts as told nothing, but for these names."""
        told = [name for name, state in self._names.items() if state.told is not None and name not in but_for]
        self.each(told, Event.FORGOTTEN)
        self.view = ABSENT

    def join(self, view: ClientView, names: frozenset[str], versions: Mapping[str, str]) -> None:
        """Stand on `view`, but for what differs from what the client says it holds (E5); it asks for `names` and more.

        With everything current nothing is remembered, and with tens of thousands of names the loop is not held up
        (performance.md law 3, reliability F25).
        """
        known = view.versions
        self.view = view
        self.each([name for name in names if name in known and versions.get(name) == known[name]], Event.CURRENT)
        if versions != known:
            unheld = [name for name in known.keys() - versions.keys() if self[name].told is None]
            self.each(unheld, Event.UNSEEN)
            self.report({name: version for name, version in versions.items() if known.get(name) != version})

    def report(self, versions: Mapping[str, str]) -> None:
        """Note the versions, by name, that a client says it holds on its first request (E5)."""
        for name, version in versions.items():
            self.happens(name, Event.REPORTED, told=reported(version))

    def acknowledge(self, contents: Mapping[str, Content], gone: Iterable[str]) -> bool:
        """The client acknowledged a response with these contents, and that these names are gone or in error; whether
        anything is known better since.
        """
        better = False
        for name in gone:
            state = self[name]
            if state.acceptance in DOUBTFUL and state.standing is not Standing.UNKNOWN:
                self.happens(name, Event.ACKNOWLEDGED)
                better = True
        for name in contents.keys() & self._names.keys():
            state = self._names[name]
            if state.standing is Standing.UNKNOWN:
                self.happens(name, Event.TRACED, acknowledged=contents[name])
            elif state.acceptance in DOUBTFUL:
                self.happens(name, Event.ACKNOWLEDGED)
            else:
                continue
            better = True
        return better

    # From view to view.

    def arrive(self, view: ClientView, subscription: Subscription) -> set[str]:
        """Stand on `view` from here on, but for what the client was not told of it: the names are given back, and what
        it was told of them is noted.
        """
        if self.view is view:
            return self.moving_names()
        differing = self._differing(view, subscription)
        # Most of them are new, or wait already.
        self.pin(differing.difference(self._names), subscription)
        self.pin(
            [name for name, state in self._names.items() if state.told is None and name in differing], subscription
        )
        self.view = view
        return self.moving_names() | differing

    def take(self, view: ClientView, step: Step) -> None:
        """Take the step to `view` that all wildcard streams at rest share: the client is told all that it gains."""
        earlier = self.view
        if isinstance(earlier, Absent):
            self.view = view
            self.each([name for name in self._names if name in view.named], Event.SENT)
            return
        for name in step.losses:
            self.happens(name, Event.OVERTAKEN, told=earlier.named[name].content)
        self.view = view

    def _differing(self, view: ClientView, subscription: Subscription) -> set[str]:
        """The names of this subscription of which `view` may show anything else than the view before."""
        names = set(view.step_from(self.view).names) if subscription.wildcard else set()
        explicit, globs = subscription.names, subscription.globs
        if isinstance(self.view, Absent):
            return names | explicit | view.members_of(globs)
        step = view.step_from(self.view)
        if step.all_names:
            return names | explicit | view.members_of(globs) | self.view.members_of(globs)
        members = {name for name in step.names if subscription.in_collection(name)} if globs else set()
        # The first and the last member decide what is told of a collection itself.
        return names | (step.names & explicit) | members | {glob.name for glob in globs if members}
