"""A world to publish, and a client that obeys the protocol and checks everything it is sent.

The client is a model, not a copy of the engine: it keeps what it was sent per name and compares it with `decide` on the world.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
from adsserver.engine.publication import Publication
from adsserver.engine.session import EngineSettings, Session
from xdscore.access import AccessTable, Audience, Effect, Verdict
from xdscore.decision import Decision, Missing, Serve, Withheld, decide
from xdscore.errors import error_of
from xdscore.resource_types import CLUSTER, ENDPOINT, DeltaMissing, ResourceType
from xdscore.snapshot import Content, Entry, RemovedName, Served, Snapshot, WithheldName, snapshot_from_entries

AUDIENCE = Audience("default")
URL = "https://parley.example"
SETTINGS = EngineSettings(public_url=URL)


@dataclass(frozen=True, slots=True)
class NameRules(AccessTable):
    """An access table with an effect for each name it lists."""

    effects: tuple[tuple[tuple[str, str], Effect], ...] = ()

    def verdict(self, audience: Audience, kind: ResourceType, name: str) -> Verdict:
        return Verdict(dict(self.effects).get((kind.word, name), self.default), rule=1)

    @property
    def allows_everything(self) -> bool:
        return self.default is Effect.ALLOW and not self.effects


def content(version: str, *, eds_name: str = "", size: int = 100) -> Content:
    return Content(version.encode(), version, size, eds_name)


@dataclass
class World:
    """What an operator has published; `publish` makes the next publication of it."""

    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    effects: dict[tuple[str, str], Effect] = field(default_factory=dict)
    epoch: int = 0
    publication: Publication | None = None

    def serve(
        self, kind: ResourceType, name: str, version: str, *, proven: str = "", eds_name: str | None = None, size: int = 100
    ) -> None:
        eds = (name if kind is CLUSTER else "") if eds_name is None else eds_name
        last = content(proven, eds_name=eds, size=size) if proven else None
        self.entries[kind.word, name] = Served(content(version, eds_name=eds, size=size), last)

    def withhold(self, kind: ResourceType, name: str, reason: str = "it does not parse") -> None:
        self.entries[kind.word, name] = WithheldName(reason)

    def remove(self, kind: ResourceType, name: str) -> None:
        self.entries[kind.word, name] = RemovedName()

    def forget(self, kind: ResourceType, name: str) -> None:
        self.entries.pop((kind.word, name), None)

    def rule(self, kind: ResourceType, name: str, effect: Effect) -> None:
        self.effects[kind.word, name] = effect

    @property
    def published(self) -> Snapshot:
        return (self.publication or self.publish()).snapshot

    @property
    def snapshot(self) -> Snapshot:
        access = NameRules(Effect.ALLOW, tuple(sorted(self.effects.items(), key=lambda item: item[0])))
        return snapshot_from_entries(
            environment="default", lineage="one", epoch=self.epoch, access=access, entries=self.entries.items()
        )

    def publish(self) -> Publication:
        self.epoch += 1
        self.publication = Publication(self.snapshot, self.publication)
        return self.publication


def session_of(world: World, variant: Variant = Variant.SOTW, settings: EngineSettings = SETTINGS) -> Session:
    return Session(variant, AUDIENCE, settings, world.publication or world.publish())


def names_of(response: Respond) -> list[str]:
    return [member.name for member in response.resources]


def versions_of(response: Respond) -> dict[str, str]:
    return {member.name: member.content.version for member in response.resources}


def errors_of(response: Respond) -> dict[str, str]:
    return {error.name: error.code.name for error in response.errors}


def drained(session: Session, now: float = 0.0) -> list[Respond]:
    """Everything that can be written now."""
    responses = []
    while (response := session.compose(now)) is not None:
        responses.append(response)
        assert len(responses) < 200, "the engine does not come to rest"
    return responses


def is_error(told: str) -> bool:
    return told.startswith(("NOT_FOUND", "PERMISSION_DENIED", "INTERNAL"))


@dataclass
class Half:
    """The client's side of one type."""

    kind: ResourceType
    # What the server was told; a stale SotW request tells it nothing (B3).
    names: frozenset[str] = frozenset()
    wildcard: bool = False
    # What the next SotW request lists.
    wish: tuple[frozenset[str], bool] = (frozenset(), False)
    opened: bool = False
    nonce: str = ""
    last_sent: str = ""
    last_acknowledged: bool = False
    # What the client holds, by name, and which errors it remembers.
    held: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    # What it was sent, in the order of writing (the server's view of it), and what it waits for.
    sent: dict[str, str] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    asked_all: bool = False
    again: set[str] = field(default_factory=set)
    # Of this stream: what it rejected and what it acknowledged.
    rejected: dict[str, set[str]] = field(default_factory=dict)
    acknowledged: dict[str, str] = field(default_factory=dict)
    # As `rejected`, but only while it is what is published: what changed and came back may be sent again.
    still_rejected: dict[str, set[str]] = field(default_factory=dict)
    accused: dict[str, str] = field(default_factory=dict)
    pushes: list[tuple[str, float]] = field(default_factory=list)
    resends_left: int = 0
    ever_sent: set[str] = field(default_factory=set)
    lost_errors: set[str] = field(default_factory=set)

    def rejects(self, member: NamedContent) -> None:
        self.rejected.setdefault(member.name, set()).add(member.content.version)
        if self.sent.get(member.name) == member.content.version:
            self.still_rejected.setdefault(member.name, set()).add(member.content.version)

    def covers(self, name: str) -> bool:
        return self.wildcard or name in self.names


class ModelClient:
    """One client on one stream after another. `poison`: the versions it cannot use; `names_culprits`: whether its NACKs say which."""

    def __init__(self, world: World, variant: Variant, kinds: Iterable[ResourceType]) -> None:
        self.world = world
        self.variant = variant
        self.now = 0.0
        self.poison: set[str] = set()
        self.accepted: set[str] = set()
        self.names_culprits = True
        self.uses_valid_part = True
        self.halves = {kind: Half(kind) for kind in kinds}
        self.nonces: set[str] = set()
        self.in_flight: deque[Respond] = deque()
        self.facts: list[Fact] = []
        # I8, over all streams of the client: what was shown, and the version it had.
        self.version_of: dict[object, str] = {}
        self.shown_by: dict[tuple[str, str], object] = {}
        self.session = session_of(world, variant)

    def _is_full_state(self, half: Half) -> bool:
        return half.kind.full_state and self.variant is Variant.SOTW

    # The client acts.

    def dislike(self, version: str) -> None:
        """Refuse this content from now on; a client does not change its mind about what it uses."""
        if version not in self.accepted:
            self.poison.add(version)

    def want(self, kind: ResourceType, names: frozenset[str], *, wildcard: bool) -> None:
        half = self.halves[kind]
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
        listed = (*sorted(names), *(("*",) if wildcard else ()))
        self._send(SotwRequest(half.kind, listed, nonce, nack=nack))

    def repeat(self, kind: ResourceType) -> None:
        """Ask for the same names again, as Envoy does when a cluster was made anew (B7)."""
        half = self.halves[kind]
        if self.variant is Variant.SOTW and half.nonce and half.names:
            current = half.nonce == half.last_sent and half.wish == (half.names, half.wildcard)
            if current and half.last_acknowledged and not half.kind.full_state:
                half.again |= half.names
            self._ask(half, half.nonce)

    def _listed(self, half: Half) -> tuple[str, ...]:
        # An explicit star everywhere: the legacy form has its own scenarios.
        return (*sorted(half.names), *(("*",) if half.wildcard else ()))

    def _want_delta(self, half: Half, names: frozenset[str], *, wildcard: bool) -> None:
        added, gone = names - half.names, half.names - names
        subscribe = (*sorted(added), *(("*",) if wildcard and not half.wildcard else ()))
        unsubscribe = (*sorted(gone), *(("*",) if half.wildcard and not wildcard else ()))
        if not subscribe and not unsubscribe:
            return
        if wildcard and half.wildcard:
            half.asked |= {name for name in gone if name in half.sent}
        self._change(half, names, wildcard=wildcard)
        self._send(DeltaRequest(half.kind, subscribe, unsubscribe))

    def _change(self, half: Half, names: frozenset[str], *, wildcard: bool) -> None:
        half.opened = True
        half.asked |= names - half.names
        half.asked_all = (half.asked_all or (wildcard and not half.wildcard)) and (wildcard or (bool(names) and self.variant is Variant.SOTW))
        half.names, half.wildcard = names, wildcard
        for table in (half.held, half.sent, half.acknowledged, half.still_rejected, half.accused):
            for name in [name for name in table if not half.covers(name)]:
                del table[name]
        for name in [name for name in half.errors if name not in half.names]:
            del half.errors[name]
        half.asked = {name for name in half.asked if half.covers(name)}
        half.again &= names

    def read(self) -> None:
        """Read one response and answer it."""
        if not self.in_flight:
            return
        response = self.in_flight.popleft()
        half = self.halves[response.kind]
        half.nonce = response.nonce
        bad = [member for member in response.resources if member.content.version in self.poison and half.covers(member.name)]
        self._apply(half, response, {member.name for member in bad})
        self.accepted.update(half.held.values())
        half.pushes = [(nonce, at) for nonce, at in half.pushes if int(nonce) > int(response.nonce)]
        half.last_acknowledged = not bad
        if bad:
            nack = Nack(3, self._nack_text(response, bad))
            self._reject(half, response, nack)
            self._forget_errors(half, response)
            self._answer(half, response.nonce, nack)
        else:
            if self._is_full_state(half):
                half.acknowledged = {}
            half.acknowledged.update((n, v) for n, v in versions_of(response).items() if half.covers(n))
            for name in [*response.removed, *(error.name for error in response.errors)]:
                half.acknowledged.pop(name, None)
            self.accepted.update(versions_of(response).values())
            for name, version in versions_of(response).items():
                half.rejected.get(name, set()).discard(version)
                half.still_rejected.get(name, set()).discard(version)
            self._answer(half, response.nonce, None)

    def _apply(self, half: Half, response: Respond, bad: set[str]) -> None:
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
        half.errors.update((error.name, error.text) for error in response.errors if error.name in half.names)

    def _reject(self, half: Half, response: Respond, nack: Nack) -> None:
        for member in response.resources:
            if not self._is_full_state(half) and member.content.version != half.acknowledged.get(member.name):
                half.rejects(member)
        if half.resends_left <= 0 or not self._only_resends(half, response):
            half.resends_left = 16

    def _forget_errors(self, half: Half, response: Respond) -> None:
        # B12: whether the errors of a rejected response were read, the server cannot know.
        half.lost_errors |= {error.name for error in response.errors}

    def _only_resends(self, half: Half, response: Respond) -> bool:
        return all(m.content.version in half.rejected.get(m.name, ()) for m in response.resources)

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

    def reconnect(self) -> None:
        """End the stream and start another with what is held (A4)."""
        self.in_flight.clear()
        self.nonces.clear()
        self.session = session_of(self.world, self.variant)
        for half in self.halves.values():
            fresh = Half(half.kind, half.names, half.wildcard, half.wish, held=dict(half.held))
            self.halves[half.kind] = fresh
            if not half.names and not half.wildcard:
                continue
            fresh.opened = True
            fresh.asked, fresh.asked_all = set(half.names), half.wildcard
            if self.variant is Variant.SOTW:
                self._send(SotwRequest(half.kind, self._listed(fresh), version="7"))
                continue
            # F11a: what is in error is left out of what one says one holds.
            held = {name: version for name, version in half.held.items() if half.covers(name) and name not in half.errors}
            fresh.held = dict(held)
            fresh.sent = dict(held)
            fresh.ever_sent = set(held)
            fresh.acknowledged = dict(held)
            fresh.asked -= held.keys()
            self._send(DeltaRequest(half.kind, self._listed(fresh), initial_versions=held))

    # The server acts.

    def publish(self) -> None:
        self.session.offer(self.world.publish(), self.now)
        for half in self.halves.values():
            for name, versions in half.still_rejected.items():
                decision = self.decision(half.kind, name)
                versions &= {decision.content.version} if isinstance(decision, Serve) else set()

    def write(self) -> bool:
        """Let the server write one response, and check it."""
        response = self.session.compose(self.now)
        if response is None:
            return False
        self._check(response)
        self.in_flight.append(response)
        return True

    # What must hold.

    def decision(self, kind: ResourceType, name: str) -> Decision:
        return decide(AUDIENCE, kind, name, self.world.published)

    def served(self, half: Half) -> Iterable[tuple[str, Serve]]:
        """What this half covers and may have, by the published world."""
        for name in sorted(self.world.published.type_state(half.kind).served):
            decision = self.decision(half.kind, name)
            if half.covers(name) and isinstance(decision, Serve):
                yield name, decision

    def error_text(self, kind: ResourceType, name: str) -> str:
        error = error_of(self.decision(kind, name), kind=kind, name=name, environment="default", public_url=URL)
        return error.text if error is not None else ""

    def _check(self, response: Respond) -> None:
        half = self.halves[response.kind]
        names, errors, removed = names_of(response), [e.name for e in response.errors], list(response.removed)
        assert response.nonce and response.nonce not in self.nonces, "I1, B1"
        self.nonces.add(response.nonce)
        half.last_sent = response.nonce
        assert response.version, "F7"
        assert len(set(names)) == len(names) and names == sorted(names), "D5, E3"
        assert len(set(errors)) == len(errors) and not set(names) & set(errors), "T2, F3"
        assert not set(names) & set(removed) and len(set(removed)) == len(removed), "T2, E3"
        assert all(half.covers(name) for name in [*names, *removed]), "I5"
        assert set(errors) <= half.names and not {"", "*"} & set(errors), "F4, T8"
        for error in response.errors:
            assert error.code in {5, 7, 13, 14} and 0 < len(error.text) <= 300 and error.text.isprintable(), "T3"
            assert error.text == self.error_text(response.kind, error.name), "T6: told from the current snapshot"
        assert self.variant is Variant.DELTA or not removed, "D1"
        if self._is_full_state(half):
            self._check_full_state(half, response)
        else:
            self._check_parts(half, response)
        self._check_nothing_breaks_early(half, response)
        self._check_push(half, response)
        self._note(half, response)
        if not (self.variant is Variant.DELTA):
            self._check_version(half, response)

    def _check_full_state(self, half: Half, response: Respond) -> None:
        got = versions_of(response)
        for name, decision in self.served(half):
            if name in got:
                continue
            refused = half.rejected.get(name, set())
            assert decision.content.version in refused, "I4, D1: every covered resource that exists"
            assert decision.fallback is None or decision.fallback.version in refused, "D13: proven content stands in"
            assert half.acknowledged.get(name, "") in {"", *refused}, "D13: a working copy never vanishes"
        told = {error.name for error in response.errors}
        due = {name for name in half.names if name not in got and not isinstance(self.decision(half.kind, name), Serve)}
        assert told == due, "T4, F6: every response repeats every error"
        for name, version in got.items():
            decision = self.decision(half.kind, name)
            if isinstance(decision, Serve):
                allowed = {decision.content.version} - half.still_rejected.get(name, set())
                if decision.content.version in half.rejected.get(name, ()):
                    allowed |= {half.acknowledged.get(name, ""), decision.fallback.version if decision.fallback else ""}
                assert version in allowed, "I4: the current content, or what stands in for what was refused"
                assert name in half.asked or version not in half.still_rejected.get(name, ()), "N3"
            else:
                assert version == half.sent.get(name), "D14: only what was told stays a little longer"
                assert decision == Missing(removed=True) or decision == Missing() or isinstance(decision, Withheld), "S4"

    def _check_parts(self, half: Half, response: Respond) -> None:
        for name, version in versions_of(response).items():
            decision = self.decision(half.kind, name)
            assert isinstance(decision, Serve), "T6, S4: only what may be served"
            asked = name in half.asked or name in half.again or half.asked_all
            if version != decision.content.version:
                assert decision.fallback is not None and version == decision.fallback.version, "F17"
                assert decision.content.version in half.rejected.get(name, ()), "F17"
                assert asked or name not in half.acknowledged, "F17: who has a copy keeps it"
            resent = half.sent.get(name) == version and not asked
            if resent:
                # N3: sent again only while suspects are told apart.
                assert version in half.rejected.get(name, ()), "D6: only changes are sent"
                assert half.resends_left > 0, "N3: at most 16 re-sends for a NACK"
            if name in half.again and name not in half.asked and version == decision.content.version and not resent:
                assert version not in half.still_rejected.get(name, ()) or half.sent.get(name) != version, "N3"
        if any(half.sent.get(name) == version for name, version in versions_of(response).items()):
            half.resends_left -= 1
        for error in response.errors:
            asked = error.name in half.asked or error.name in half.again
            lost = error.name in half.lost_errors
            assert asked or lost or half.sent.get(error.name) != error.text or error.name in response.removed, "F9: once"
        self._check_removals(half, response)

    def _check_removals(self, half: Half, response: Respond) -> None:
        told = {error.name for error in response.errors}
        for name in response.removed:
            assert not isinstance(self.decision(half.kind, name), Serve), "E1"
            assert name in told or name not in half.names, "T10, F12: with its error"
        if self.variant is Variant.SOTW:
            return
        for error in response.errors:
            held = error.name in half.sent and not is_error(half.sent[error.name])
            both = half.kind.delta_missing is DeltaMissing.ENTRY_AND_REMOVAL and error.name in half.asked
            if held or both:
                assert error.name in response.removed, "E2, T10: what was delivered is removed"
            if half.kind.delta_missing is DeltaMissing.ENTRY_ONLY and error.name not in half.ever_sent:
                assert error.name not in response.removed, "E2: Envoy waits forever for a route it never had"

    def _check_nothing_breaks_early(self, half: Half, response: Respond) -> None:
        lost = set(response.removed) & {name for name, told in half.sent.items() if not is_error(told)}
        if self._is_full_state(half):
            lost = {name for name, told in half.sent.items() if not is_error(told)} - set(names_of(response))
        lost = {name for name in lost if self.decision(half.kind, name) in (Missing(), Missing(removed=True))}
        lost = (lost & half.acknowledged.keys()) - half.asked - half.again
        if not lost:
            return
        for other in self.halves.values():
            if other is half or other.pushes:
                continue
            for name, decision in self.served(other):
                version = decision.content.version
                assert other.sent.get(name) == version or version in other.rejected.get(name, ()) or (
                    other.sent.get(name) is not None and name in other.rejected
                ), "I1, I10: nothing is taken away while something is to be added"

    def _check_push(self, half: Half, response: Respond) -> None:
        touched = {*names_of(response), *(e.name for e in response.errors), *response.removed}
        full = self._is_full_state(half)
        answer = half.asked_all or bool(half.asked if full else touched & (half.asked | half.again))
        if answer:
            return
        waiting = [at for _, at in half.pushes if self.now - at < 30]
        assert not waiting, "I3: one outstanding push"
        half.pushes.append((response.nonce, self.now))

    def _note(self, half: Half, response: Respond) -> None:
        changed = {
            m.content.eds_name
            for m in response.resources
            if m.content.eds_name and half.sent.get(m.name) != m.content.version
        }
        full = self._is_full_state(half)
        if full:
            half.sent, half.asked = {}, set()
        for name, version in versions_of(response).items():
            half.sent[name] = version
            half.ever_sent.add(name)
        for name in response.removed:
            half.sent.pop(name, None)
        for error in response.errors:
            half.sent[error.name] = error.text
        touched = {*names_of(response), *(e.name for e in response.errors), *response.removed}
        half.asked -= touched
        half.again -= touched
        half.lost_errors -= touched
        half.asked_all = False
        endpoints = self.halves.get(ENDPOINT)
        if endpoints is not None and half.kind is CLUSTER:
            endpoints.again |= changed & endpoints.names

    def _check_version(self, half: Half, response: Respond) -> None:
        shown = (half.kind.word, frozenset(half.sent.items()))
        assert self.version_of.setdefault(shown, response.version) == response.version, "I8: equal state, equal version"
        key = (half.kind.word, response.version)
        assert self.shown_by.setdefault(key, shown) == shown, "B8: another state, another version"

    def _check_suspects(self, fact: Rejected) -> None:
        half = self.halves[fact.kind]
        held = {member.name: member.content.version for member in fact.resources}
        for suspect in fact.suspects:
            assert held.get(suspect.name) == suspect.content.version, "N2: never blame what was not received"
            half.accused[suspect.name] = suspect.content.version
            if self._is_full_state(half):
                half.rejects(suspect)
        bad = {member.name for member in fact.resources if member.content.version in self.poison and half.covers(member.name)}
        guilty = {suspect.name for suspect in fact.suspects}
        assert bad <= guilty or not bad & held.keys(), "N2: the culprits are among the suspects"
        if self.names_culprits:
            assert guilty <= bad or len(fact.suspects) == 1, "N2: the text narrows"

    def rest(self) -> None:
        """Let everything be read and written until nothing moves, then compare with the decision."""
        for _ in range(400):
            moved = self.write()
            while self.in_flight:
                self.read()
                moved = True
            if not moved and self.session.wake_at() == inf:
                break
            if not moved:
                # All is answered, so that only a repeated ask can wait for its second (D32).
                assert self.now < self.session.wake_at() <= self.now + 1, "wake_at"
                self.now = self.session.wake_at()
        else:
            raise AssertionError("the stream does not come to rest: a loop")
        for half in self.halves.values():
            assert not half.asked and not half.asked_all and not half.again or self._all_refused(half), "T1: every name is answered"
            self._check_converged(half)

    def _all_refused(self, half: Half) -> bool:
        return not half.asked and not half.asked_all and all(name in half.rejected for name in half.again)

    def _check_converged(self, half: Half) -> None:
        known = self.world.published.type_state(half.kind).served.keys()
        for name in sorted(known | half.names | half.held.keys()):
            if not half.covers(name):
                assert name not in half.held
                continue
            decision = self.decision(half.kind, name)
            if not isinstance(decision, Serve):
                gone = self.variant is Variant.DELTA or half.kind.full_state
                assert not gone or name not in half.held, f"I7: {name} is gone"
                if name in half.names:
                    assert half.errors.get(name) == self.error_text(half.kind, name), f"T1, T5: why {name} is not served"
                continue
            version = decision.content.version
            if version in self.poison:
                self._check_stand_in(half, name, decision)
                continue
            if half.accused.get(name) == version and self._is_full_state(half):
                # In a full state nothing tells suspects apart: an innocent one may lack its content (resolutions C8).
                continue
            assert name not in half.errors, "T5, F11"
            assert half.held.get(name) == version, f"I7, N5: {half.kind.word} {name} has its content"

    def _check_stand_in(self, half: Half, name: str, decision: Serve) -> None:
        """Law 1, F17: a client that refuses what is current keeps what it had, or is given what others use."""
        fallback = decision.fallback.version if decision.fallback is not None else ""
        if self._is_full_state(half) and fallback and fallback not in self.poison:
            assert name in half.held, "D13: last proven content stands in"

    def view(self) -> Mapping[str, Mapping[str, str]]:
        return {half.kind.word: dict(half.held) for half in self.halves.values()}
