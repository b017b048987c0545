"""One stream: its sub-streams, one for each type asked for, and the order in which they write.

The shell feeds it requests and publications and writes what `compose` gives back, one response at a time. Order is make
before break (I1): first, in push order, every answer and everything that is added or changed, then, in reverse order,
everything that goes away.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from math import inf

from adsserver.engine import delta, sotw, spelling
from adsserver.engine.delta import DeltaByName
from adsserver.engine.events import (
    Acknowledged,
    DeltaRequest,
    Fact,
    NamedContent,
    Request,
    Respond,
    SotwRequest,
    Variant,
    Violated,
)
from adsserver.engine.full_state import FullState
from adsserver.engine.holdings import Holdings
from adsserver.engine.judged import is_about
from adsserver.engine.ledger import Entry
from adsserver.engine.publication import Publication
from adsserver.engine.renewals import Renewals
from adsserver.engine.settings import EngineSettings
from adsserver.engine.sotw import SotwByName
from adsserver.engine.substream import SubStream
from xdscore.access import Audience
from xdscore.after_nack import AfterNack, after_nack
from xdscore.environment_choice import ClientFacts
from xdscore.errors import ResourceError
from xdscore.resource_types import ENDPOINT, ResourceType
from xdscore.sides import Side, client_digest
from xdscore.snapshot import Content, Snapshot

__all__ = ["EngineSettings", "Session"]

# F24: a node whose bootstrap says "off" here is told what it gets and what is removed, but not why. YAML reads a bare
# off as false.
ERRORS_KEY = "parley.resource_errors"
_OFF = frozenset({"off", "false"})

# Of a stream that nothing is decided for yet.
_NOBODY = Audience("")


class Session:
    """One stream of one variant and client.

    Without a publication nothing is decided and nothing is said (reliability T6).
    """

    __slots__ = (
        "_audience",
        "_client",
        "_digest",
        "_nonce",
        "_phase_s",
        "_publication",
        "_settings",
        "_streams",
        "_takes_ttls",
        "_variant",
        "_waiting",
        "_wake_s",
        "tells_errors",
    )

    def __init__(
        self,
        variant: Variant,
        client: ClientFacts,
        settings: EngineSettings,
        publication: Publication | None,
        *,
        takes_ttls: bool = False,
        phase_s: float = 0.0,
    ) -> None:
        """`takes_ttls`: a client of the SotW variant reads ttls; whoever speaks delta does. `phase_s`: seconds by which
        this stream renews what has a ttl apart from others (`Renewals`).
        """
        self._variant = variant
        self._takes_ttls = takes_ttls
        self._phase_s = phase_s
        self._client = client
        self.tells_errors = client.metadata.get(ERRORS_KEY) not in _OFF
        self._settings = settings
        self._publication = publication
        # What the client is to rollouts; looked at, and then remembered, only while one is open.
        self._digest = ""
        self._audience = _NOBODY if publication is None else self._audience_in(publication)
        # In push order.
        self._streams: dict[ResourceType, SubStream] = {}
        self._nonce = 0
        self._wake_s = inf
        # Types of which the last `compose` left something to say.
        self._waiting: frozenset[ResourceType] = frozenset()

    @property
    def audience(self) -> Audience:
        """The audience that the client belongs to by the access rules that are current."""
        return self._audience

    def costly_view(self, kind: ResourceType) -> Callable[[], None] | None:
        """What to call, in whatever thread, before a request for `kind` is received; None where that costs little."""
        publication, audience = self._publication, self._audience
        # A type that was asked for before has its view.
        if kind in self._streams or publication is None or not publication.is_costly(audience, kind):
            return None
        return partial(publication.make_first, audience, kind)

    def receive(self, request: Request, now: float) -> tuple[Fact, ...]:
        """Take a request in and say what it means. What it asks for is answered by `compose`."""
        request, spelled = spelling.read(request)
        newcomer = request.kind not in self._streams
        match request, self._stream(request.kind):
            case SotwRequest(), FullState() | SotwByName() as stream:
                facts = sotw.receive(stream, request, now)
            case DeltaRequest(), DeltaByName() as stream:
                facts = delta.receive(stream, request)
            case _:
                return (Violated("A1", f"a request of the other variant on a {self._variant.value} stream"),)
        if newcomer:
            self._let_probe(stream)
        if self._audience.probes:
            facts = tuple(map(self._with_probed, facts))
        if spelled or stream.spelled:
            names = stream.subscription.names
            stream.spelled = {name: words for name, words in {**stream.spelled, **spelled}.items() if name in names}
        return facts

    def offer(self, publication: Publication, now: float) -> bool:  # noqa: ARG002  like every event, it has a time
        """Take in what is current from now on; whether it may lead to something to write."""
        before = self._publication.snapshot if self._publication is not None else None
        snapshot, probes = publication.snapshot, self._audience.probes
        if (
            before is None
            or snapshot.access is not before.access
            or snapshot.kinds != before.kinds
            or probes
            or (snapshot.candidate is not before.candidate and _sides_differ(before, snapshot))
        ):
            # U18: group membership counts at once; so does the side (rollouts.md R3).
            self._audience = self._audience_in(publication)
            if probes:
                self._audience = publication.still_probing(self._audience, probes)
        self._publication = publication
        for stream in self._streams.values():
            stream.show(publication.view(self._audience, stream.kind))
        return self.dirty

    @property
    def dirty(self) -> bool:
        """Whether `compose` may have something, at once or in time; cheap, and true a little too often."""
        for stream in self._streams.values():  # noqa: SIM110 - a generator costs three times as much
            if stream.dirty:
                return True
        return False

    def compose(self, now: float) -> Respond | None:
        """The next response, from what is current now; it counts as sent. None: nothing to write before `wake_at`."""
        self._wake_s = inf
        if self._publication is None:
            return None
        streams = [stream for stream in self._streams.values() if stream.dirty]
        waiting = set()
        for stream in streams:
            response = stream.make(now, gently=len(streams) > 1)
            if isinstance(response, Entry):
                return self._sent(stream, response, now)
            self._wake_s = min(self._wake_s, response.due_s)
            if response.due_s < inf:
                waiting.add(stream.kind)
        held_back = bool(waiting)
        for stream in reversed(streams):
            if held_back and not self._waited_long(stream, now):
                waiting.add(stream.kind)
                continue
            response = stream.take_away(now)
            if isinstance(response, Entry):
                return self._sent(stream, response, now)
            self._wake_s = min(self._wake_s, response.due_s)
            if response.due_s < inf:
                waiting.add(stream.kind)
        self._waiting = frozenset(waiting)
        return self._renewal(now)

    def _renewal(self, now: float) -> Respond | None:
        """The next response that keeps something alive of what the client holds for a limited time (G2, G3)."""
        for stream in self._streams.values():
            if stream.expires:
                response = stream.renew(now)
                if isinstance(response, Entry):
                    return self._sent(stream, response, now)
                self._wake_s = min(self._wake_s, response.due_s)
        return None

    def judged_by(self, facts: Iterable[Fact]) -> bool:
        """Whether the judge of a rollout waits for one of these facts: the client is on the candidate side, and it is
        about a name in which the sides differ (rollouts.md R3).
        """
        if self._audience.side is not Side.CANDIDATE or self._publication is None:
            return False
        differing = self._publication.snapshot.differing
        return any(is_about(differing, fact, self._variant) for fact in facts)

    def wake_at(self) -> float:
        """When `compose` may have something although nothing arrives; inf when never. As of the last `compose`."""
        return self._wake_s

    def unanswered_since(self) -> float:
        """When the oldest response was sent that the client has not answered; inf when it answered all."""
        return min((stream.ledger.oldest_sent_s for stream in self._streams.values()), default=inf)

    @property
    def name_bytes(self) -> int:
        """The memory of all names that the client made this stream remember, in bytes."""
        total = 0
        for stream in self._streams.values():
            total += stream.name_bytes
        return total

    def needed(self) -> Iterator[Content]:
        """Content that this stream may have to be sent again although no snapshot has it any more (F17, F17a)."""
        return (content for stream in self._streams.values() for content in stream.needed())

    def holdings(self, kind: ResourceType) -> Holdings | None:
        """What the client has of this type; None where it never asked for it."""
        stream = self._streams.get(kind)
        return stream.holdings(tells=self.tells_errors) if stream is not None else None

    def state(self, kind: ResourceType) -> tuple[tuple[NamedContent, ...], tuple[ResourceError, ...]]:
        """Everything that the client was told of this type and did not refuse, as one answer would say it: resources
        and errors. For who polls: each answer to a poll is whole.
        """
        stream = self._streams.get(kind)
        if stream is None:
            return (), ()
        resources, errors = stream.state()
        whole = Respond(kind, "", "", resources, errors if self.tells_errors else ())
        whole = spelling.written(whole, stream.spelled)
        return whole.resources, whole.errors

    def view(self, kind: ResourceType) -> object:
        """What is current of this type for the client, an object that is another one once it shows something else; None
        where the client never asked for it.
        """
        stream = self._streams.get(kind)
        return stream.view if stream is not None else None

    def unheard(self) -> Iterator[tuple[ResourceType, Holdings]]:
        """What the client has of types of which that may have changed since its last request while there is nothing to
        say, so that no answer will follow from which it would be learnt; each change once. To be asked when `compose`
        has nothing.

        So it is when content that a client refused makes way for what it was given back before (F17a), or for nothing
        where it never had any.
        """
        for kind, stream in self._streams.items():
            if stream.unheard and kind not in self._waiting:
                stream.unheard = False
                yield kind, stream.holdings(tells=self.tells_errors)

    def too_large(self) -> dict[ResourceType, int]:
        """Types whose state is too large to be sent, with its bytes (F24). As of the last `compose`."""
        return {kind: stream.too_large_bytes for kind, stream in self._streams.items() if stream.too_large_bytes}

    def _audience_in(self, publication: Publication) -> Audience:
        """The client's audience by the access rules of a publication and its open rollout."""
        snapshot = publication.snapshot
        if snapshot.rollout is not None and not self._digest:
            self._digest = client_digest(snapshot.environment, self._client)
        return publication.audience(self._client, self._digest)

    def _with_probed(self, fact: Fact) -> Fact:
        """The fact, saying what of an acknowledged response the client was let try."""
        if not isinstance(fact, Acknowledged):
            return fact
        probes, word = self._audience.probes, fact.kind.word
        probed = tuple(each for each in fact.resources if (word, each.name, each.content.version) in probes)
        return replace(fact, probed=probed) if probed else fact

    def _let_probe(self, stream: SubStream) -> None:
        """Who asks for a type for the first time may be let try what is withheld (F18a)."""
        publication, covers = self._publication, stream.subscription.covers
        if publication is None or not publication.snapshot.seen_by(self._audience).type_state(stream.kind).partly:
            return
        audience = publication.probing(self._client, self._audience, stream.kind, covers)
        if audience is not self._audience:
            self._audience = audience
            for each in self._streams.values():
                each.show(publication.view(audience, each.kind))

    def _stream(self, kind: ResourceType) -> SubStream:
        stream = self._streams.get(kind)
        if stream is None:
            # F17a: not where a client of its family surely goes on with what it had.
            heals = after_nack(self._client.kind.family, kind, drops=None) is not AfterNack.KEEPS
            if self._variant is Variant.DELTA:
                stream = DeltaByName(kind, self._settings, heals=heals, renewals=Renewals(self._phase_s))
            elif kind.full_state:
                renewals = Renewals(self._phase_s) if self._takes_ttls else None
                stream = FullState(kind, self._settings, heals=heals, renewals=renewals)
            else:
                stream = SotwByName(kind, self._settings, heals=heals)
            if self._publication is not None:
                stream.show(self._publication.view(self._audience, kind))
            streams = {**self._streams, kind: stream}
            self._streams = dict(sorted(streams.items(), key=lambda item: item[0].push_order))
        return stream

    def _waited_long(self, stream: SubStream, now: float) -> bool:
        """Whether a removal has waited so long for additions of other types that it goes ahead of them (B13)."""
        stream.losing_since_s = min(stream.losing_since_s, now)
        due_s = stream.losing_since_s + self._settings.limits.silent_client_s
        self._wake_s = min(self._wake_s, max(due_s, now))
        return due_s <= now

    def _sent(self, stream: SubStream, entry: Entry, now: float) -> Respond:
        self._nonce += 1
        # B1: unique on the stream, and says nothing about content (reliability I1).
        nonce = str(self._nonce)
        if not self.tells_errors:
            entry.errors = ()
        stream.ledger.sent(entry, nonce, now)
        stream.losing_since_s = inf
        if stream.renewals is not None and not entry.beats:
            stream.renewals.look_again()
        self._send_endpoints_behind(entry.changed)
        resources, beats = entry.beats or entry.resources, bool(entry.beats)
        response = Respond(
            stream.kind,
            nonce,
            entry.version,
            resources,
            entry.errors,
            entry.removed,
            entry.unresolved,
            heartbeat=beats,
        )
        return spelling.written(response, stream.spelled)

    def _send_endpoints_behind(self, changed: tuple[NamedContent, ...]) -> None:
        """A changed cluster warms until its endpoints arrive again; delta clients never ask for them (I3)."""
        endpoints = self._streams.get(ENDPOINT)
        if endpoints is not None and not endpoints.subscription.empty:
            endpoints.send_again(frozenset(member.content.eds_name for member in changed if member.content.eds_name))


def _sides_differ(before: Snapshot, snapshot: Snapshot) -> bool:
    """Whether a client may be on another side, or be told apart by its kind there, since the snapshot `before`."""
    if snapshot.rollout is not before.rollout or snapshot.candidate is None or before.candidate is None:
        return True
    return snapshot.candidate.kinds != before.candidate.kinds
