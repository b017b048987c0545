"""A rehearsal with a real Envoy and a real gRPC client: both get it for a moment, nobody else does, and both end with
what they began with, whoever dies meanwhile (rollouts.md "Rehearsal").
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.test_nack import UNKNOWN_CHECKER, revisions, static, timeouts
from tests.support.backends import grpc_backend
from tests.support.envoy import Envoy, envoy
from tests.support.figures import measured
from tests.support.grpc_client import GrpcClient, grpc_client, simple_bootstrap
from tests.support.manifests import api_listener, cluster, endpoints, route
from tests.support.mute_client import mute_client
from tests.support.stack import Parley, running_apart
from tests.support.valkey import valkey
from tests.support.waiting import eventually
from xdsclient import Variant
from xdscore.resource_types import CLUSTER

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow, pytest.mark.xdist_group("rehearsals")]

REHEARSALS = "/environments/default/rehearsals"
PARTS = [f"part-{number}" for number in range(18)]


@dataclass(frozen=True, slots=True)
class Stage:
    """A Parley of three processes with an Envoy and a gRPC client that may rehearse, and an Envoy that may not."""

    parley: Parley
    proxy: Envoy
    client: GrpcClient
    public: Envoy

    def has(self) -> tuple[object, object]:
        """What both clients that rehearse run."""
        return timeouts(self.proxy), {key: each.in_use for key, each in self.client.status().items()}

    def public_was_sent(self) -> dict[str, int]:
        return self.public.stats("cluster_manager.cds.update_attempt", "listener_manager.lds.update_attempt")

    def works(self) -> bool:
        return self.client.call("xds:///shop").code == "OK"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("stage")
    places = [folder / name for name in ("proxy", "public")]
    for place in places:
        place.mkdir()
    with valkey() as redis, running_apart(folder / "home", {"REDIS_URL": redis.url}, ads=1, workers=1) as parley:
        group = {"key": "stage", "matchers": [{"node_id": "stage-*"}], "trust": "declared"}
        assert parley.call("POST", "/environments/default/client-groups", group).status == 201
        settings = {"rollout": {"rehearsal_group": "stage"}}
        assert parley.call("PATCH", "/environments/default", settings).status == 200
        bootstrap = simple_bootstrap(ads_port=parley.ads_port, node_id="stage-grpc", features=())
        with (
            grpc_backend("parley") as backend,
            envoy(places[0], ads_port=parley.ads_port, node_id="stage-envoy", api_type="GRPC") as proxy,
            envoy(places[1], ads_port=parley.ads_port, node_id="public", api_type="GRPC") as public,
            grpc_client(bootstrap) as client,
        ):
            shop = (cluster("shop", eds=True), endpoints("shop", backend), route("shop", "shop"))
            parley.apply_and_publish(*shop, api_listener("shop", "shop"), *(static(name) for name in PARTS))
            found = Stage(parley, proxy, client, public)
            eventually(found.works, within_s=20)
            for each in (proxy, public):
                eventually(lambda each=each: timeouts(each).keys() >= set(PARTS), within_s=20)  # type: ignore[misc]
            eventually(lambda: holders(parley), {"stage-envoy", "public", "stage-grpc"}.__eq__, within_s=20)
            eventually(lambda: revisions(parley, "shop")[0]["proven"], within_s=20)
            yield found


def holders(parley: Parley) -> set[str]:
    """Who acknowledged the cluster that both kinds ask for, as far as it is stored."""
    found = parley.call("GET", "/environments/default/resources/cluster/shop/clients?state=ACKED").body
    return {each["node_id"] for each in found["results"]}


def rehearsed() -> list[dict[str, Any]]:
    """Twenty manifests, one of them bad."""
    good = [static(name, connect_timeout="7s") for name in PARTS]
    return [*good, cluster("shop", eds=True, connect_timeout="7s"), static("bad", health_checks=[UNKNOWN_CHECKER])]


@contextmanager
def at_rest(stage: Stage) -> Iterator[tuple[object, object]]:
    """Within the block something is rehearsed: what the clients have before it, they have after it, and nothing else is
    left of it either.
    """
    parley, before = stage.parley, stage.has()
    incidents, written = parley.call("GET", "/incidents").body["results"], revisions(parley, "shop")
    yield before
    eventually(stage.has, before.__eq__, within_s=20)
    assert stage.works()
    assert parley.call("GET", "/incidents").body["results"] == incidents
    assert revisions(parley, "shop") == written


def test_rehearsal__twenty_manifests_with_one_bad__verdict_words_and_name_within_3_s(stage: Stage) -> None:
    sent = stage.public_was_sent()
    with at_rest(stage):
        begun = time.monotonic()
        answer = stage.parley.call("POST", REHEARSALS, {"resources": rehearsed(), "clients": {"each_kind": 1}})
        took_s = time.monotonic() - begun

        assert answer.status == 200, answer
        assert answer.body["verdict"] == "refused"
        results = {(each["node_id"], each["name"]): each for each in answer.body["results"]}
        refused = [key for key, each in results.items() if each["state"] == "refused"]
        assert refused == [("stage-envoy", "bad")]
        assert "no.such.checker" in results["stage-envoy", "bad"]["message"]
        assert {results["stage-envoy", name]["state"] for name in (*PARTS, "shop")} == {"taken"}
        assert results["stage-grpc", "shop"]["state"] == "taken"
        assert {results["stage-grpc", name]["state"] for name in (*PARTS, "bad")} == {"not_asked"}
        assert took_s < 3

    assert stage.public_was_sent() == sent
    measured(rehearsal_s=took_s)


def test_rehearsal__every_process_dies_in_the_middle__clients_end_with_what_they_had(stage: Stage) -> None:
    parley = stage.parley
    seen = timeouts(stage.public)
    good = {"resources": [static(name, connect_timeout="9s") for name in PARTS], "within": "8s"}
    with mute_client(f"127.0.0.1:{parley.ads_port}", "stage-mute", Variant.SOTW) as mute, at_rest(stage):
        mute.ask(CLUSTER, "part-0")
        eventually(lambda: len(mute.responses), within_s=10)
        clients = ["stage-envoy", "stage-mute"]
        eventually(
            lambda: {each["node_id"] for each in parley.call("GET", "/clients?limit=100").body["results"]},
            {"stage-mute"}.__le__,
            within_s=10,
        )
        asking = threading.Thread(target=_quietly, args=(parley, {**good, "clients": clients}))
        asking.start()
        eventually(lambda: timeouts(stage.proxy)["part-0"], "9s".__eq__, within_s=6)
        assert timeouts(stage.public) == seen

        for name in ("web", "worker0", "ads0"):
            parley.stop(name, signal.SIGKILL)
        asking.join()
        for name in ("ads0", "worker0", "web"):
            parley.start(name)
        parley.ready("ads0")
        parley.ready("web")
    assert timeouts(stage.public) == seen


def _quietly(parley: Parley, body: object) -> None:
    """Ask, and mind no answer."""
    try:
        parley.call("POST", REHEARSALS, body)
    except OSError:
        return
