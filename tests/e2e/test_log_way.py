"""The way of a change in the logs of real processes: every line is JSON of one form, and its request's id leads through
web, worker and ADS, and back.
"""

import json
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.data_planes import data_planes
from tests.support.manifests import cluster
from tests.support.postgres import postgresql
from tests.support.stack import Parley, running_apart
from tests.support.valkey import valkey
from tests.support.waiting import eventually
from xdscore.resource_types import CLUSTER

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("production")]

ROLES = {"web": "web", "worker0": "worker", "beat": "beat", "ads0": "ads"}
LEVELS = {"debug", "info", "warning", "error", "critical"}
# gRPC core writes by itself, past Python: one who looks for a fault turns this on.
TALKATIVE = {"GRPC_VERBOSITY": "DEBUG", "GRPC_TRACE": "http_keepalive,server_channel"}
WAY = [
    ("web", "change.saved"),
    ("web", "request.answered"),
    ("worker", "build.ended"),
    ("ads", "snapshot.loaded"),
    ("worker", "change.settled"),
]


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    home = tmp_path_factory.mktemp("logs") / "home"
    with (
        postgresql() as database,
        valkey() as redis,
        running_apart(
            home,
            {"DATABASE_URL": database, "REDIS_URL": redis.url},
            ads=1,
            workers=1,
            beat=True,
            of={"ads0": TALKATIVE},
        ) as running,
    ):
        yield running


def file_of(parley: Parley, name: str) -> Path:
    return parley.home.parent / f"{parley.home.name}-{name}.log"


def lines(parley: Parley, name: str) -> list[dict[str, Any]]:
    """Every line of a process so far; a line that is no JSON object fails."""
    found = []
    for line in file_of(parley, name).read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        assert isinstance(said, dict), line
        found.append(said)
    return found


def about(parley: Parley, request_id: str) -> list[tuple[str, str]]:
    """The role and the event of each line that has this id, whatever field it stands in."""
    said = [line for name in ROLES for line in lines(parley, name) if request_id in json.dumps(line)]
    return [(line["role"], line["event"]) for line in sorted(said, key=lambda line: str(line["timestamp"]))]


def settled(way: list[tuple[str, str]]) -> bool:
    return ("worker", "change.settled") in way


def known(parley: Parley, node_id: str) -> bool:
    """Whether it is in the database that this client is connected: a change that nobody is known to ask for settles at
    once.
    """
    return bool(parley.call("GET", f"/clients?node_id={node_id}").body["results"])


def put(parley: Parley, name: str, request_id: str) -> str:
    path = f"/environments/default/resources/cluster/{name}"
    answer = parley.call("PUT", path, cluster(name), headers={"X-Request-ID": request_id})
    assert answer.status == 202, answer
    assert answer.headers["X-Request-ID"] == request_id
    return str(answer.body["id"])


def test_change__accepted__its_request_id_is_in_each_line_of_its_way(parley: Parley) -> None:
    with data_planes(f"127.0.0.1:{parley.ads_port}") as planes:
        planes.start("edge-1", CLUSTER).ask(CLUSTER, "pay")
        eventually(lambda: known(parley, "edge-1"), within_s=10)
        change = put(parley, "pay", "way-1")

        way = eventually(lambda: about(parley, "way-1"), settled, within_s=20)

    assert [step for step in way if step in WAY] == WAY
    [last] = [each for each in lines(parley, "worker0") if change in each.get("changes", ())][-1:]
    assert (last["clients"], last["acked"], last["nacked"]) == (1, 1, 0)


def test_change__refused__its_request_id_leads_to_the_refusal(parley: Parley) -> None:
    with data_planes(f"127.0.0.1:{parley.ads_port}") as planes:
        planes.start("edge-2", CLUSTER, refuses={"cart": "no such thing"}).ask(CLUSTER, "cart")
        eventually(lambda: known(parley, "edge-2"), within_s=10)
        put(parley, "cart", "way-2")

        way = eventually(lambda: about(parley, "way-2"), settled, within_s=20)

    assert {("worker", "change.refused"), ("worker", "incident.opened")} <= set(way)
    [nacked] = [each for each in lines(parley, "ads0") if each["event"] == "stream.nacked"]
    [refused] = [each for each in lines(parley, "worker0") if each["event"] == "change.refused"]
    assert nacked["names"] == refused["name"] == "cart"
    assert nacked["node_id"] == refused["node_id"] == "edge-2"


@pytest.mark.parametrize("name", ["web", "worker0", "ads0"])
def test_process__that_crashes__says_where(parley: Parley, name: str) -> None:
    before = len(lines(parley, name))

    parley.stop(name, signal.SIGSEGV)

    def crashes() -> list[dict[str, Any]]:
        return [line for line in lines(parley, name)[before:] if line["level"] == "critical"]

    [crash] = eventually(crashes, within_s=5)
    assert crash["event"] == "Fatal Python error: Segmentation fault"
    assert "most recent call first" in crash["exception"]


def test_every_line__of_every_role__is_json_with_role_process_and_version(parley: Parley) -> None:
    parley.stop("beat")

    for name, role in ROLES.items():
        said = eventually(lambda name=name: lines(parley, name), within_s=5)  # type: ignore[misc]
        for line in said:
            assert line["role"] == role
            assert line["version"]
            assert line["process"] > 0
            assert line["level"] in LEVELS
            assert line["logger"]
            assert line["event"]
            assert datetime.fromisoformat(line["timestamp"]).tzinfo is not None
    assert {line["logger"] for line in lines(parley, "ads0")} >= {"absl", "adsserver.process"}
    assert len({line["replica"] for line in lines(parley, "ads0") if "replica" in line}) == 1
