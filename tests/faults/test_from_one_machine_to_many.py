"""A Parley on SQLite outgrows its machine: it is stopped, backed up and restored into PostgreSQL, and the production
shape takes over its address. Real processes; a real Envoy, a real gRPC client and watchers that stay connected.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from controlplane.config.home import Home
from tests.support.ads_probe import pushed_clusters, served_version
from tests.support.backends import grpc_backend, http_backend
from tests.support.data_planes import data_planes
from tests.support.envoy import Envoy, envoy
from tests.support.figures import measured
from tests.support.grpc_client import GrpcClient, grpc_client, simple_bootstrap
from tests.support.manage import manage
from tests.support.manifests import api_listener, cluster, endpoints, listener, route, tls_secret
from tests.support.ports import free_ports
from tests.support.postgres import postgresql
from tests.support.stack import Parley, running_apart, running_up
from tests.support.valkey import valkey
from tests.support.waiting import eventually
from tests.support.watchers import watchers
from xdscore.resource_types import CLUSTER

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("restore")]

RESOURCES = 10_000
WATCHERS = 20
# What Envoy counts of what it was told; none of it moves while nothing changes.
TOLD = tuple(
    f"{manager}.{kind}_{what}"
    for manager, kind in (("cluster_manager", "cluster"), ("listener_manager", "listener"))
    for what in ("added", "modified", "removed")
)


@contextmanager
def calling(proxy: Envoy, port: int, client: GrpcClient) -> Iterator[list[str]]:
    """Calls through both data planes until the block ends; yields what failed of it."""
    failed: list[str] = []
    ended = threading.Event()

    def call() -> None:
        while not ended.wait(0.05):
            try:
                proxy.get(port)
            except OSError as error:
                failed.append(f"envoy: {error}")
            outcome = client.call("xds:///echo")
            if outcome.code != "OK":
                failed.append(f"grpc: {outcome}")

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    try:
        yield failed
    finally:
        ended.set()
        thread.join()


def remembered(parley: Parley) -> dict[str, Any]:
    """What people would miss: history, rules, tokens, incidents, the audit log."""
    (incident,) = parley.call("GET", "/incidents").body["results"]
    told = ("id", "name", "message", "change")
    return {
        "revisions": parley.call("GET", "/environments/default/resources/cluster/shop/revisions").body["results"],
        "secrets": parley.call("GET", "/environments/default/resources?type=secret").body["results"],
        "rules": parley.call("GET", "/environments/default/rules").body["results"],
        "clients": {each["node_id"] for each in parley.call("GET", "/clients").body["results"]} & {"edge", "refuser"},
        "incident": {name: incident[name] for name in told},
    }


def served(port: int, proxy: Envoy) -> tuple[object, ...]:
    """What clients are served, by its versions, and what Envoy was told so far."""
    return served_version(port), pushed_clusters(port), proxy.stats(*TOLD)


def keys_of(home: Path) -> str:
    """The value of PARLEY_ENCRYPTION_KEYS for processes that are to read what this home's have written."""
    return ",".join(Home(home).encryption_keys.read_text().split())


def moved(old: Path, new: Path, database: str) -> str:
    """Everything of the stopped home into the database, for processes of another home with the same keys; what the
    restore said.
    """
    file = old.parent / "parley.backup"
    backed_up = manage(old, "backup", str(file))
    restored = manage(new, "restore", str(file), database=database, keys=keys_of(old))
    assert (backed_up.returncode, backed_up.stderr) == (0, "")
    assert (restored.returncode, restored.stderr) == (0, "")
    return restored.stdout


def audit(parley: Parley) -> list[Mapping[str, Any]]:
    return list(parley.call("GET", "/audit?limit=1000").body["results"])


def filled(parley: Parley, *, front: int, blue: int, echo: int) -> None:
    """An installation with some past, and as many resources as were promised."""
    used = [
        cluster("shop", eds=True), endpoints("shop", blue), route("shop", "shop"), listener("shop", "shop", front),
        cluster("echo", eds=True), endpoints("echo", echo), route("echo", "echo"), api_listener("echo", "echo"),
        tls_secret("key", "hush"), cluster("bad"),
    ]  # fmt: skip
    parley.apply_and_publish(*used)
    others = [endpoints(f"other-{number}", 9000) for number in range(RESOURCES - len(used))]
    parley.published(parley.apply(*others), within_s=60)
    for seconds in (2, 3):
        parley.apply_and_publish(cluster("shop", eds=True, connect_timeout=f"{seconds}s"))
    rule = {"pattern": "vault*", "types": ["listener"], "effect": "deny", "message": "ask the vault team"}
    assert parley.call("POST", "/environments/default/rules", rule).status == 201


def test_move__from_sqlite_to_postgresql_with_clients_connected__they_notice_nothing_but_a_reconnect(
    tmp_path: Path,
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    (front,) = free_ports(1)
    with ExitStack() as stack:
        database, redis = stack.enter_context(postgresql()), stack.enter_context(valkey())
        blue, green = stack.enter_context(http_backend("blue")), stack.enter_context(http_backend("green"))
        echo = stack.enter_context(grpc_backend("parley"))
        with running_up(old) as parley:
            port = parley.ads_port
            filled(parley, front=front, blue=blue, echo=echo)
            proxy = stack.enter_context(envoy(tmp_path, ads_port=port, node_id="edge", api_type="DELTA_GRPC"))
            bootstrap = simple_bootstrap(ads_port=port, node_id="echo", features=())
            client = stack.enter_context(grpc_client(bootstrap))
            planes = stack.enter_context(data_planes(f"127.0.0.1:{port}"))
            refuser = planes.start("refuser", CLUSTER, refuses={"bad": "not for me"})
            refuser.ask(CLUSTER, "bad", "shop")
            fleet = stack.enter_context(watchers([port], count=WATCHERS))
            before = fleet.agree("shop", "echo", "bad", within_s=20)
            eventually(lambda: proxy.get(front), lambda body: body == "blue", within_s=20)
            assert client.call("xds:///echo").text == "parley:hello"
            eventually(lambda: parley.call("GET", "/incidents").body["results"], within_s=20)
            # What clients acknowledge is proven some moments later.
            eventually(lambda: remembered(parley)["revisions"][0]["proven"], within_s=20)
            known, events = remembered(parley), audit(parley)
            same, versions = served(port, proxy), pushed_clusters(port)
            failed = stack.enter_context(calling(proxy, front, client))

        stopped_at = time.monotonic()
        said = moved(old, new, database)
        assert f"catalog_resource: {RESOURCES:,} rows" in said
        assert "tables were read back: counts and hashes are those of the backup." in said

        address = {"ads0": {"PARLEY_ADS_ADDRESS": f"127.0.0.1:{port}"}}
        stores = {"DATABASE_URL": database, "REDIS_URL": redis.url, "PARLEY_ENCRYPTION_KEYS": keys_of(old)}
        with running_apart(new, stores, ads=1, workers=1, of=address) as parley:
            after = fleet.report()
            fleet.until(lambda report: report.connected == WATCHERS, within_s=30, into=after)
            eventually(lambda: proxy.stat("control_plane.connected_state"), within_s=30)
            away_s = time.monotonic() - stopped_at

            # Nothing was taken, nothing came anew, and what it is called is what it was called.
            assert failed == []
            assert after.views == before.views
            assert (after.vanished, after.errors) == ({}, {})
            assert served(port, proxy) == same
            assert pushed_clusters(port, having=versions) == {}

            # What was known is known, and the audit log goes on where it was.
            assert remembered(parley) == known
            assert [each for each in audit(parley) if each in events] == events

            # The clients that stayed follow what is written from now on.
            parley.apply_and_publish(endpoints("shop", green), cluster("new"))
            eventually(lambda: proxy.get(front), lambda body: body == "green", within_s=20)
            assert fleet.agree("shop", "echo", "bad", "new", within_s=20).vanished == {}
            assert failed == []
    measured(resources=RESOURCES, without_ads_s=away_s)
