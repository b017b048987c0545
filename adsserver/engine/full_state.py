"""What a client was told as a whole: SotW LDS, CDS and SRDS, where a response holds the full state and absence deletes.

Two things follow from that (D1). What a client refused cannot simply be left out, or its working copy would be deleted:
an overlay puts the last content it acknowledged, or the last any client did, in its place (D13, F17). And a response
that adds would also delete: where other types have something to say first, the names that go stay in it until that was
said (D14, I4).

What was refused of a name is in its state, as elsewhere (`name_state`). Suspects are told apart as elsewhere (decisions
C8), by full states in which part of them is new and the overlay stands in for the rest.
"""

from collections.abc import Iterator
from enum import IntEnum
from operator import itemgetter

from adsserver.engine.body import EMPTY_BODY, Body, Overlay, marks_of
from adsserver.engine.client_view import ClientView
from adsserver.engine.events import Nack, NamedContent
from adsserver.engine.explaining import Explaining
from adsserver.engine.holdings import BodyGround, Holdings, Known, holding_of
from adsserver.engine.ledger import Entry
from adsserver.engine.name_state import DOUBTFUL, Event
from adsserver.engine.refusals import is_refused, stand_in
from adsserver.engine.rejection import Group, Resends, halves, named_by
from adsserver.engine.renewals import Renewals
from adsserver.engine.settings import EngineSettings
from adsserver.engine.subscription import WILDCARD, Subscription
from adsserver.engine.substream import NOTHING, Later, SubStream
from adsserver.engine.told import ABSENT, Absent, Told, same
from adsserver.engine.versions import version_with
from xdscore.errors import ResourceError
from xdscore.holdings import Holding
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content


class StateDue(IntEnum):
    """Why a state is due although the client was told it before; the later ones include the earlier."""

    NOTHING = 0
    # B12: what the client has of a refused response is unknown, so that even a state that was sent before is news.
    MEND = 1
    # F17a: the client may have dropped what it had acknowledged of what it refused.
    HEAL = 2


class FullState(SubStream):
    """One type on a SotW stream whose responses hold everything that is subscribed to: LDS, CDS or SRDS."""

    __slots__ = (
        "_acknowledged_body",
        "_asked",
        "_assembled",
        "_due",
        "_explaining",
        "_guessed",
        "_resends",
        "_told",
        "_told_view",
    )

    def __init__(
        self, kind: ResourceType, settings: EngineSettings, *, heals: bool, renewals: Renewals | None = None
    ) -> None:
        super().__init__(kind, settings, heals=heals, renewals=renewals)
        self.expires = renewals is not None
        self._told_view: ClientView | Absent = ABSENT
        self._told: Body = EMPTY_BODY
        self._acknowledged_body: Body = EMPTY_BODY
        # The state that is current and what it was put together of; and the errors for it, which may be half done.
        self._assembled: tuple[tuple[ClientView, Subscription, Overlay], Body] | None = None
        self._explaining: Explaining | None = None
        # Names that wait for an answer; "*" when the wildcard does.
        self._asked: frozenset[str] = frozenset()
        self._due = StateDue.NOTHING
        self._resends = Resends(settings.limits.isolation_resends)
        # A single suspect that only the fleet's experience speaks against: it may turn out to be innocent.
        self._guessed: Group = ()

    @property
    def dirty(self) -> bool:
        """Whether there may be a response to write; cheap, and true a little too often."""
        return self._told_view is not self.view or bool(self._asked or self._due or self._resends)

    def subscribe(self, subscription: Subscription, asked: frozenset[str]) -> None:
        """The client is subscribed to this from now on, and waits for an answer about the names in `asked`.

        Any added name is answered with the full state (C1, D4), even when it is empty (D3).
        """
        gained = {WILDCARD} if subscription.wildcard and not self.subscription.wildcard else set()
        wanted = subscription.names | ({WILDCARD} if subscription.wildcard else set())
        self.subscription = subscription
        self._asked = (self._asked | asked | gained) & wanted
        # What the client no longer asks for it forgets by itself; no response is due for it (C1).
        self._told = self._told.restricted_to(subscription)
        self._acknowledged_body = self._acknowledged_body.restricted_to(subscription)
        # B7: a change of the subscription is one of the three reasons to send refused content again.
        self._memory.forget_unless(subscription.covers)

    def send_again(self, names: frozenset[str]) -> None:
        """Do nothing: a repeated request (B7) or a changed cluster (I3) repeats names of types that come in parts."""

    def make(self, now: float, *, gently: bool) -> Entry | Later:
        """The next response that answers the client or adds something: the full state."""
        view = self.view
        if isinstance(view, Absent) or not self.dirty:
            return NOTHING
        desired = self._desired(view)
        # The rest of a long list of names as soon as everybody else had a turn.
        return self._added(view, desired, now, gently=gently) if desired is not None else Later(now)

    def _added(self, view: ClientView, desired: Body, now: float, *, gently: bool) -> Entry | Later:
        departed = [name for name in self._memory.doubted if name not in view.named] if self._memory else []
        if departed:
            self._memory.each(departed, Event.DEPARTED)
            self._mend()
        target = desired.transition_from(self._told, view.lets_go_gently).gentle if gently else desired
        if self.kind.exclusive and target.version != self._told.version:
            # I6: what is new or changed may claim what is about to go.
            target = desired
        if not self._fits(target):
            return NOTHING
        if not self._asked and not self._due and target.version == self._told.version:
            if desired.version == target.version:
                self._told, self._told_view = desired, view
                return self._resend_group(view)
            return NOTHING
        due_s = self.ledger.answer_due_s() if self._asked else self.ledger.push_due_s()
        if due_s > now:
            return Later(due_s)
        return self._respond(view, target, settled=target is desired)

    def take_away(self, now: float) -> Entry | Later:
        """The next response that takes something away: the full state without what the client no longer gets."""
        view = self.view
        if isinstance(view, Absent) or self.subscription.empty:
            return NOTHING
        desired = self._desired(view)
        if desired is None:
            return Later(now)
        if desired.version == self._told.version or not self._fits(desired):
            return NOTHING
        due_s = self.ledger.push_due_s()
        if due_s > now:
            return Later(due_s)
        return self._respond(view, desired, settled=True)

    def renew(self, now: float) -> Entry | Later:
        """The state once more, when something in it would run out: a heartbeat would delete it all (G3).

        Only what the client acknowledged, and only where nothing newer waits, for that renews it, too. Who refuses it
        is sent it again in its time nevertheless: else all of it would run out.
        """
        renewals, body = self.renewals, self._told
        if renewals is None or now < renewals.due_s:
            return Later(renewals.due_s) if renewals is not None else NOTHING
        due = renewals.take_due([body.interval_s] if body.interval_s else (), now)
        behind = self.dirty and not self.too_large_bytes
        if not due or behind or not self.ledger.idle:
            return Later(renewals.due_s)
        return Entry(version=body.version, resources=body.resources, changed=(), errors=body.errors, body=body)

    def _mend(self) -> None:
        self._due = max(self._due, StateDue.MEND)

    def _fits(self, body: Body) -> bool:
        """Whether clients can read it: gRPC refuses larger messages, and a full state cannot be split (F23, F24).

        One that does not fit is not sent; the client keeps what it was told last, until the state is smaller.
        """
        self.too_large_bytes = body.size if body.size > self.settings.limits.sotw_state_bytes else 0
        return not self.too_large_bytes

    def _desired(self, view: ClientView) -> Body | None:
        """The state that is current; None: there are many names to look at, the rest of them in the next step."""
        url, overlay = self.settings.public_url, self._overlay(view)
        wanted = (view, self.subscription, overlay)
        if self._assembled is not None and self._assembled[0] == wanted:
            return self._assembled[1]
        body = view.known_body(self.subscription, overlay, url)
        if body is None:
            explaining = self._explaining
            if explaining is None or (explaining.view, explaining.subscription) != wanted[:2]:
                explaining = self._explaining = Explaining(view, self.subscription, self.settings)
            explained = explaining.go_on()
            if explained is None:
                return None
            body = view.body(self.subscription, overlay, url, explained)
        self._assembled = wanted, body
        return body

    def _respond(self, view: ClientView, body: Body, *, settled: bool) -> Entry:
        # F9: gRPC C-core takes an error that is not repeated for a deletion.
        known = frozenset(() if self.settings.repeat_errors else self._told.errors)
        farewells = self._farewells(view, body)
        errors = tuple(error for error in body.errors if error not in known) if known else body.errors
        entry = Entry(
            version=version_with(body.version, marks_of(farewells)) if farewells else body.version,
            resources=body.resources,
            changed=self._changed_by(body, view),
            errors=(*errors, *farewells) if farewells else errors,
            push=not self._asked,
            heal=self._due is StateDue.HEAL and body.version == self._acknowledged_body.version,
            body=body,
        )
        self._asked = frozenset()
        self._due = StateDue.NOTHING
        self._told = body
        if settled:
            self._told_view = view
        return entry

    def _farewells(self, view: ClientView, body: Body) -> tuple[ResourceError, ...]:
        """Why members that the client was told of are not in this state: once, in the response that lets them go (F19).

        Their absence alone would end a resource, but not an error (TP3: remembered until something else is said).
        """
        if not self.subscription.globs:
            return ()
        gone = {*self._told.named, *(error.name for error in self._told.errors)} - body.named.keys()
        url = self.settings.public_url
        said = (
            view.farewell(name, self.subscription, url)
            for name in sorted(gone - {error.name for error in body.errors})
            if self.subscription.in_collection(name)
        )
        return tuple(error for error in said if isinstance(error, ResourceError))

    def _changed_by(self, body: Body, view: ClientView) -> tuple[NamedContent, ...]:
        """What the client may take for new or different: also what it rejected, whichever part of that it applied."""
        changed = body.transition_from(self._told, view.lets_go_gently).changed
        if not self._memory:
            return changed
        doubted = set(self._memory.doubted).difference(member.name for member in changed)
        return changed + tuple(m for m in body.resources if m.name in doubted)

    def _overlay(self, view: ClientView) -> Overlay:
        """What stands in for content this client refused, as long as the view still shows that content (F17)."""
        if not self._memory and not view.withholds_any:
            return ()
        overlay: list[tuple[str, Content | Absent]] = []
        refusals = sorted(self._memory.refusals.items(), key=itemgetter(0)) if self._memory else []
        for name, state in refusals:
            if not is_refused(view, name, state):
                self._memory.happens(name, Event.FIXED)
                if name in view.named:
                    # Who drops what it refuses (A88's fail_on_data_errors) has no copy left: it needs even a state
                    # that is what it acknowledged before.
                    self._mend()
                continue
            # What the client has, or is about to have, comes before what others have.
            held = _content(self._acknowledged_body.named.get(name)), _content(self._told.named.get(name))
            overlay.append((name, stand_in((*held, view.proven(name)), state.refused)))
        # What the client acknowledged it keeps until there is something newer, or it must not have it (F18a): absence
        # would delete it (D1).
        copies = self._acknowledged_body.named
        overlay += [(name, copies[name].content) for name in view.withheld_of(copies)]
        return tuple(sorted(overlay, key=itemgetter(0)))

    def needed(self) -> Iterator[Content]:
        """Content that the client acknowledged and may be sent again, whether or not a snapshot still has it."""
        at_rest = self.ledger.idle and self._told_view is self.view and not self._memory.refusals
        members = () if at_rest else self._acknowledged_body.resources
        return (member.content for member in members)

    def state(self) -> tuple[tuple[NamedContent, ...], tuple[ResourceError, ...]]:
        """All that the client was told and did not refuse: the state that it was told last."""
        return self._told.resources, self._told.errors

    def holdings(self, *, tells: bool) -> Holdings:
        """What the client has of each name. `tells`: whether it is told errors."""
        at_rest = not self._memory and self.ledger.idle and not self.subscription.names
        return Holdings(BodyGround(self._told, tells), {} if at_rest else self._apart(tells=tells))

    def _apart(self, *, tells: bool) -> dict[str, Holding | None]:
        """What the client has of the names of which it may not have what the full state holds."""
        told, had, view = self._told, self._acknowledged_body.named, self.view
        names = set(self._memory.names) if self._memory else set()
        unanswered = not self.ledger.idle
        if unanswered:
            names.update(name for name, member in told.named.items() if had.get(name) is not member)
        errors = {error.name: error for error in told.errors} if names or self.subscription.names else {}
        names.update(name for name in self.subscription.names if name not in told.named and name not in errors)
        apart: dict[str, Holding | None] = {}
        for name in names:
            state = self._memory[name]
            member = told.named.get(name)
            refused = isinstance(view, ClientView) and is_refused(view, name, state)
            known = Known(
                member.content if member is not None else errors.get(name, ABSENT),
                had[name].content if name in had else None,
                view.named[name].content if isinstance(view, ClientView) and refused else None,
                unanswered,
                name in self._resends.undecided,
                state.acceptance in DOUBTFUL,
            )
            apart[name] = holding_of(known, tells=tells)
        return apart

    def _acknowledged(self, entry: Entry) -> None:
        if not entry.passed:
            if self._memory:
                self._memory.each(self._memory.doubted, Event.ACKNOWLEDGED)
            # Of a resource that the client asks for no longer, its ACK says nothing.
            self._acknowledged_body = entry.body.restricted_to(self.subscription)
        for name, state in self._memory.refusals.items() if self._memory else ():
            member = entry.body.named.get(name)
            if member is not None and member.content.version in state.refused:
                # It was suspected with others, and turns out to be good.
                self._memory.happens(name, Event.CLEARED, version=member.content.version)
                self._told_view = ABSENT

        if self._guessed and entry.body.named.keys().isdisjoint(self._guessed):
            # Without the suspect there was nothing to refuse.
            self._resends.undecided = self._resends.undecided.difference(self._guessed)

    def _new_to_client(self, entry: Entry) -> tuple[NamedContent, ...]:
        acknowledged = self._acknowledged_body.named
        # Most members are the acknowledged objects themselves, which need no comparison.
        return tuple(
            member
            for member in entry.resources
            if (before := acknowledged.get(member.name)) is not member and not same(_content(before), member.content)
        )

    def _rejected(
        self, entry: Entry, nack: Nack, changed: tuple[NamedContent, ...], turned: tuple[NamedContent, ...]
    ) -> tuple[NamedContent, ...]:
        named = named_by(self.kind, entry, changed, nack)
        suspects = named or (() if turned else self._unproven(changed) or changed)
        self._look_closer(entry, suspects, guessed=bool(suspects) and not named and len(changed) > 1)
        last = entry.body is self._told
        blamed = Event.NACKED if last else Event.NACKED_LATE
        for member in suspects:
            if self.subscription.covers(member.name):
                self._memory.happens(member.name, blamed, version=member.content.version, acknowledged=ABSENT)
        if not last:
            self._told_view = ABSENT
        elif changed and not suspects:
            # All that it refuses it took before. That is part of every full state, so that nothing is won by sending
            # one more; it decoded before, so that its neighbours were probably applied (B12).
            self._memory.each([member.name for member in changed], Event.IN_COMPANY)
        elif changed:
            # Otherwise what it refuses are our errors, or nothing new: said again, that would be refused again (F8).
            self._go_back(entry, changed, suspects)
        return suspects

    def _go_back(self, entry: Entry, changed: tuple[NamedContent, ...], suspects: tuple[NamedContent, ...]) -> None:
        """The client refused the last state: it counts as told what it acknowledged before, and may be due more."""
        acknowledged = self._acknowledged_body.named
        suspected = {member.name for member in suspects}
        innocent = [member.name for member in changed if member.name not in suspected]
        gone = acknowledged.keys() - entry.body.named.keys()
        self._told = self._acknowledged_body
        self._told_view = ABSENT
        had = any(member.name in acknowledged for member in suspects)
        # The innocent of the response may not have been applied; after a decode failure nothing is (law 1).
        self._due = StateDue.MEND if innocent or gone else StateDue.NOTHING
        if self.heals and had and not self._resends.awaited:
            self._due = StateDue.HEAL
        self._memory.each(innocent, Event.IN_COMPANY)

    def _had(self, entry: Entry, name: str) -> Told:  # noqa: ARG002  a response is the whole state
        return _content(self._acknowledged_body.named.get(name))

    @property
    def _heals_next(self) -> bool:
        return self._due is StateDue.HEAL

    def _unproven(self, changed: tuple[NamedContent, ...]) -> tuple[NamedContent, ...]:
        """What no client ever acknowledged is suspected before what others use.

        On a new stream everything is changed. To suspect all of it would take working resources away, for there a
        stand-in is missing that was not refused itself.
        """
        view = self.view
        if isinstance(view, Absent):
            return ()
        return tuple(member for member in changed if not same(view.proven(member.name), member.content))

    def _look_closer(self, entry: Entry, suspects: tuple[NamedContent, ...], *, guessed: bool) -> None:
        """Plan how the culprit is isolated: which suspects are sent again, together with which others (decisions C8).

        `entry`: the response that was refused; `guessed`: the client's text names none of the suspects.
        """
        groups = halves(suspects) if guessed else []
        if self._guessed:
            # Without it there was something to refuse all the same.
            groups.append(self._guessed)
        self._guessed = tuple(member.name for member in suspects) if guessed and len(suspects) == 1 else ()
        self._resends.plan(groups, suspects, isolating=entry.isolating)
        self._resends.undecided |= frozenset(self._guessed)

    def _resend_group(self, view: ClientView) -> Entry | Later:
        """The full state with the next group of suspects in it; what they are added to was acknowledged before."""
        while group := self._resends.next_group():
            refused = [name for name in group if is_refused(view, name, self._memory[name])]
            if refused and not self.ledger.idle:
                return NOTHING
            self._resends.drop_group()
            if refused:
                self._resends.count()
                for name in refused:
                    self._memory.happens(name, Event.CLEARED, version=view.named[name].content.version)
                while (body := self._desired(view)) is None:
                    pass
                entry = self._respond(view, body, settled=True)
                entry.isolating = True
                return entry
        return NOTHING


def _content(member: NamedContent | None) -> Content | Absent:
    return member.content if member is not None else ABSENT
