"""What must hold of every response, and of a stream that came to rest: the invariants I1 to I11, T1 to T10, N2, N3, N5.

The checker keeps what was sent of each name and compares it with `decide` on the published world. It knows nothing of
the engine.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from adsserver.engine.events import NamedContent, Rejected, Respond, Variant
from adsserver.engine.session import Session
from tests.protocol.engine.half import Half, is_error, passes
from tests.protocol.engine.world import URL, World, names_of, versions_of
from xdscore.access import Audience
from xdscore.decision import (
    Collection,
    Decision,
    Denied,
    Missing,
    Serve,
    Undecided,
    Withheld,
    decide,
    decide_collection,
)
from xdscore.environment_choice import ClientFacts
from xdscore.errors import StatusCode, error_of
from xdscore.resource_types import CLUSTER, ENDPOINT, DeltaMissing, ResourceType
from xdscore.snapshot import Snapshot, ttl_ms_of
from xdscore.xdstp import Glob, glob_of


class Checker:
    """One client's expectations of the server. The model client, which acts, is built on it."""

    world: World
    variant: Variant
    session: Session
    now: float
    poison: set[str]
    names_culprits: bool
    reads_errors: bool
    drops_refused: bool
    client: ClientFacts
    halves: dict[ResourceType, Half]
    in_flight: deque[Respond]
    nonces: set[str]
    version_of: dict[object, str]
    shown_by: dict[tuple[str, str], object]

    def _is_full_state(self, half: Half) -> bool:
        return half.kind.full_state and self.variant is Variant.SOTW

    def decision(self, kind: ResourceType, name: str) -> Decision:
        return decide(self.audience, kind, name, self.world.published)

    @property
    def published(self) -> Snapshot:
        return self.world.published.seen_by(self.audience)

    @property
    def audience(self) -> Audience:
        """Whom the client counts as; what it was let probe is the session's choice (F18a)."""
        return replace(self.world.published.audience(self.client), probes=self.session.audience.probes)

    def served(self, half: Half) -> Iterable[tuple[str, Serve]]:
        """What this half covers and may have, by the published world."""
        state = self.published.type_state(half.kind)
        for name in sorted({*state.served, *state.partly}):
            decision = self.decision(half.kind, name)
            if half.covers(name) and isinstance(decision, Serve):
                yield name, decision

    def collection(self, kind: ResourceType, glob: Glob) -> Collection | Missing | Denied:
        return decide_collection(self.audience, kind, glob, self.world.published)

    def error_text(self, kind: ResourceType, name: str) -> str:
        glob = glob_of(name)
        decision = self.decision(kind, name) if glob is None else self.collection(kind, glob)
        if isinstance(decision, Collection):
            return ""
        error = error_of(decision, kind=kind, name=name, environment="default", public_url=URL)
        return error.text if error is not None else ""

    def due_errors(self, half: Half) -> set[str]:
        """The names for which this half has to be told why there is no content (T1, F4, F19)."""
        members = {
            name
            for glob in half.globs
            if isinstance(collection := self.collection(half.kind, glob), Collection)
            for name in collection.absent
        }
        return {name for name in half.names if self.error_text(half.kind, name)} | members

    def _ask_for_members(self, half: Half) -> None:
        """A collection that has members is answered by them."""
        for glob in half.globs:
            collection = self.collection(half.kind, glob)
            if glob.name in half.asked | half.again and isinstance(collection, Collection):
                half.tolerated |= {*collection.served, *collection.absent}
                half.asked.discard(glob.name)
                half.again.discard(glob.name)

    def _forget_void(self, half: Half) -> None:
        """What ended without a word: the error of a collection that has members again, and members of one that is
        refused, of which its own entry speaks.
        """
        for name in [name for name in half.sent if name not in half.names or glob_of(name) is not None]:
            over = is_error(half.sent[name]) or self.variant is Variant.SOTW
            if over and self._is_void(half, name) and not self.takes_leave(half, name):
                del half.sent[name]

    def _is_void(self, half: Half, name: str) -> bool:
        return not self.error_text_of_member(half, name) and not self.serves(half.kind, name)

    def takes_leave(self, half: Half, name: str) -> bool:
        """Whether a client that was told of this member has to be told that it is none any more (F19)."""
        if name in half.names or not self._is_void(half, name):
            return False
        collections = [self.collection(half.kind, glob) for glob in half.globs if glob.contains(name)]
        return not all(isinstance(each, Denied) or each == Missing(hidden=True) for each in collections)

    def _check_farewells(self, half: Half, response: Respond) -> None:
        """That a member is gone is told to who was told of it, and once (F19, T11)."""
        for error in response.errors:
            if self.takes_leave(half, error.name):
                known = half.sent.keys() | half.held.keys() | half.lost_errors | half.left
                assert error.name in known, "T11: another name of the directory says nothing"
        told = {error.name for error in response.errors}
        for name in response.removed:
            # C7: who leaves a name under a wildcard hears of it in any case.
            explained = name in told or name in half.asked
            assert explained or not self.takes_leave(half, name), "F19: a member goes with its reason"

    def serves(self, kind: ResourceType, name: str) -> bool:
        return glob_of(name) is None and isinstance(self.decision(kind, name), Serve)

    def error_text_of_member(self, half: Half, name: str) -> str:
        return self.error_text(half.kind, name) if name in self.due_errors(half) else ""

    def _check(self, response: Respond) -> None:
        half = self.halves[response.kind]
        names, errors, removed = names_of(response), [e.name for e in response.errors], list(response.removed)
        assert response.nonce, "B1"
        assert response.nonce not in self.nonces, "I1, B1"
        self.nonces.add(response.nonce)
        half.last_sent = response.nonce
        assert response.version, "F7"
        if response.heartbeat:
            self._check_heartbeat(half, response)
            return
        assert sorted(set(names)) == names, "D5, E3"
        assert len({*names, *errors}) == len(names) + len(errors), "T2, F3"
        assert len({*names, *removed}) == len(names) + len(removed), "T2, E3"
        assert all(half.covers(name) for name in [*names, *removed]), "I5"
        assert all(half.explains(name) for name in errors), "F4"
        assert not {"", "*"} & set(errors), "T8"
        for error in response.errors:
            assert error.code in {5, 7, 13, 14}, "T3"
            assert 0 < len(error.text) <= 300, "T3"
            assert error.text.isprintable(), "T3"
            assert error.text == self.error_text(response.kind, error.name), "T6: told from the current snapshot"
        assert self.variant is Variant.DELTA or not removed, "D1"
        self._check_farewells(half, response)
        if self._is_full_state(half):
            self._check_full_state(half, response)
        else:
            self._ask_for_members(half)
            self._check_parts(half, response)
        self._check_nothing_breaks_early(half, response)
        self._check_push(half, response)
        self._note(half, response)
        if self.variant is not Variant.DELTA:
            self._check_version(half, response)
        for error in response.errors:
            if self.takes_leave(half, error.name):
                half.sent.pop(error.name)
                half.left.discard(error.name)

    def _check_heartbeat(self, half: Half, response: Respond) -> None:
        assert self.variant is Variant.DELTA, "G3: in SotW a resource without content deletes"
        assert response.resources, "D2"
        assert not response.errors, "G2"
        assert not response.removed, "G2"
        on_the_way = {m.name for r in self.in_flight if r.kind is half.kind and not r.heartbeat for m in r.resources}
        for name, version in versions_of(response).items():
            assert half.covers(name), "I5"
            assert ttl_ms_of(version), "G1"
            assert half.sent.get(name) == version, "G2: the version sent last"
            assert half.acknowledged.get(name) == version, "G2: only what the client acknowledged"
            assert name not in on_the_way, "G2: what is on its way is not held yet"

    def _renewed(self, half: Half, response: Respond) -> set[str]:
        """What is sent once more because it has a ttl: to who refused a heartbeat, or may have dropped it (G2)."""
        told = versions_of(response).items()
        return {name for name, version in told if ttl_ms_of(version) and half.sent.get(name) == version}

    def _check_full_state(self, half: Half, response: Respond) -> None:
        got = versions_of(response)
        for name, decision in self.served(half):
            if name in got:
                continue
            refused = half.rejected.get(name, set())
            assert decision.content.version in refused, "I4, D1: every covered resource that exists"
            assert decision.fallback is None or decision.fallback.version in refused, "D13: proven content stands in"
            assert half.acknowledged.get(name, "") in {"", *refused}, "D13: a working copy never vanishes"
        told = {error.name for error in response.errors if not self.takes_leave(half, error.name)}
        assert told == self.due_errors(half) - got.keys(), "T4, F6: every response repeats every error"
        for name, version in got.items():
            current = self.decision(half.kind, name)
            if isinstance(current, Serve):
                allowed = {current.content.version}
                if current.content.version in half.rejected.get(name, ()):
                    allowed |= {half.acknowledged.get(name, ""), current.fallback.version if current.fallback else ""}
                assert version in allowed, "I4: the current content, or what stands in for what was refused"
            else:
                assert version in {half.sent.get(name), half.acknowledged.get(name)}, (
                    "D14: only what was told stays a little longer"
                )
                gentle = isinstance(current, Withheld | Undecided)
                assert gentle or current in {Missing(removed=True), Missing()}, "S4"
        again = [n for n, v in got.items() if n not in half.asked and v in half.still_rejected.get(n, ())]
        if again:
            assert half.resends_left > 0, (
                "N3: sent again only while suspects are told apart, at most 16 times for a NACK"
            )
            half.resends_left -= 1

    def _check_parts(self, half: Half, response: Respond) -> None:
        for name, version in versions_of(response).items():
            decision = self.decision(half.kind, name)
            if isinstance(decision, Withheld) and name in half.asked:
                assert version in {half.sent.get(name), half.acknowledged.get(name)}, "C7, F18a: its own copy"
                continue
            assert isinstance(decision, Serve), "T6, S4: only what may be served"
            asked = name in half.asked | half.again | half.tolerated or half.asked_all
            if version != decision.content.version:
                own = half.acknowledged.get(name)
                others = decision.fallback.version if decision.fallback is not None else own
                assert version in {own, others}, "F17, F17a"
                assert decision.content.version in half.rejected.get(name, ()), "F17"
                dropped = (self.drops_refused or ttl_ms_of(version)) and version == own
                assert asked or own is None or dropped, "F17, G2: who has a copy keeps it"
            resent = half.sent.get(name) == version and not asked and not ttl_ms_of(version)
            if resent:
                # N3: sent again only while suspects are told apart.
                assert version in half.rejected.get(name, ()), "D6: only changes are sent"
                assert half.resends_left > 0, "N3: at most 16 re-sends for a NACK"
            if name in half.again and name not in half.asked and half.sent.get(name) == version:
                # Neither a changed cluster nor a repeated ask brings back what was refused; isolation does.
                assert version not in half.still_rejected.get(name, ()) or half.resends_left > 0, "N3"
        if any(half.sent.get(n) == version and not ttl_ms_of(version) for n, version in versions_of(response).items()):
            half.resends_left -= 1
        for error in response.errors:
            asked = error.name in half.asked | half.again | half.tolerated
            lost = error.name in half.lost_errors
            new = half.sent.get(error.name) != error.text or error.name in response.removed
            # Members may have come and gone unseen in between.
            assert asked or lost or new or glob_of(error.name) is not None, "F9: once"
        self._check_removals(half, response)

    def _check_removals(self, half: Half, response: Respond) -> None:
        told = {error.name for error in response.errors}
        for name in response.removed:
            assert not isinstance(self.decision(half.kind, name), Serve), "E1"
            withheld = isinstance(self.decision(half.kind, name), Withheld)
            # Who asks what becomes of a name (C7) of which the server knows the version alone can only be told this.
            untold = name in half.asked and name in half.reported
            assert untold or not (withheld and self._has(half, name)), "F18a: what it acknowledged it keeps"
            assert name in told or name not in half.names, "T10, F12: with its error"
        if self.variant is Variant.SOTW:
            return
        for error in response.errors:
            if error.code is StatusCode.UNAVAILABLE:
                assert error.name not in response.removed, "F14: what passes by itself takes nothing away"
                continue
            held = self._has(half, error.name)
            if error.code is StatusCode.INTERNAL and held:
                assert error.name not in response.removed, "F18a: after INTERNAL it goes on with what it has (TP3)"
                continue
            both = half.kind.delta_missing is DeltaMissing.ENTRY_AND_REMOVAL and error.name in half.asked
            if held or both:
                assert error.name in response.removed, "E2, T10: what was delivered is removed"
            if half.kind.delta_missing is DeltaMissing.ENTRY_ONLY and error.name not in half.ever_sent:
                assert error.name not in response.removed, "E2: Envoy waits forever for a route it never had"

    def _has(self, half: Half, name: str) -> bool:
        """Whether the client has something of ours, by what it was sent."""
        return name in half.kept or (name in half.sent and not is_error(half.sent[name]))

    def _check_nothing_breaks_early(self, half: Half, response: Respond) -> None:
        lost = set(response.removed) & {name for name, told in half.sent.items() if not is_error(told)}
        if self._is_full_state(half):
            lost = {name for name, told in half.sent.items() if not is_error(told)} - set(names_of(response))
        lost = {name for name in lost if self.decision(half.kind, name) in (Missing(), Missing(removed=True))}
        lost = (lost & half.acknowledged.keys()) - half.asked - half.again - half.tolerated
        comes = any(half.sent.get(name) != version for name, version in versions_of(response).items())
        if not lost or (half.kind.exclusive and comes):  # protocol.md I6
            return
        for other in self.halves.values():
            if other is half or other.pushes:
                continue
            for name, decision in self.served(other):
                version = decision.content.version
                assert (
                    other.sent.get(name) == version
                    or version in other.rejected.get(name, ())
                    or (other.sent.get(name) is not None and name in other.rejected)
                ), "I1, I10: nothing is taken away while something is to be added"

    def _check_push(self, half: Half, response: Respond) -> None:
        touched = {*names_of(response), *(e.name for e in response.errors), *response.removed}
        full = self._is_full_state(half)
        awaited = half.asked | half.again | half.tolerated | self._renewed(half, response)
        answer = half.asked_all or bool(half.asked if full else touched & awaited)
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
        self._forget_void(half)
        for name, version in versions_of(response).items():
            half.sent[name] = version
            half.ever_sent.add(name)
        for name in response.removed:
            half.sent.pop(name, None)
        half.kept -= {*response.removed, *names_of(response)}
        for error in response.errors:
            passes = error.code in {StatusCode.UNAVAILABLE, StatusCode.INTERNAL}
            if passes and not is_error(half.sent.get(error.name, error.text)):
                half.kept.add(error.name)
            half.sent[error.name] = error.text
        touched = {*names_of(response), *(e.name for e in response.errors), *response.removed}
        half.asked -= touched
        half.again -= touched
        half.tolerated -= touched
        half.lost_errors -= touched
        half.asked_all = False
        endpoints = self.halves.get(ENDPOINT)
        if endpoints is not None and half.kind is CLUSTER:
            behind = {name for name in changed if endpoints.covers(name)}
            due = {n for n in behind if n in endpoints.names or isinstance(self.decision(ENDPOINT, n), Serve)}
            # Who refused what it was sent last and has this still needs nothing, and may be sent it (B12). A member of
            # a collection that is not there has nothing to be sent again (I3).
            due -= {m.content.eds_name for m in response.resources if self._has_for_good(half, m)}
            endpoints.again |= due
            endpoints.tolerated |= behind - due
            # After a NACK the server may take every cluster of the response for new (B12).
            endpoints.tolerated |= {m.content.eds_name for m in response.resources} if half.rejected else set()

    def _has_for_good(self, half: Half, member: NamedContent) -> bool:
        """Whether the client has this content, and nothing else of the name is on its way to it."""
        on_the_way = {
            m.content.version
            for each in self.in_flight
            if each.kind is half.kind
            for m in each.resources
            if m.name == member.name
        }
        return half.held.get(member.name) == member.content.version and on_the_way <= {member.content.version}

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
        bad = {
            member.name
            for member in fact.resources
            if member.content.version in self.poison and half.covers(member.name)
        }
        guilty = {suspect.name for suspect in fact.suspects}
        if self._is_full_state(half) and not self.names_culprits:
            # What others use is suspected last; it is found when nothing else is left to suspect.
            bad = {name for name in bad if not self._is_proven(half, name, held[name])}
        assert bad <= guilty or not bad & held.keys(), "N2: the culprits are among the suspects"
        if self.names_culprits:
            assert guilty <= bad or len(fact.suspects) == 1, "N2: the text narrows"

    def _is_proven(self, half: Half, name: str, version: str) -> bool:
        decision = self.decision(half.kind, name)
        return isinstance(decision, Serve) and decision.fallback is not None and decision.fallback.version == version

    def _all_refused(self, half: Half) -> bool:
        return not half.asked and not half.asked_all and all(name in half.rejected for name in half.again)

    def _check_members_left(self, half: Half) -> None:
        for name in half.sent:
            assert not self.takes_leave(half, name), f"F19: {half.kind.word} {name} is gone without a word"
        for name, text in half.errors.items() if self.reads_errors else ():
            refused = self._is_void(half, name) and not self.takes_leave(half, name)
            due = refused or name in self.due_errors(half)
            # Who refuses what came in its place was told that it is over (F11).
            assert due or name in half.rejected or not passes(text), "F19: no error outlives what it is about"

    def _check_converged(self, half: Half) -> None:
        self._check_members_left(half)
        state = self.published.type_state(half.kind)
        for name in sorted(state.served.keys() | state.partly.keys() | half.names | half.held.keys()):
            if not half.covers(name):
                assert name not in half.held
                continue
            decision = self.decision(half.kind, name)
            if not isinstance(decision, Serve):
                # What a SotW client kept from an earlier stream is not known until it acknowledges something.
                known = name in half.ever_sent or half.ever_acknowledged
                gone = self.variant is Variant.DELTA or (half.kind.full_state and known)
                if isinstance(decision, Undecided) and self.variant is Variant.DELTA:
                    # F14: the client is told an error, and keeps what it has.
                    gone = not half.explains(name)
                copy = half.acknowledged.get(name, "") if isinstance(decision, Withheld) else ""
                if copy:
                    assert self._lost(half, name) or half.held.get(name) == copy, f"F18a: {name} is kept"
                    gone = False
                if isinstance(decision, Withheld) and self.variant is Variant.DELTA:
                    gone = False
                assert not gone or name not in half.held, f"I7: {name} is gone"
                told = not (copy and self._is_full_state(half))
                if self.reads_errors and told and name in self.due_errors(half):
                    assert half.errors.get(name) == self.error_text(half.kind, name), (
                        f"T1, T5: why {name} is not served"
                    )
                continue
            version = decision.content.version
            if version in self.poison:
                self._check_stand_in(half, name, decision)
                continue
            assert name not in half.errors, "T5, F11"
            assert half.held.get(name) == version, f"I7, N5: {half.kind.word} {name} has its content"

    def _lost(self, half: Half, name: str) -> bool:
        """Whether it dropped a copy of which the server knows the version alone (E5)."""
        return self.drops_refused and name in half.reported

    def _check_stand_in(self, half: Half, name: str, decision: Serve) -> None:
        """Law 1, F17, F17a: a client that refuses what is current goes on with what it had, or is given what others
        use.
        """
        had = half.acknowledged.get(name, "")
        if had and had not in self.poison and not self._lost(half, name):
            assert half.held.get(name) == had, f"F17a: {half.kind.word} {name} is what it was before it was refused"
            return
        fallback = decision.fallback.version if decision.fallback is not None else ""
        if self._is_full_state(half) and fallback and fallback not in self.poison:
            assert name in half.held, "D13: last proven content stands in"
