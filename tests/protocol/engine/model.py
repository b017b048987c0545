"""A client that obeys the protocol, reads when it is told to and refuses what it is told to."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf

from adsserver.engine.events import (
    DeltaRequest,
    Fact,
    Nack,
    NamedContent,
    Rejected,
    Respond,
    SotwRequest,
    Variant,
)
from adsserver.engine.holdings import Holdings
from adsserver.engine.session import EngineSettings
from tests.protocol.engine.checks import Checker
from tests.protocol.engine.half import Half, is_error, passes
from tests.protocol.engine.world import CLIENT, GRPC_CLIENT, SETTINGS, World, names_of, session_of, versions_of
from xdscore.decision import Serve
from xdscore.errors import StatusCode
from xdscore.resource_types import ResourceType
from xdscore.snapshot import ttl_ms_of
from xdscore.xdstp import glob_of


class ModelClient(Checker):
    """One client on one stream after another.

    `poison`: the versions it cannot use; `names_culprits`: whether its NACKs say which. `reads_errors`: clients from
    before TP3 do not (T9). `drops_refused`: it has no copy left of what it refuses (A88, fail_on_data_errors), and says
    that it is of a family of which that is known.
    `legacy_wildcard`: it asks for everything by an empty list, where that is possible (C2, C5).
    """

    def __init__(
        self,
        world: World,
        variant: Variant,
        kinds: Iterable[ResourceType],
        *,
        drops_refused: bool = False,
        settings: EngineSettings = SETTINGS,
    ) -> None:
        self.world = world
        self.settings = settings
        self.variant = variant
        # It proves who it is, so that it may be let probe.
        self.client = replace(GRPC_CLIENT if drops_refused else CLIENT, identity="spiffe://client-1")
        self.drops_refused = drops_refused
        self.now = 0.0
        self.poison: set[str] = set()
        self.accepted: set[str] = set()
        self.names_culprits = True
        self.uses_valid_part = True
        self.reads_errors = True
        self.legacy_wildcard = False
        self.halves = {kind: Half(kind) for kind in kinds}
        self.nonces: set[str] = set()
        self.in_flight: deque[Respond] = deque()
        self.facts: list[Fact] = []
        # I8, over all streams of the client: what was shown, and the version it had.
        self.version_of: dict[object, str] = {}
        self.shown_by: dict[tuple[str, str], object] = {}
        # As the shell notes it: what the client had when that was reported last, and what it was sent since.
        self.reported: dict[ResourceType, tuple[Holdings, list[Respond]]] = {}
        self.session = session_of(world, variant, settings, self.client)

    # The client acts.

    def dislike(self, version: str) -> None:
        """Refuse this content from now on; a client does not change its mind about what it uses."""
        if version not in self.accepted:
            self.poison.add(version)

    def want(self, kind: ResourceType, names: frozenset[str], *, wildcard: bool) -> None:
        half = self.halves[kind]
        if not names and not wildcard and half.wish[1] and not self._listed(half, *half.wish):
            # An empty list asks for everything, and cannot end it.
            return
        if self.variant is Variant.SOTW:
            self._want_sotw(half, names, wildcard=wildcard)
        else:
            self._want_delta(half, names, wildcard=wildcard)

    def _want_sotw(self, half: Half, names: frozenset[str], *, wildcard: bool) -> None:
        if (names, wildcard) == half.wish:
            return
        half.wish = names, wildcard
        self._ask(half, half.nonce)

    def _ask(self, half: Half, nonce: str, nack: Nack | None = None) -> None:
        names, wildcard = half.wish
        if nonce in {"", half.last_sent}:
            self._change(half, names, wildcard=wildcard)
        listed = self._listed(half, names, wildcard)
        half.listed_once = half.listed_once or bool(listed)
        self._send(SotwRequest(half.kind, listed, nonce, nack=nack))

    def repeat(self, kind: ResourceType) -> None:
        """Ask for the same names again, as Envoy does when a cluster was made anew (B7)."""
        half = self.halves[kind]
        if self.variant is Variant.SOTW and half.nonce and half.names:
            current = half.nonce == half.last_sent and half.wish == (half.names, half.wildcard)
            if current and half.last_acknowledged and not half.kind.full_state:
                half.again |= half.names
            self._ask(half, half.nonce)

    def _listed(self, half: Half, names: frozenset[str], wildcard: bool) -> tuple[str, ...]:
        """The list that asks for this; empty for everything in the legacy form."""
        if wildcard and not names and self.legacy_wildcard and not half.listed_once:
            return ()
        return (*sorted(names), *(("*",) if wildcard else ()))

    def _want_delta(self, half: Half, names: frozenset[str], *, wildcard: bool) -> None:
        added, gone = names - half.names, half.names - names
        subscribe = (*sorted(added), *(("*",) if wildcard and not half.wildcard else ()))
        unsubscribe = (*sorted(gone), *(("*",) if half.wildcard and not wildcard else ()))
        if not subscribe and not unsubscribe:
            return
        if not half.opened and subscribe == ("*",):
            # C5: a first request with both lists empty.
            subscribe = self._listed(half, names, wildcard)
        if wildcard:
            half.asked |= {name for name in gone if name in half.sent and glob_of(name) is None}
        self._change(half, names, wildcard=wildcard)
        self._send(DeltaRequest(half.kind, subscribe, unsubscribe))

    def _change(self, half: Half, names: frozenset[str], *, wildcard: bool) -> None:
        half.opened = True
        if any(glob.name not in names for glob in half.globs):
            # Who asks for a collection and leaves it before the answer may be sent its members all the same.
            self._ask_for_members(half)
        half.asked |= names - half.names
        half.asked_all = (half.asked_all or (wildcard and not half.wildcard)) and wildcard
        half.names, half.wildcard = names, wildcard
        for table in (half.held, half.sent, half.acknowledged, half.still_rejected, half.accused):
            for name in [name for name in table if not half.covers(name)]:
                del table[name]
        for name in [name for name in half.errors if not half.explains(name)]:
            del half.errors[name]
        # Why it cannot have a name was said to who asked for that very name; members are another matter (F19).
        for name in [n for n, told in half.sent.items() if n not in names and is_error(told) and not passes(told)]:
            del half.sent[name]
            half.left.add(name)
        # C7: only a delta client hears what becomes of a name that it leaves under a wildcard.
        leaves_loudly = wildcard and self.variant is Variant.DELTA
        half.asked = {name for name in half.asked if name in names or (leaves_loudly and glob_of(name) is None)}
        # Of a member of a collection that is not there, nothing can be said again.
        half.again = {n for n in half.again if n in names or (half.covers(n) and self.serves(half.kind, n))}
        half.kept = {name for name in half.kept if half.covers(name)}

    def read(self) -> None:
        """Read one response and answer it."""
        if not self.in_flight:
            return
        response = self.in_flight.popleft()
        half = self.halves[response.kind]
        half.nonce = response.nonce
        if response.heartbeat:
            self._hear(half, response)
            return
        bad = [
            member
            for member in response.resources
            if member.content.version in self.poison and half.covers(member.name)
        ]
        self._apply(half, response, {member.name for member in bad})
        self.accepted.update(half.held.values())
        half.pushes = [(nonce, at) for nonce, at in half.pushes if int(nonce) > int(response.nonce)]
        half.last_acknowledged = not bad
        half.ever_acknowledged = half.ever_acknowledged or not bad
        if bad:
            nack = Nack(3, self._nack_text(response, bad))
            self._reject(half, response)
            self._forget_errors(half, response)
            self._answer(half, response.nonce, nack)
        else:
            if self._is_full_state(half):
                half.acknowledged = {}
            half.acknowledged.update((n, v) for n, v in versions_of(response).items() if half.covers(n))
            half.reported -= versions_of(response).keys()
            # After INTERNAL and UNAVAILABLE it goes on with what it has (TP3).
            over = (e.name for e in response.errors if e.code in {StatusCode.NOT_FOUND, StatusCode.PERMISSION_DENIED})
            for name in [*response.removed, *over]:
                half.acknowledged.pop(name, None)
            self.accepted.update(versions_of(response).values())
            for name, version in versions_of(response).items():
                half.rejected.get(name, set()).discard(version)
                half.still_rejected.get(name, set()).discard(version)
            self._answer(half, response.nonce, None)

    def _hear(self, half: Half, response: Respond) -> None:
        """Read heartbeats; what it does not have it cannot keep, and refuses to hear of."""
        told = versions_of(response).items()
        lacking = [name for name, version in told if half.covers(name) and half.held.get(name) != version]
        on_the_way = {name for each in self.in_flight if each.kind is half.kind for name in versions_of(each)}
        assert half.asked_all or set(lacking) <= half.asked | on_the_way, "G2: a heartbeat is of what the client holds"
        half.last_acknowledged = not lacking
        self._answer(half, response.nonce, Nack(3, "what is that?") if lacking else None)

    def _apply(self, half: Half, response: Respond, bad: set[str]) -> None:
        if not self.reads_errors:
            response = replace(response, errors=())
        if self.drops_refused:
            half.held = {name: version for name, version in half.held.items() if name not in bad}
        if bad and not self.uses_valid_part:
            return
        got = {m.name: m.content.version for m in response.resources if half.covers(m.name) and m.name not in bad}
        if self._is_full_state(half):
            keep = {member.name for member in response.resources}
            half.held = {name: version for name, version in half.held.items() if name in keep}
            half.errors = {}
        half.held.update(got)
        for name in response.removed:
            half.held.pop(name, None)
        for name in got:
            half.errors.pop(name, None)
        half.errors.update((error.name, error.text) for error in response.errors if half.explains(error.name))

    def _reject(self, half: Half, response: Respond) -> None:
        for member in response.resources:
            if not self._is_full_state(half) and member.content.version != half.acknowledged.get(member.name):
                half.rejects(member)
        if half.resends_left <= 0 or not self._only_resends(half, response):
            half.resends_left = 16

    def _forget_errors(self, half: Half, response: Respond) -> None:
        half.in_refused |= {*versions_of(response), *response.removed, *(error.name for error in response.errors)}
        # B12: whether the errors of a rejected response were read, the server cannot know.
        half.lost_errors |= {error.name for error in response.errors}
        # What it said was removed may be said again, with the reason.
        half.left |= set(response.removed)

    def _only_resends(self, half: Half, response: Respond) -> bool:
        new = [m for m in response.resources if m.content.version != half.acknowledged.get(m.name)]
        return all(m.content.version in half.rejected.get(m.name, ()) for m in new)

    def _nack_text(self, response: Respond, bad: list[NamedContent]) -> str:
        if not self.names_culprits:
            return "something is wrong"
        rows = [
            f"resource index {index}: {member.name}: INVALID_ARGUMENT: broken"
            for index, member in enumerate(response.resources)
            if member in bad
        ]
        return f"xDS response validation errors: [{'; '.join(rows)}]"

    def _answer(self, half: Half, nonce: str, nack: Nack | None) -> None:
        if self.variant is Variant.SOTW:
            self._ask(half, nonce, nack)
        else:
            self._send(DeltaRequest(half.kind, nonce=nonce, nack=nack))

    def _send(self, request: SotwRequest | DeltaRequest) -> None:
        facts = self.session.receive(request, self.now)
        for fact in facts:
            if isinstance(fact, Rejected):
                self._check_suspects(fact)
        self.facts.extend(facts)
        if facts and (holdings := self.session.holdings(request.kind)) is not None:
            self.reported[request.kind] = holdings, []

    def reconnect(self) -> None:
        """End the stream and start another with what is held (A4)."""
        self.in_flight.clear()
        self.nonces.clear()
        self.reported.clear()
        self.session = session_of(self.world, self.variant, self.settings, self.client)
        for half in self.halves.values():
            fresh = Half(half.kind, half.names, half.wildcard, half.wish, held=dict(half.held))
            self.halves[half.kind] = fresh
            if not half.names and not half.wildcard:
                continue
            fresh.opened = True
            fresh.asked, fresh.asked_all = set(half.names), half.wildcard
            if self.variant is Variant.SOTW:
                self._send(SotwRequest(half.kind, self._first_list(fresh), version="7"))
                continue
            # F11a: what is in error is left out of what one says one holds.
            held = {
                name: version for name, version in half.held.items() if half.covers(name) and name not in half.errors
            }
            fresh.held = dict(held)
            fresh.sent = dict(held)
            fresh.ever_sent = set(held)
            fresh.acknowledged = dict(held)
            fresh.reported = set(held)
            fresh.asked -= held.keys()
            self._send(DeltaRequest(half.kind, self._first_list(fresh), initial_versions=held))

    def _first_list(self, half: Half) -> tuple[str, ...]:
        listed = self._listed(half, half.names, half.wildcard)
        half.listed_once = bool(listed)
        return listed

    # The server acts.

    def publish(self) -> None:
        self.session.offer(self.world.publish(), self.now)
        for half in self.halves.values():
            for name in half.still_rejected:
                decision = self.decision(half.kind, name)
                half.still_rejected[name] &= {decision.content.version} if isinstance(decision, Serve) else set()

    def write(self) -> bool:
        """Let the server write one response, and check it."""
        response = self.session.compose(self.now)
        if response is not None:
            self._check(response)
            self.in_flight.append(response)
            if response.kind in self.reported and not response.heartbeat:
                self.reported[response.kind][1].append(response)
        else:
            self.reported.update((kind, (holdings, [])) for kind, holdings in self.session.unheard())
        return response is not None

    def rest(self) -> None:
        """Let everything be read and written until nothing moves, then compare with the decision."""
        for _ in range(1000):
            moved = self.write()
            while self.in_flight:
                self.read()
                moved = True
            if not moved and (self.session.wake_at() == inf or self._waits_to_renew()):
                break
            if not moved:
                # All is answered, so that only a repeated ask can wait for its second (D32), or the rest of the names
                # for the next step.
                assert self.now <= self.session.wake_at() <= self.now + 1, "wake_at"
                self.now = self.session.wake_at()
        else:
            raise AssertionError("the stream does not come to rest: a loop")
        for half in self.halves.values():
            # Of a collection whose members the client said it holds, nothing need be said (C6).
            self._ask_for_members(half)
            assert (not half.asked and not half.asked_all and not half.again) or self._all_refused(half), (
                "T1: every name is answered"
            )
            self._check_converged(half)

    def live(self, seconds: float) -> None:
        """Let time pass for a client at rest, with a server and a network that are prompt: what it holds for a limited
        time is renewed three times in that time at least (G2, G3).
        """
        end, since = self.now + seconds, dict.fromkeys(self._expires(), self.now)
        while self.session.wake_at() <= end:
            self.now = max(self.now, self.session.wake_at())
            while self.write():
                response = self.in_flight[-1]
                for key, ttl_ms in self._expires().items():
                    if key[0] == response.kind.word and key[1] in names_of(response):
                        assert self.now - since.get(key, self.now) <= ttl_ms / 3_000, f"G2: {key} is renewed in time"
                        since[key] = self.now
                self.read()
        self.now = end
        for key, ttl_ms in self._expires().items():
            assert end - since[key] <= ttl_ms / 3_000, f"G2: {key} is renewed in time"

    def _waits_to_renew(self) -> bool:
        """Whether all that the server waits for may be the time at which something with a ttl is due."""
        seen = (v for half in self.halves.values() for v in (*half.held.values(), *half.acknowledged.values()))
        return self.session.wake_at() > self.now + 1 and any(map(ttl_ms_of, seen))

    def _expires(self) -> dict[tuple[str, str], int]:
        """The ttl, in milliseconds, of all that the client holds for a limited time and was told of last."""
        return {
            (half.kind.word, name): ttl_ms
            for half in self.halves.values()
            if self.variant is Variant.DELTA or half.kind.full_state
            for name, version in half.held.items()
            if (ttl_ms := ttl_ms_of(version)) and version == half.sent.get(name) == half.acknowledged.get(name)
        }

    def view(self) -> Mapping[str, Mapping[str, str]]:
        return {half.kind.word: dict(half.held) for half in self.halves.values()}
