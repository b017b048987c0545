"""Pilots that die, leave or say nothing (R9, R10)."""

import pytest

from controlplane.catalog.models import Quarantine, Revision
from controlplane.clients.clock import database_now
from controlplane.clients.ended import streams_ended
from controlplane.clients.models import Stream
from controlplane.clients.services.upkeep import DIED
from controlplane.database.aliases import READER
from controlplane.rollouts.models import Rollout
from controlplane.rollouts.selectors import rollout_clients
from controlplane.rollouts.services import rollout_tick, ticking
from controlplane.rollouts.values import ClientState, Outcome, RolloutState, Why
from tests.services.rollouts.clients import (
    GO,
    Fleet,
    environment_id,
    go_on,
    later,
    rollout_now,
    switch_on,
    write,
)
from tests.support.manifests import cluster
from tests.support.waiting import eventually

pytestmark = [pytest.mark.django_db(transaction=True, databases=["default", READER])]


def version(name: str, number: int) -> str:
    return Revision.objects.get(resource__name=name, number=number).version


def begin(fleet: Fleet, clients: int, **settings: object) -> None:
    for number in range(clients):
        fleet.join(f"node-{number}")
    write(cluster("pay"))
    go_on(fleet)
    switch_on(**settings)


def states(view_id: str) -> list[ClientState]:
    return sorted(row.state for row in rollout_clients(public_id=view_id).rows)


def test_pilot__it_dies_of_what_it_is_sent__so_does_a_second_and_nobody_else(fleet: Fleet) -> None:
    begin(fleet, 5)
    for member in fleet.members.values():
        member.dies = frozenset({"pay"})

    write(cluster("pay", connect_timeout="2s"))
    go_on(fleet)

    view = rollout_now()
    assert len(fleet.members) == 3
    assert (view.state, view.outcome) == (RolloutState.REVERTED, Outcome.FAIL)
    assert view.reasons == (
        "streams of envoy 1.40 ended 2 times after they were sent the cluster 'pay' and before they answered",
    )
    assert states(view.id) == [ClientState.LOST, ClientState.LOST]
    assert set(fleet.has("pay").values()) == {version("pay", 1)}
    assert Quarantine.objects.get(released_at=None).cause == "rollout"


def test_pilot__it_dies_once_by_chance__another_takes_it_and_all_have_it(fleet: Fleet) -> None:
    begin(fleet, 5)
    write(cluster("pay", connect_timeout="2s"))
    for member in fleet.members.values():
        member.dies = frozenset({"pay"})

    go_on(fleet, until=lambda: len(fleet.members) < 5)
    for member in fleet.members.values():
        member.dies = frozenset()
    go_on(fleet)

    assert rollout_now().state is RolloutState.DONE
    assert {row.why for row in rollout_clients(public_id=rollout_now().id).rows} == {Why.PILOT, Why.SECOND}
    assert set(fleet.has("pay").values()) == {version("pay", 2)}


def test_pilot__the_ads_process_ended_its_stream__is_not_lost(fleet: Fleet) -> None:
    begin(fleet, 1)
    fleet.members["node-0"].answers = False
    write(cluster("pay", connect_timeout="2s"))
    go_on(fleet)

    fleet.leave("node-0", DIED)
    fleet.write()
    go_on(fleet)
    view = rollout_now()
    assert (view.state, view.counts.lost) == (RolloutState.RUNNING, 0)
    [ended] = streams_ended(environment_key="default", since=view.started_at, keys=[("cluster", "pay")])
    assert not ended.by_client

    fleet.join("node-0")
    go_on(fleet)
    assert rollout_now().state is RolloutState.DONE


def test_pilot__it_is_silent__is_replaced_once(fleet: Fleet) -> None:
    begin(fleet, 3)
    for member in fleet.members.values():
        member.answers = False
    write(cluster("pay", connect_timeout="2s"))
    go_on(fleet)
    assert (rollout_now().waits_for, len(fleet.saw("pay", version("pay", 2)))) == ("1 client to answer", 1)

    for member in fleet.members.values():
        member.answers = not member.unanswered
    later(31)
    go_on(fleet)

    assert rollout_now().state is RolloutState.DONE


def test_pilot__the_second_is_silent_too__a_person_decides(fleet: Fleet) -> None:
    begin(fleet, 3)
    for member in fleet.members.values():
        member.answers = False
    write(cluster("pay", connect_timeout="2s"))

    for _ in range(3):
        go_on(fleet)
        later(31)

    view = rollout_now()
    assert (view.state, view.outcome) == (RolloutState.WAITING, Outcome.INCONCLUSIVE)
    assert view.reasons[0].startswith("2 of 2 clients did not answer within 30 s")
    assert len(fleet.saw("pay", version("pay", 2))) == 2


def test_pilot__nobody_asks_for_what_is_new__is_promoted_and_told(fleet: Fleet) -> None:
    fleet.join("node", "pay")
    switch_on()

    write(cluster("shop"))
    go_on(fleet)

    view = rollout_now()
    assert view.state is RolloutState.DONE
    assert view.ended_because == "no connected client asks for the cluster 'shop'"


def test_pilot__who_connected_a_moment_before_the_write__is_asked_once_its_ads_process_told_of_it(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticking, "REPORTED_S", 600.0)
    switch_on()
    write(cluster("pay"))
    rollout_tick(environment_id=environment_id())
    before = Rollout.objects.count()

    fleet.join("node", "pay")
    go_on(fleet)

    assert before == 0
    assert (rollout_now().state, rollout_now().counts.acked) == (RolloutState.DONE, 1)


def test_pilot__a_kind_connected_while_another_was_asked__is_asked_before_all_have_it(fleet: Fleet) -> None:
    begin(fleet, 2)
    write(cluster("pay", connect_timeout="2s"))
    rollout_tick(environment_id=environment_id())

    fleet.join("go", "pay", agent=GO).refuses = frozenset({"pay"})
    go_on(fleet)

    view = rollout_now()
    assert (view.state, view.reasons) == (
        RolloutState.REVERTED,
        ("the only grpc-go 1.66 that could be asked refuses the cluster 'pay'",),
    )
    [new] = [row for row in rollout_clients(public_id=view.id).rows if row.node_id == "go"]
    assert (new.why, new.because) == (Why.PILOT, "no grpc-go 1.66 had been asked for the cluster 'pay'")


def test_pilot__a_kind_refused_all_that_it_was_sent__is_asked_whether_it_takes_what_mends_it(fleet: Fleet) -> None:
    begin(fleet, 1)
    fleet.join("go", "pay", agent=GO, refuses=("pay",))
    write(cluster("pay", connect_timeout="2s"))
    go_on(fleet)

    asked = {row.node_id: row.state for row in rollout_clients(public_id=rollout_now().id).rows}
    assert asked == {"node-0": ClientState.TAKEN, "go": ClientState.REFUSED}


def test_pilot__clients_lost_their_ads_process__are_waited_for_as_long_as_for_an_answer(fleet: Fleet) -> None:
    fleet.join("node", "pay")
    switch_on(answer_within="1s")
    Stream.objects.update(closed_at=database_now(), cause=DIED)
    write(cluster("pay"))
    rollout_tick(environment_id=environment_id())
    before = Rollout.objects.count()

    def opened() -> bool:
        rollout_tick(environment_id=environment_id())
        return Rollout.objects.exists()

    assert before == 0
    eventually(opened, within_s=5)
