"""One snapshot as streams see it: a view for each audience and type, made when first asked for, then shared.

Called by the shell once per snapshot; sessions ask it for views. A view that shows nothing new is the previous
publication's very object, so that a stream finds out by one comparison of identities whether a publish concerns it.

While a rollout is open, an audience of the candidate side has views of its own of the types in which the sides differ;
of the others it has the stable side's. A promotion makes what the candidate side showed the stable side's view, by the
same comparison, so that it costs the cohort nothing (rollouts.md R3).
"""

from collections.abc import Callable
from dataclasses import replace
from weakref import WeakValueDictionary

from adsserver.engine.client_view import ClientView
from xdscore.access import Audience
from xdscore.decision import Withheld, decide
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import ResourceType
from xdscore.sides import Side
from xdscore.snapshot import MAX_REFUSERS, Snapshot, client_mark

# A view of these takes some 10 ms; a slice of the loop is 5 ms (reliability (e)).
_MANY_NAMES = 5_000

_ViewKey = tuple[Audience, str]


class Publication:
    """A snapshot and its views.

    Holds no earlier publication: an earlier view lives as long as some stream still stands on it.
    """

    __slots__ = ("_audiences", "_on_stable", "_probed", "made", "recent", "snapshot")

    def __init__(self, snapshot: Snapshot, previous: "Publication | None" = None) -> None:
        self.snapshot = snapshot
        self._audiences: dict[Audience, Audience] = {}
        # What audiences of the candidate side would be on the stable side.
        self._on_stable: dict[Audience, Audience] = {}
        # What a newcomer was let probe in this epoch: (type word, name).
        self._probed: set[tuple[str, str]] = set()
        self.made: dict[_ViewKey, ClientView] = {}
        # Weak: what no stream and no current publication holds is forgotten, however many publications follow each
        # other.
        self.recent: WeakValueDictionary[_ViewKey, ClientView] = WeakValueDictionary()
        if previous is not None:
            self.recent.update(previous.recent)
            # A copy: `make_first` may add to it meanwhile.
            self.recent.update(dict(previous.made))

    def audience(self, client: ClientFacts, digest: str = "") -> Audience:
        """What this client is to the rules of this snapshot; equal audiences are one object. `digest`: the client's
        `sides.client_digest`, if the caller knows it.
        """
        return self._same(self.snapshot.audience(client, digest))

    def probing(
        self, client: ClientFacts, audience: Audience, kind: ResourceType, covers: Callable[[str], bool]
    ) -> Audience:
        """The audience of a newcomer to a type, which is let probe what of it is withheld and nobody probed yet.

        One newcomer for each name and publication, of another verified identity than those who refused it (protocol.md
        F18a): whoever proves nothing could be one of them under another node id.
        """
        if not client.verified:
            return audience
        granted = set()
        for name, entry in self.snapshot.seen_by(audience).type_state(kind).partly.items():
            if (
                entry.content is not None
                and 0 < len(entry.refusers) < MAX_REFUSERS
                and (kind.word, name) not in self._probed
                and covers(name)
                and isinstance(decide(audience, kind, name, self.snapshot), Withheld)
                and client_mark(client) not in entry.refusers
            ):
                self._probed.add((kind.word, name))
                granted.add((kind.word, name, entry.content.version))
        return self._same(replace(audience, probes=audience.probes | granted)) if granted else audience

    def still_probing(self, audience: Audience, probes: frozenset[tuple[str, str, str]]) -> Audience:
        """The audience with only those of `probes` (type word, name, version) whose content is still withheld."""
        types = self.snapshot.seen_by(audience).types
        withheld = {
            (word, name, version)
            for word, name, version in probes
            if (entry := types[word].partly.get(name)) is not None
            and entry.content is not None
            and entry.content.version == version
        }
        return self._same(replace(audience, probes=frozenset(withheld)))

    def _same(self, audience: Audience) -> Audience:
        return self._audiences.setdefault(audience, audience)

    def view(self, audience: Audience, kind: ResourceType) -> ClientView:
        """What this audience may see of this type; the earlier object when it shows the same."""
        if self.snapshot.candidate is not None and audience.side is Side.CANDIDATE:
            audience = self._whose_view(audience, kind)
        key = (audience, kind.word)
        view = self.made.get(key)
        if view is None:
            view = self.made.setdefault(key, self._made_after(self.recent.pop(key, None), audience, kind))
        return view

    def _made_after(self, earlier: ClientView | None, audience: Audience, kind: ResourceType) -> ClientView:
        snapshot = self.snapshot.seen_by(audience)
        if earlier is not None and earlier.rests_on(snapshot):
            return earlier
        if audience.side is Side.STABLE:
            # What the candidate side showed, if it was promoted.
            known = earlier, self.recent.get((replace(audience, side=Side.CANDIDATE), kind.word))
        else:
            known = earlier, self.view(self._on_stable_side(audience), kind) if earlier is None else None
        view = ClientView(audience, kind, snapshot, earlier or known[1])
        return next((other for other in known if other is not None and view.shows_the_same_as(other)), view)

    def _whose_view(self, audience: Audience, kind: ResourceType) -> Audience:
        """The audience whose view of this type `audience` has: one of the stable side where the sides do not differ."""
        if self.snapshot.seen_by(audience).type_state(kind) is not self.snapshot.type_state(kind):
            return audience
        return self._on_stable_side(audience)

    def _on_stable_side(self, audience: Audience) -> Audience:
        """What clients of this audience would be on the stable side."""
        if audience.side is Side.STABLE:
            return audience
        known = self._on_stable.get(audience)
        if known is None:
            kind = audience.kind if audience.kind in self.snapshot.kinds else ""
            known = self._on_stable[audience] = self._same(replace(audience, side=Side.STABLE, kind=kind))
        return known

    def is_costly(self, audience: Audience, kind: ResourceType) -> bool:
        """Whether `view` would look at so many names, for the first time, that `make_first` should do so before."""
        # A view of the candidate side is made of that of the stable side, as one that follows an earlier one.
        key = (self._on_stable_side(audience), kind.word)
        many = len(self.snapshot.type_state(kind).served) > _MANY_NAMES
        return many and key not in self.made and key not in self.recent

    def make_first(self, audience: Audience, kind: ResourceType) -> None:
        """Make a view that has no predecessor, with what a first client of it needs; from any thread."""
        audience = self._on_stable_side(audience)
        view = ClientView(audience, kind, self.snapshot, None)
        view.prepare()
        self.made.setdefault((audience, kind.word), view)
