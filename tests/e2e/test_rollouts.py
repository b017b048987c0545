"""Rollouts in front of real clients: three Envoys and four gRPC clients, each of which reaches ADS by a way that
remembers what it was sent. Whether somebody ever had something is then no word of Parley's.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any

import pytest

from tests.support.backends import grpc_backend
from tests.support.ears import Ear, ears
from tests.support.envoy import envoy
from tests.support.figures import measured
from tests.support.grpc_client import grpc_client, simple_bootstrap
from tests.support.manifests import Tree, api_listener, cluster, endpoints, route
from tests.support.mute_client import mute_client
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually
from xdsclient import Variant
from xdscore.resource_types import CLUSTER

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("rollouts")]

HERE = "/environments/default"
ENVOYS, GRPCS = 3, 4
SHOP = "shop"
OFF, PILOT = {"mode": "off"}, {"mode": "pilot"}
# How much later than without a pilot everybody has a change, where pilots answer within 100 ms (issue 2.5, 4).
LATER_S = 1.5
ROUNDS = 5
WITHIN_S = 15.0
# Every client may have it.
REACHED = ("published", "settled")


@dataclass(frozen=True)
class Fleet:
    """A Parley, and the ways of its clients: `envoys` follow all clusters, `grpcs` call the shop."""

    parley: Parley
    envoys: Sequence[Ear]
    grpcs: Sequence[Ear]

    def heard(self, word: str) -> tuple[int, int]:
        """How many Envoys, and how many gRPC clients, were ever sent something with this word in it."""
        return sum(each.heard(word) for each in self.envoys), sum(each.heard(word) for each in self.grpcs)

    def rollouts_are(self, **settings: object) -> None:
        """Say how changes reach clients from now on."""
        answer = self.parley.call("PATCH", HERE, {"rollout": settings})
        assert answer.status == 200, answer

    def ended(self, change: str, *states: str) -> dict[str, Any]:
        """Wait until the change is in one of these states; what REST says of it then."""
        return eventually(
            lambda: dict(self.parley.call("GET", f"/changes/{change}").body),
            lambda found: found["state"] in states,
            within_s=WITHIN_S,
        )

    def rollout(self, change: Mapping[str, Any]) -> dict[str, Any]:
        """The rollout of a change that REST told."""
        return dict(self.parley.call("GET", f"/rollouts/{change['rollout']}").body)

    def rung(self, client: str) -> dict[str, Any]:
        """What Explain says of rollouts, of the shop's cluster at this client."""
        asked = f"/explain?environment=default&type=cluster&name={SHOP}&client={client}"
        [found] = [each for each in self.parley.call("GET", asked).body["rungs"] if each["title"] == "rollout"]
        return dict(found)


def ledger(word: str) -> Tree:
    """A cluster that only Envoys ask for; `word` stands in it."""
    return cluster("ledger", load_assignment={"cluster_name": "ledger"}, alt_stat_name=word)


def shop(word: str, **more: object) -> Tree:
    """The cluster that all clients have; `word` stands in it."""
    return cluster(SHOP, eds=True, alt_stat_name=word, **more)


def shop_route(word: str) -> Tree:
    """The route that only gRPC clients ask for; `word` stands in it."""
    found: Any = route(SHOP, SHOP)
    found["virtual_hosts"][0]["name"] = word
    return dict(found)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    place = tmp_path_factory.mktemp("rollouts")
    with running_up(place / "home") as parley, grpc_backend("parley") as backend, ExitStack() as stack:
        ways = stack.enter_context(ears(parley.ads_port, ENVOYS + GRPCS))
        found = Fleet(parley, ways[:ENVOYS], ways[ENVOYS:])
        served = (shop("first"), endpoints(SHOP, backend), shop_route("first"), api_listener(SHOP, SHOP))
        parley.apply_and_publish(*served, ledger("first"))
        for number, way in enumerate(found.envoys):
            folder = place / f"envoy{number}"
            folder.mkdir()
            variant = ("DELTA_GRPC", "GRPC")[number % 2]
            stack.enter_context(envoy(folder, ads_port=way.port, node_id=f"envoy-{number}", api_type=variant))
        clients = [
            stack.enter_context(grpc_client(simple_bootstrap(ads_port=way.port, node_id=f"grpc-{number}", features=())))
            for number, way in enumerate(found.grpcs)
        ]
        for client in clients:
            client.begin([f"xds:///{SHOP}"])
        assert [client.finish([f"xds:///{SHOP}"])[f"xds:///{SHOP}"].code for client in clients] == ["OK"] * GRPCS
        eventually(lambda: found.heard("first"), lambda heard: heard == (ENVOYS, GRPCS), within_s=WITHIN_S)
        # A client that is not known yet cannot be asked.
        known = f"{HERE}/resources/cluster/{SHOP}/clients"
        eventually(lambda: len(parley.call("GET", known).body["results"]), lambda n: n == ENVOYS + GRPCS, within_s=15)
        yield found


def test_pilot__everybody_takes_the_change__one_of_each_kind_has_it_first_and_then_the_fleet(fleet: Fleet) -> None:
    fleet.rollouts_are(**PILOT)

    change = fleet.ended(fleet.parley.apply(shop_route("taken"), ledger("taken")), "settled")

    assert (change["state"], change["reverted"], change["incidents"]) == ("settled", [], [])
    rollout = fleet.rollout(change)
    assert (rollout["state"], rollout["verdict"], rollout["uncovered"]) == ("done", "pass", [])
    assert (rollout["cohort"], rollout["acked"], rollout["control"]) == (2, 2, ENVOYS + GRPCS - 2)
    assert fleet.heard("taken") == (ENVOYS, GRPCS)
    # Who was asked had it before anybody else, and was sent nothing when all others were (R3).
    for ways in (fleet.envoys, fleet.grpcs):
        first, second, *_ = sorted(each.first_s("taken") or 0.0 for each in ways)
        assert first < second
        assert all(each.first_s("taken") == each.last_s("taken") for each in ways)


def test_pilot__grpc_refuses_what_envoy_takes__nobody_else_ever_has_it_and_its_neighbours_go_on(fleet: Fleet) -> None:
    fleet.rollouts_are(**PILOT)

    made = fleet.parley.apply(shop("refused", lb_policy="MAGLEV"), shop_route("beside"), ledger("beside"))
    change = fleet.ended(made, "stopped", "settled")

    # The two that were asked refused it (R8); of Envoys the pilot alone had it.
    assert fleet.heard("refused") == (1, 2)
    [incident] = change["incidents"]
    assert change["state"] == "stopped"
    assert change["reverted"] == [{"type": "cluster", "name": SHOP, "incident": incident["id"]}]
    assert (incident["type"], incident["name"], incident["change"]) == ("cluster", SHOP, made)
    assert "LB policy is not supported" in incident["message"]
    assert fleet.parley.call("GET", f"/incidents/{incident['id']}").body["author"] == "token:admin.token"
    rollout = fleet.rollout(change)
    assert (rollout["state"], rollout["reverted"]) == ("done", change["reverted"])
    outcomes = {(each["type"], each["name"]): each["outcome"] for each in rollout["resources"]}
    assert outcomes == {("cluster", SHOP): "reverted", ("route", SHOP): "promoted", ("cluster", "ledger"): "promoted"}
    eventually(lambda: fleet.heard("beside"), lambda heard: heard == (ENVOYS, GRPCS), within_s=WITHIN_S)

    # Whoever had it has what all others have, and everything says why.
    for way in (*fleet.envoys, *fleet.grpcs):
        assert not way.heard("refused") or (way.last_s("first") or 0.0) > (way.last_s("refused") or 0.0)
    row = fleet.parley.call("GET", f"{HERE}/resources/cluster/{SHOP}?status=true").body
    assert row["status"] == "quarantined"
    assert "grpc-core" in row["reason"]
    asked = fleet.parley.call("GET", f"/rollouts/{change['rollout']}/clients").body["results"]
    assert sorted(each["state"] for each in asked) == ["refused", "refused", "taken"]
    for each in asked:
        assert fleet.rung(each["client"])["text"] == "Everybody has r1 of it; a rollout took r2 back."
    assert fleet.heard("refused") == (1, 2)


def test_pilot__clients_answer_at_once__everybody_has_it_little_later_than_without(fleet: Fleet) -> None:
    def took_s(word: str) -> float:
        started = time.monotonic()
        fleet.parley.apply(shop_route(word), ledger(word))
        eventually(lambda: fleet.heard(word), lambda heard: heard == (ENVOYS, GRPCS), within_s=WITHIN_S, every_s=0.01)
        return time.monotonic() - started

    without, with_pilot = [], []
    for number in range(ROUNDS):
        fleet.rollouts_are(**OFF)
        without.append(took_s(f"without-{number}"))
        fleet.rollouts_are(**PILOT)
        with_pilot.append(took_s(f"pilot-{number}"))

    later_s = median(with_pilot) - median(without)
    measured(without_p50_s=median(without), pilot_p50_s=median(with_pilot), later_p50_s=later_s)
    # One round has to be as quick as is promised: what else the machine does is not the product's.
    assert min(with_pilot) - min(without) <= LATER_S


def environment_of(parley: Parley, key: str, *before: Tree, **rollout: object) -> None:
    """Make an environment for the clients whose node ids begin with its key, in which these resources were published
    before the pilot was switched on.
    """
    body = {"key": key, "selectors": [{"node_id": f"{key}-*"}], "default_effect": "allow"}
    made = parley.call("POST", "/environments", body)
    assert made.status == 201, made
    if before:
        parley.apply_and_publish(*before, environment=key)
    answer = parley.call("PATCH", f"/environments/{key}", {"rollout": {**PILOT, **rollout}})
    assert answer.status == 200, answer


def asks_for(parley: Parley, environment: str, name: str) -> None:
    """Wait until it is known that a client asks for this cluster."""
    path = f"/environments/{environment}/resources/cluster/{name}/clients"
    eventually(lambda: parley.call("GET", path).body["results"], within_s=WITHIN_S)


def test_pilot__no_client_is_connected__everybody_may_have_it_and_why_is_said(fleet: Fleet) -> None:
    environment_of(fleet.parley, "empty")

    change = fleet.ended(fleet.parley.apply(cluster("pay"), environment="empty"), *REACHED)

    rollout = fleet.rollout(change)
    assert (rollout["state"], rollout["cohort"], rollout["waits_for"]) == ("done", 0, None)
    assert rollout["reasons"] == ["no client is connected to ask for the cluster 'pay'"]


def test_pilot__the_only_client_asks_for_nothing_that_changed__everybody_may_have_it_and_that_is_said(
    fleet: Fleet,
) -> None:
    environment_of(fleet.parley, "apart", cluster("other"))
    with mute_client(f"127.0.0.1:{fleet.parley.ads_port}", "apart-1", Variant.SOTW, acknowledges=9) as client:
        client.ask(CLUSTER, "other")
        asks_for(fleet.parley, "apart", "other")

        change = fleet.ended(fleet.parley.apply(cluster("pay"), environment="apart"), *REACHED)

    rollout = fleet.rollout(change)
    assert rollout["state"] == "done"
    assert rollout["reasons"] == ["no connected client asks for the cluster 'pay'"]


def test_pilot__the_only_client_never_answers__a_person_is_asked_and_may_go_on_or_back(fleet: Fleet) -> None:
    environment_of(fleet.parley, "silent", cluster("pay"), answer_within="1s")
    with mute_client(f"127.0.0.1:{fleet.parley.ads_port}", "silent-1", Variant.SOTW, acknowledges=1) as client:
        client.ask(CLUSTER, "pay")
        asks_for(fleet.parley, "silent", "pay")
        made = fleet.parley.apply(cluster("pay", connect_timeout="2s"), environment="silent")

        change = eventually(
            lambda: fleet.parley.call("GET", f"/changes/{made}").body,
            lambda found: found["rollout"] and fleet.rollout(found)["state"] == "waiting",
            within_s=WITHIN_S,
        )
        rollout = fleet.rollout(change)
        assert (change["state"], rollout["verdict"], rollout["silent"]) == ("candidate", "inconclusive", 1)
        assert rollout["reasons"] == ["1 of 1 client did not answer within 1 s; at most 10 % may be silent"]
        assert "person" in rollout["waits_for"]
        acted = fleet.parley.call("POST", f"/rollouts/{rollout['id']}/advance", {"reason": "it is known to be slow"})

    assert acted.status == 200, acted
    assert fleet.ended(made, *REACHED)["reverted"] == []
