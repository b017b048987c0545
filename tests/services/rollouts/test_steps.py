"""Steps: more and more clients, and what people may do about them."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.models import ApiToken
from controlplane.accounts.principal import ADMIN_SCOPES, Principal
from controlplane.accounts.token_rules import TokenKind
from controlplane.catalog.models import CandidateSide, Change, Environment, Quarantine, Revision
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import Terms, change_apply
from controlplane.catalog.values import Put
from controlplane.common.errors import Conflict, Forbidden, NotFound
from controlplane.common.principal_ids import PrincipalId, PrincipalKind
from controlplane.database import failpoints
from controlplane.database.aliases import READER
from controlplane.rollouts.judge import judge
from controlplane.rollouts.models import Rollout, RolloutVerdict
from controlplane.rollouts.selectors import (
    client_side,
    preview,
    rollout_clients,
    rollout_open,
    rollout_verdicts,
    rollouts_of,
    rollouts_of_change,
    stops_of_changes,
)
from controlplane.rollouts.services import (
    rollout_abort,
    rollout_advance,
    rollout_approve,
    rollout_pause,
    rollout_reject,
    rollout_resume,
    rollout_tick,
)
from controlplane.rollouts.services.keeping import facts_unpack
from controlplane.rollouts.stored import rules_of, settings_of
from controlplane.rollouts.values import ClientState, Outcome, ResourceOutcome, RolloutState, Why
from controlplane.snapshots.rollback import environment_rollback
from tests.services.rollouts.clients import DANA, GO, OPAL, Fleet, environment_id, go_on, rollout_now, switch_on, write
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody
from xdscore.sides import Side

pytestmark = [pytest.mark.django_db(transaction=True, databases=["default", READER])]

STEPS = [{"clients": 1}, {"clients": 3}, {"percent": 100}]


def version(name: str, number: int) -> str:
    return Revision.objects.get(resource__name=name, number=number).version


def begun(fleet: Fleet, *, clients: int = 5, **settings: object) -> str:
    """A fleet that has r1 of `pay`, and a rollout of r2 that is open; the id of the change."""
    for number in range(clients):
        fleet.join(f"node-{number}")
    write(cluster("pay"))
    go_on(fleet)
    switch_on(**{"mode": "steps", "steps": STEPS, **settings})
    return write(cluster("pay", connect_timeout="2s"))


def act(what: Callable[..., bool], *, actor: Principal = OPAL, **more: int) -> bool:
    return what(public_id=rollout_now().id, reason="because", actor=actor, **more)


def has_new(fleet: Fleet) -> int:
    return sum(each == version("pay", 2) for each in fleet.has("pay").values())


def test_steps__all_take_it__more_and_more_have_it_until_all_do(fleet: Fleet) -> None:
    begun(fleet)
    had: list[int] = []

    def look() -> bool:
        had.append(has_new(fleet))
        return False

    go_on(fleet, until=look)

    assert sorted({1, 3, 5} & set(had)) == [1, 3, 5]
    assert had == sorted(had)
    view = rollout_now()
    assert view.state is RolloutState.DONE
    assert [step.outcome for step in view.steps] == [Outcome.PASS] * 3
    assert [step.meant for step in view.steps] == [1, 3, 5]
    points = rollout_verdicts(public_id=view.id)
    assert {point.step for point in points} == {1, 2, 3}
    assert points[-1].counts.acked == 5
    kept = RolloutVerdict.objects.exclude(facts=b"").order_by("pk")
    row = Rollout.objects.get()
    again = [judge(facts_unpack(bytes(each.facts)), rules_of(settings_of(row), each.step)).outcome for each in kept]
    assert again == [Outcome.PASS] * 3  # R11: the same facts give the same verdict


def test_steps__nobody_asks_for_it__a_person_decides(fleet: Fleet) -> None:
    fleet.join("node", "shop")
    write(cluster("shop"), cluster("pay"))
    go_on(fleet)
    switch_on(mode="steps", steps=STEPS)
    write(cluster("pay", connect_timeout="2s"))

    go_on(fleet)

    view = rollout_now()
    assert (view.state, view.outcome) == (RolloutState.WAITING, Outcome.INCONCLUSIVE)
    assert view.reasons == ("0 of 1 client in the cohort ask for the cluster 'pay'",)
    for _ in STEPS:
        act(rollout_advance)
        go_on(fleet)
    assert rollout_now().state is RolloutState.DONE


def test_advance__called_twice__goes_one_step(fleet: Fleet) -> None:
    begun(fleet, steps=[{"clients": 1, "bake": "1h"}, {"clients": 3, "bake": "1h"}, {"percent": 100}])
    go_on(fleet)
    assert rollout_now().waits_for.startswith("the 3600 s to be over")

    assert act(rollout_advance)
    assert not act(rollout_advance)
    go_on(fleet)

    assert (rollout_now().step, has_new(fleet)) == (2, 3)


def test_pause__clients_answer__nothing_moves_until_it_is_resumed(fleet: Fleet) -> None:
    begun(fleet)
    go_on(fleet, until=Rollout.objects.exists)

    assert act(rollout_pause)
    assert not act(rollout_pause)
    go_on(fleet)
    assert (rollout_now().state, has_new(fleet)) == (RolloutState.PAUSED, 1)
    with pytest.raises(Conflict, match="paused"):
        act(rollout_advance)

    assert act(rollout_resume)
    assert not act(rollout_resume)
    go_on(fleet)
    assert rollout_now().state is RolloutState.DONE


def test_advance_and_approve__of_a_step_that_is_over__change_nothing_and_of_one_to_come_are_refused(
    fleet: Fleet,
) -> None:
    approved = [{"clients": number, "approve": True} for number in (1, 2)]
    begun(fleet, steps=[*approved, {"percent": 100}])
    go_on(fleet)
    assert act(rollout_approve, step=1)
    go_on(fleet)
    now_at = Rollout.objects.get().step

    again = act(rollout_approve, step=1), act(rollout_advance, step=1)
    for ahead in (rollout_approve, rollout_advance):
        with pytest.raises(Conflict, match="is at step 2, not at 3"):
            act(ahead, step=3)

    assert (now_at, Rollout.objects.get().step) == (1, 1)
    assert again == (False, False)


def test_approve__a_step_asks_for_it__goes_on_after_it(fleet: Fleet) -> None:
    begun(fleet, steps=[{"clients": 1, "approve": True}, {"percent": 100}], four_eyes=True)
    go_on(fleet)
    view = rollout_now()
    assert (view.state, view.waits_for) == (RolloutState.WAITING, "a person to approve this step")

    with pytest.raises(Forbidden, match="four eyes"):
        act(rollout_approve, actor=DANA)
    assert act(rollout_approve)
    assert not act(rollout_approve)
    go_on(fleet)

    view = rollout_now()
    assert view.state is RolloutState.DONE
    assert view.steps[0].approvals == ("opal",)
    with pytest.raises(Conflict, match="cannot approve any more"):
        act(rollout_approve)


def test_tick__a_rollout_waits_for_a_person_and_nothing_is_new__looks_and_locks_nothing(fleet: Fleet) -> None:
    begun(fleet, steps=[{"clients": 1, "approve": True}, {"percent": 100}])
    go_on(fleet)
    assert rollout_now().state is RolloutState.WAITING

    with CaptureQueriesContext(connection) as queries:
        rollout_tick(environment_id=environment_id())

    assert queries.captured_queries
    assert [each["sql"] for each in queries.captured_queries if not each["sql"].startswith("SELECT")] == []


def test_approve__four_eyes__whoever_wrote_any_of_it_is_refused_also_by_another_token(fleet: Fleet) -> None:
    dana = User.objects.create(username="dana")
    own = [
        ApiToken.objects.create(
            name=name, name_space=name, kind=TokenKind.PERSONAL.value, owner=dana, prefix=name, digest=name
        )
        for name in ("ci", "laptop")
    ]
    wrote, approves = (
        Principal(f"token:{each.name}", ADMIN_SCOPES, PrincipalId(PrincipalKind.TOKEN, each.pk)) for each in own
    )
    person = Principal("dana, renamed", ADMIN_SCOPES, PrincipalId(PrincipalKind.USER, dana.pk))
    fleet.join("node")
    write(cluster("pay"))
    go_on(fleet)
    switch_on(mode="steps", steps=[{"clients": 1, "approve": True}, {"percent": 100}], four_eyes=True)
    for actor, timeout in ((wrote, "2s"), (OPAL, "3s")):  # one writes over what the other wrote
        edits = [Put(parsed(cluster("pay", connect_timeout=timeout)))]
        change_apply(environment_key="default", edits=edits, actor=actor, message="why")
    go_on(fleet)

    for actor in (wrote, approves, person, OPAL):
        with pytest.raises(Forbidden, match="four eyes"):
            act(rollout_approve, actor=actor)
    assert act(rollout_approve, actor=somebody("eve", ADMIN_SCOPES))


def test_reject__a_step_asks_for_a_word__takes_everything_back(fleet: Fleet) -> None:
    change = begun(fleet, steps=[{"clients": 1, "approve": True}, {"percent": 100}])
    go_on(fleet)

    assert act(rollout_reject)
    assert not act(rollout_reject)
    go_on(fleet)

    view = rollout_now()
    assert (view.state, view.ended_because) == (RolloutState.ABORTED, "opal said no: because")
    assert has_new(fleet) == 0
    assert stops_of_changes(change_ids=[change])[change].reverted[0].name == "pay"


def test_abort__in_the_middle__takes_everything_back_as_one_change(fleet: Fleet) -> None:
    begun(fleet, steps=[{"clients": 3, "bake": "1h"}, {"percent": 100}])
    go_on(fleet)
    assert has_new(fleet) == 3

    assert act(rollout_abort)
    assert not act(rollout_abort)
    go_on(fleet)

    view = rollout_now()
    assert view.state is RolloutState.ABORTED
    assert has_new(fleet) == 0
    change = Change.objects.latest("generation")
    assert (change.kind, change.message) == (
        "rollback",
        f"{view.label} took back cluster 'pay': opal aborted it: because",
    )
    assert Quarantine.objects.get(released_at=None).cause == "rollout"
    with pytest.raises(Conflict, match="cannot pause any more"):
        act(rollout_pause)


def test_rollout__the_environment_is_rolled_back__is_aborted(fleet: Fleet) -> None:
    begun(fleet, steps=[{"clients": 3, "bake": "1h"}, {"percent": 100}])
    go_on(fleet)
    before = Environment.objects.get(key="default").epoch - 1

    environment_rollback(environment_key="default", to_epoch=before, reason="no", hold=False, actor=OPAL)
    go_on(fleet)

    view = rollout_now()
    assert (view.state, view.ended_because) == (RolloutState.ABORTED, "the environment was rolled back meanwhile")
    assert set(fleet.has("pay").values()) == {version("pay", 1)}
    assert not CandidateSide.objects.exists()


def test_rollout__the_environment_is_on_hold__does_not_go_on(fleet: Fleet) -> None:
    begun(fleet)
    go_on(fleet, until=Rollout.objects.exists)
    Environment.objects.update(hold_reason="a bad day")

    go_on(fleet)

    assert (rollout_now().waits_for, has_new(fleet)) == ("the environment's hold to be released", 1)
    Environment.objects.update(hold_reason="")
    go_on(fleet)
    assert rollout_now().state is RolloutState.DONE


def test_rollout__what_it_holds_is_written_again__asks_for_the_new_content_and_for_approvals(fleet: Fleet) -> None:
    begun(fleet, steps=[{"clients": 2, "approve": True, "bake": "1h"}, {"percent": 100}])
    go_on(fleet)
    act(rollout_approve)

    joined = write(cluster("pay", connect_timeout="3s"), cluster("shop"))
    go_on(fleet)

    view = rollout_now()
    assert [(each.name, each.to_revision) for each in view.resources] == [("pay", 3), ("shop", 1)]
    assert view.steps[0].approvals == ()
    assert rollouts_of_change(change_id=joined) == (view.id,)
    assert len(fleet.saw("pay", version("pay", 3))) == len(fleet.saw("shop", version("shop", 1))) == 2


def test_rollout__something_else_is_written__waits_for_the_next_one(fleet: Fleet) -> None:
    begun(fleet, steps=[{"clients": 2, "bake": "1h"}, {"percent": 100}])
    go_on(fleet)

    write(cluster("shop"))
    go_on(fleet)
    assert fleet.has("shop") == {}
    act(rollout_advance)
    go_on(fleet)

    assert len(rollouts_of(environment_key="default").rows) == 2
    assert [each.name for each in rollout_now().resources] == ["shop"]


def test_rollout__its_change_is_forced__everybody_has_it_and_it_is_over(fleet: Fleet) -> None:
    begun(fleet, steps=[{"clients": 2, "bake": "1h"}, {"percent": 100}])
    go_on(fleet)

    now = Put(parsed(cluster("pay", connect_timeout="9s")))
    change_apply(environment_key="default", edits=[now], actor=OPAL, terms=Terms(staged=False))
    go_on(fleet)

    assert rollout_now().state is RolloutState.DONE
    assert set(fleet.has("pay").values()) == {version("pay", 3)}


def test_rollout__the_database_went_back__waits_for_a_person(fleet: Fleet) -> None:
    begun(fleet, steps=[{"clients": 2, "bake": "1h"}, {"percent": 100}])
    go_on(fleet)
    Environment.objects.update(lineage="11111111-1111-1111-1111-111111111111")

    go_on(fleet)
    view = rollout_now()
    assert view.state is RolloutState.PAUSED
    assert "went back" in view.paused_because

    act(rollout_resume)
    go_on(fleet)
    assert rollout_now().state is RolloutState.RUNNING


def test_rollout__the_database_went_back_while_a_worker_judged__is_not_moved_by_it(fleet: Fleet) -> None:
    begun(fleet)
    went_back = "11111111-1111-1111-1111-111111111111"

    def notice(name: str) -> None:
        if name == "rollout.judged" and Rollout.objects.filter(step=1).exists():
            Environment.objects.update(lineage=went_back)

    failpoints.arm(notice)
    go_on(fleet)
    failpoints.arm()

    view = rollout_now()
    assert (view.state, view.step) == (RolloutState.PAUSED, 2)  # counted from 1


def test_rollout__the_database_went_back_and_nothing_is_left_of_it__is_over(fleet: Fleet) -> None:
    begun(fleet, steps=[{"clients": 2, "bake": "1h"}, {"percent": 100}])
    go_on(fleet)
    now = Put(parsed(cluster("pay", connect_timeout="9s")))
    change_apply(environment_key="default", edits=[now], actor=OPAL, terms=Terms(staged=False))
    Environment.objects.update(lineage="11111111-1111-1111-1111-111111111111")

    go_on(fleet)

    assert rollout_now().state is RolloutState.DONE


def test_advance__the_environment_was_rolled_back__conflict_and_the_rollout_is_aborted(fleet: Fleet) -> None:
    begun(fleet, steps=[{"clients": 3, "bake": "1h"}])
    go_on(fleet)
    before = Environment.objects.get(key="default").epoch - 1
    environment_rollback(environment_key="default", to_epoch=before, reason="no", hold=False, actor=OPAL)

    with pytest.raises(Conflict, match="nothing left that differs"):
        act(rollout_advance)
    go_on(fleet)

    assert rollout_now().state is RolloutState.ABORTED


def test_selectors__a_rollout_is_open__say_who_is_where_and_why(fleet: Fleet) -> None:
    begun(fleet, steps=[{"clients": 2, "bake": "1h"}, {"percent": 100}])
    go_on(fleet)

    view = rollout_open(environment_key="default")
    assert view is not None
    inside = rollout_clients(public_id=view.id, limit=1)
    more = rollout_clients(public_id=view.id, after=inside.after)
    outside = rollout_clients(public_id=view.id, side=Side.STABLE)

    assert (view.counts.cohort, view.counts.acked, view.control) == (2, 2, 3)
    assert [kind.counts.acked for kind in view.kinds] == [2]
    assert len(inside.rows) == len(more.rows) == 1
    assert inside.rows[0].state is ClientState.TAKEN
    assert {row.why for row in (*inside.rows, *more.rows)} == {Why.PILOT, Why.STEP}
    assert len(outside.rows) == 3
    side = client_side(environment_key="default", client_id=inside.rows[0].client)
    assert side is not None
    assert (side.side, side.because) == (Side.CANDIDATE, inside.rows[0].because)
    assert client_side(environment_key="default", client_id=outside.rows[0].client).side is Side.STABLE  # type: ignore[union-attr]
    with pytest.raises(NotFound):
        rollout_clients(public_id="no")


def test_preview__settings_of_steps__say_who_would_be_first(fleet: Fleet) -> None:
    for number in range(5):
        fleet.join(f"node-{number}")
        fleet.join(f"go-{number}", "pay", agent=GO)
    write(cluster("pay"))
    go_on(fleet)
    switch_on(mode="steps", steps=[{"kinds": 1}, {"percent": 100}])

    found = preview(environment_key="default", settings=environment_get(key="default").policy.rollout)

    assert (found.connected, dict(found.kinds)) == (10, {"envoy 1.40": 5, "grpc-go 1.66": 5})
    assert [(step.meant, len(step.clients)) for step in found.steps] == [(2, 2), (10, 8)]
    assert {client.kind for client in found.steps[0].clients} == {"envoy 1.40", "grpc-go 1.66"}


def test_failure__the_environment_aborts__takes_everything_back(fleet: Fleet) -> None:
    for number in range(3):
        fleet.join(f"node-{number}")
    write(cluster("pay"), cluster("shop"))
    go_on(fleet)
    for member in fleet.members.values():
        member.refuses = frozenset({"pay"})
    switch_on(on_failure="abort")

    write(cluster("pay", connect_timeout="2s"), cluster("shop", connect_timeout="2s"))
    go_on(fleet)

    view = rollout_now()
    assert view.state is RolloutState.ABORTED
    assert {each.outcome for each in view.resources} == {ResourceOutcome.REVERTED}
    assert set(fleet.has("shop").values()) == {version("shop", 1)}
