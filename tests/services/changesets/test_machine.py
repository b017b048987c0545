"""Change sets and a model of them side by side: whatever people, the sweeper, kills and the clock do, both stand the
same, nothing is published that may not be, and nothing twice.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from unittest import mock

import pytest
from django.db.models import Q
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from controlplane.access.values import Wish
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.freezes import Freeze
from controlplane.catalog.guarding import Consent
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.review import ReviewSettings
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import change_apply, environment_default_ensure, environment_update
from controlplane.catalog.values import Delete, Edit, Put
from controlplane.changesets.selectors import change_set_get
from controlplane.changesets.services import (
    SetChanges,
    Stays,
    Times,
    change_set_approve,
    change_set_cancel,
    change_set_create,
    change_set_edit,
    change_set_publish,
    change_set_reject,
    change_set_schedule,
    change_set_submit,
    change_sets_tick,
)
from controlplane.changesets.values import Merge, Take
from controlplane.common.errors import Conflict, Forbidden, InputInvalid
from controlplane.database import failpoints
from tests.services.changesets.access_model import GROUP, RULE, Access, Base
from tests.support.emptying import database_empty
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody
from xdscore.resource_types import CLUSTER

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"]),
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

PEOPLE = tuple(somebody(name, ADMIN_SCOPES) for name in ("ada", "bob", "cyd"))
WRITER = somebody("pipeline", ADMIN_SCOPES)
NAMES = ("pay", "shop")
POINTS = ("change_set.read", "change_set.locked", "change_set.written")
WHO = st.integers(0, len(PEOPLE) - 1)
CONTENT = st.one_of(st.none(), st.integers(1, 3))
EVERYTHING = (*NAMES, RULE, GROUP)
OF_ACCESS = st.sampled_from((RULE, GROUP))
DOES = st.one_of(
    st.dictionaries(st.sampled_from(NAMES), CONTENT, max_size=2),
    st.dictionaries(OF_ACCESS, st.integers(1, 3), min_size=1, max_size=2),
    st.dictionaries(st.sampled_from(EVERYTHING), CONTENT, max_size=3),
)


class Died(BaseException):
    """The process is gone. No handler of the product may see it."""


@dataclass
class Proposed:
    """What the model knows of a change set. `does`: what each name becomes (None: deleted), and the revision it was
    made from; of the rule and the group, the row and the number of its edits.
    """

    id: str
    does: dict[str, tuple[int | None, int | Base]]
    authors: set[int]
    state: str = "draft"
    approved_by: set[int] = field(default_factory=set)
    not_before: datetime | None = None
    expires: datetime | None = None


class ChangeSets(RuleBasedStateMachine):
    """Three people, one environment with two clusters, a rule and a group, some change sets."""

    sets: Bundle[Proposed] = Bundle("sets")

    @initialize(required=st.booleans(), self_approval=st.booleans())
    def start(self, required: bool, self_approval: bool) -> None:
        self.now = datetime(2026, 11, 2, 12, tzinfo=UTC)
        self.clock = mock.patch("django.utils.timezone.now", side_effect=lambda: self.now)
        self.clock.start()
        database_empty("default")
        environment_default_ensure()
        self.review = ReviewSettings()
        self.frozen = False
        self.held = ""
        self.counters = dict.fromkeys(NAMES, 0)
        self.contents: dict[str, int | None] = dict.fromkeys(NAMES)
        self.known: list[Proposed] = []
        self.access = Access(WRITER)
        self.written = 1
        self.settings_change(required, 1, self_approval)

    def teardown(self) -> None:
        failpoints.arm()
        if hasattr(self, "clock"):
            self.clock.stop()

    # The model

    def revision(self, name: str) -> int | Base:
        if name in self.access.rows:
            return self.access.rows[name].base()
        return self.counters[name] if self.contents[name] is not None else 0

    def moved(self, one: Proposed) -> bool:
        return any(self.name_moved(name, base) for name, (_, base) in one.does.items())

    def name_moved(self, name: str, base: int | Base) -> bool:
        return self.access.rows[name].moved(base) if isinstance(base, tuple) else base != self.revision(name)

    def possible(self, does: dict[str, int | None], one: Proposed | None = None) -> dict[str, int | None]:
        """What a set may be drafted of: nothing of a rule that is gone, unless it has it already."""
        known = RULE in does and (self.content(RULE) is not None or (one is not None and RULE in one.does))
        return {name: content if name != RULE or known else None for name, content in does.items()}

    def content(self, name: str) -> int | None:
        return self.access.rows[name].content if name in self.access.rows else self.contents[name]

    def is_over(self, one: Proposed) -> bool:
        return one.expires is not None and one.expires <= self.now

    def shown(self, one: Proposed) -> str:
        if one.state in ("published", "rejected"):
            return one.state
        return "expired" if self.is_over(one) else "stale" if self.moved(one) else one.state

    def is_approved(self, one: Proposed) -> bool:
        return len(one.approved_by) >= self.review.approvals

    def rested(self, one: Proposed) -> str:
        return "approved" if self.is_approved(one) else "draft"

    def may_publish(self, one: Proposed) -> bool:
        return self.shown(one) in ("draft", "approved", "scheduled") and (
            not self.review.required or self.is_approved(one)
        )

    def write(self, name: str, content: int | None) -> bool:
        """The catalogue after one edit of a cluster; returns whether that changed anything."""
        if self.contents[name] == content:
            return False
        self.contents[name] = content
        self.counters[name] += 1
        return True

    def publish(self, one: Proposed) -> None:
        changes = [
            self.access.rows[name].write(content, base[0]) if isinstance(base, tuple) else self.write(name, content)
            for name, (content, base) in one.does.items()
        ]
        self.written += any(changes)
        one.state = "published"

    # What people do

    @rule(target=sets, who=WHO, does=DOES, expires=st.one_of(st.none(), st.integers(1, 60)))
    def create(self, who: int, does: dict[str, int | None], expires: int | None) -> Proposed:
        until = self.now + timedelta(minutes=expires) if expires else None
        does = self.possible(does)
        made = change_set_create(
            environment_key="default",
            title="a change",
            edits=edits(does),
            wishes=self.wishes(does),
            times=Times(None, until),
            actor=PEOPLE[who],
        )
        does_from = {name: (content, self.revision(name)) for name, content in does.items()}
        one = Proposed(made, does_from, {who}, expires=until)
        self.known.append(one)
        return one

    @rule(one=sets, who=WHO, does=DOES, forever=st.booleans())
    def edit(self, one: Proposed, who: int, does: dict[str, int | None], forever: bool) -> None:
        does = self.possible(does, one)
        changes = SetChanges(edits=edits(does), wishes=self.wishes(does), expires=None if forever else Stays.AS_IT_IS)
        if one.state == "published":
            self.refused(lambda: change_set_edit(public_id=one.id, changes=changes, actor=PEOPLE[who]))
            return
        changed = change_set_edit(public_id=one.id, changes=changes, actor=PEOPLE[who])
        after = {
            name: (content, one.does[name][1] if name in one.does else self.revision(name))
            for name, content in does.items()
        }
        assert changed == (after != one.does or (forever and one.expires is not None))
        one.expires = None if forever else one.expires
        one.does = after
        if changed:
            self.is_edited(one, who)

    def wishes(self, does: dict[str, int | None]) -> list[Wish]:
        return [self.access.wish(name, content) for name, content in does.items() if name in self.access.rows]

    @rule(one=sets, who=WHO, name=st.sampled_from(EVERYTHING), take=st.sampled_from(list(Take)))
    def merge(self, one: Proposed, who: int, name: str, take: Take) -> None:
        word = {RULE: "rule", GROUP: "group"}.get(name, "cluster")
        known = self.access.named(name) if name in self.access.rows else name
        changes = SetChanges(merges=[Merge(word, known, take)])
        if one.state == "published" or name not in one.does:
            self.refused(lambda: change_set_edit(public_id=one.id, changes=changes, actor=PEOPLE[who]))
            return
        if change_set_edit(public_id=one.id, changes=changes, actor=PEOPLE[who]):
            self.is_edited(one, who)
        content, base = one.does.pop(name)
        if take is Take.OURS:
            kept = self.access.rows[name].ours(base) if isinstance(base, tuple) else self.revision(name)
            one.does[name] = (content, kept)

    def is_edited(self, one: Proposed, who: int) -> None:
        one.state = "draft"
        one.approved_by = set()
        one.authors.add(who)

    @rule(one=sets, who=WHO)
    def submit(self, one: Proposed, who: int) -> None:
        def do() -> bool:
            return change_set_submit(public_id=one.id, actor=PEOPLE[who])

        if self.shown(one) == "review":
            assert do() is False
        elif self.shown(one) == "draft" and one.does:
            assert do()
            one.state, one.approved_by = "review", set()
        else:
            self.refused(do)

    @rule(one=sets, who=WHO)
    def approve(self, one: Proposed, who: int) -> None:
        def do() -> bool:
            return change_set_approve(public_id=one.id, actor=PEOPLE[who])

        if self.shown(one) not in ("review", "approved", "scheduled") or (
            who in one.authors and not self.review.self_approval
        ):
            self.refused(do)
            return
        assert do() == (who not in one.approved_by)
        new = who not in one.approved_by
        one.approved_by.add(who)
        if new and one.state == "review" and self.is_approved(one):
            one.state = "approved"

    @rule(one=sets, who=WHO)
    def reject(self, one: Proposed, who: int) -> None:
        def do() -> bool:
            return change_set_reject(public_id=one.id, reason="no", actor=PEOPLE[who])

        if self.shown(one) == "rejected":
            assert do() is False
        elif self.shown(one) in ("review", "approved", "scheduled", "stale"):
            assert do()
            one.state = "rejected"
        else:
            self.refused(do)

    @rule(one=sets, who=WHO)
    def cancel(self, one: Proposed, who: int) -> None:
        def do() -> bool:
            return change_set_cancel(public_id=one.id, actor=PEOPLE[who])

        if self.shown(one) == "published":
            self.refused(do)
        elif self.shown(one) == "draft":
            assert do() is False
        else:
            assert do()
            one.state = self.rested(one) if one.state == "scheduled" else "draft"

    @rule(one=sets, who=WHO, minutes=st.integers(0, 30))
    def schedule(self, one: Proposed, who: int, minutes: int) -> None:
        at = self.now + timedelta(minutes=minutes)

        def do() -> bool:
            return change_set_schedule(public_id=one.id, not_before=at, actor=PEOPLE[who])

        if not self.may_publish(one) or (one.expires is not None and one.expires <= at):
            self.refused(do)
            return
        do()
        one.state, one.not_before = "scheduled", at

    @rule(one=sets, who=WHO, breaks=st.booleans(), dies=st.one_of(st.none(), st.sampled_from(POINTS)))
    def publish_now(self, one: Proposed, who: int, breaks: bool, dies: str | None) -> None:
        def do() -> bool:
            consent = Consent(break_glass="fire" if breaks else "")
            return change_set_publish(public_id=one.id, actor=PEOPLE[who], consent=consent) is not None

        with dying_at(dies):
            try:
                if one.state == "published":
                    assert do() is False
                elif not self.may_publish(one) or self.held or (self.frozen and not breaks and self.differs(one)):
                    self.refused(do)
                else:
                    assert do()
                    self.publish(one)
            except Died:
                pass  # and nothing of it is there

    def differs(self, one: Proposed) -> bool:
        """Whether publishing it would change anything: what is so already is refused by nobody."""
        return any(self.content(name) != content for name, (content, _) in one.does.items())

    # What others do

    @rule(name=OF_ACCESS, content=st.sampled_from((1, 2, 3, None)))
    def write_access_directly(self, name: str, content: int | None) -> None:
        self.written += self.access.write_directly(name, content)

    @rule(name=st.sampled_from(NAMES), content=CONTENT)
    def write_directly(self, name: str, content: int | None) -> None:
        consent = Consent(break_glass="fire")
        if self.held:
            return
        made = change_apply(environment_key="default", edits=edits({name: content}), actor=WRITER, consent=consent)
        assert made.changed == self.write(name, content)
        self.written += made.changed

    @rule(required=st.booleans(), approvals=st.integers(1, 2), self_approval=st.booleans())
    def settings_change(self, required: bool, approvals: int, self_approval: bool) -> None:
        self.review = ReviewSettings(required, approvals, self_approval)
        self.policy(review=self.review)

    @rule(frozen=st.booleans())
    def freeze(self, frozen: bool) -> None:
        self.frozen = frozen
        ever = Freeze("ever", self.now - timedelta(days=9), self.now + timedelta(days=9))
        self.policy(freezes=(ever,) if frozen else ())

    @rule(held=st.booleans())
    def hold(self, held: bool) -> None:
        self.held = "wait" if held else ""
        self.policy(hold=self.held)

    def policy(self, **changes: object) -> None:
        before = environment_get(key="default").policy
        after = replace(before, **changes)  # type: ignore[arg-type]  # as each caller has it
        environment_update(key="default", policy=after, before=before, actor=WRITER)

    @rule(minutes=st.integers(1, 40))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(dies=st.one_of(st.none(), st.sampled_from(POINTS)))
    def sweep(self, dies: str | None) -> None:
        with dying_at(dies):
            try:
                change_sets_tick()
            except Died:
                # It did what it did for those that came first: another one goes on.
                failpoints.arm()
                change_sets_tick()
        due = [each for each in self.known if each.state == "scheduled" and each.not_before and not self.is_over(each)]
        for one in sorted(due, key=lambda each: (each.not_before, self.known.index(each))):
            if one.not_before is not None and one.not_before <= self.now:
                self.is_due(one)
        for one in self.known:
            if one.state == "scheduled" and self.is_over(one):
                one.state = self.rested(one)

    def is_due(self, one: Proposed) -> None:
        if self.moved(one):
            one.state = self.rested(one)
        elif self.held or self.frozen:
            return
        elif self.review.required and not self.is_approved(one):
            one.state = self.rested(one)
        else:
            self.publish(one)

    # What holds always

    @invariant()
    def both_stand_the_same(self) -> None:
        for one in getattr(self, "known", ()):
            detail = change_set_get(public_id=one.id)
            assert (detail.view.state, detail.view.approvals) == (self.shown(one), len(one.approved_by)), one
            held = {(each.name, each.base) for each in detail.entries}
            held |= {(each.wish.name, each.base) for each in detail.wishes}
            assert held == {
                (self.access.named(name), base[1]) if isinstance(base, tuple) else (name, base)
                for name, (_, base) in one.does.items()
            }

    @invariant()
    def the_catalogue_is_what_was_published(self) -> None:
        if not hasattr(self, "known"):
            return
        rows = {row.name: row.counter for row in Resource.objects.all()}
        assert rows == {name: counter for name, counter in self.counters.items() if counter}
        self.access.check()
        wrote = Q(revisions__isnull=False) | Q(access_edits__isnull=False)
        assert Change.objects.filter(wrote).distinct().count() == self.written

    @staticmethod
    def refused(do: object) -> None:
        assert callable(do)
        with pytest.raises((Conflict, Forbidden, InputInvalid)):
            do()


def edits(does: dict[str, int | None]) -> list[Edit]:
    return [
        Delete(CLUSTER, name, missing_ok=True)
        if content is None
        else Put(parsed(cluster(name, connect_timeout=f"{content}s")))
        for name, content in does.items()
        if name in NAMES
    ]


@contextmanager
def dying_at(point: str | None) -> Iterator[None]:
    def reached(name: str) -> None:
        if name == point:
            raise Died

    failpoints.arm(reached)
    try:
        yield
    finally:
        failpoints.arm()


def test_change_sets__whatever_happens__stand_as_the_model_and_are_published_once() -> None:
    run_state_machine_as_test(
        ChangeSets,
        settings=settings(
            max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
