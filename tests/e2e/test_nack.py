"""The way back: Envoy refuses a cluster, and Parley makes of it an incident, a quarantine and the last good version."""

import json
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.data_planes import data_planes
from tests.support.envoy import Envoy, envoy
from tests.support.manifests import cluster
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually
from tests.support.xdsctl import NO, asleep, watching, xdsctl_for
from xdscore.resource_types import CLUSTER

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("up")]

# Sound by every field rule; only the proxy can know that it has no such checker.
UNKNOWN_CHECKER = {
    "timeout": "1s",
    "interval": "5s",
    "unhealthy_threshold": 1,
    "healthy_threshold": 1,
    "custom_health_check": {"name": "no.such.checker"},
}


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    with running_up(tmp_path_factory.mktemp("nack") / "home") as running:
        yield running


@pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])
def test_nack__of_one_cluster__becomes_incident_quarantine_and_last_good_version(
    parley: Parley, tmp_path: Path, api_type: str
) -> None:
    pay, ledger = f"pay-{api_type}", f"ledger-{api_type}"
    node = f"edge-{api_type}"
    parley.apply_and_publish(static(pay), static(ledger))
    with envoy(tmp_path, ads_port=parley.ads_port, node_id=node, api_type=api_type) as proxy:
        # The first revision is acknowledged, and thereby proven.
        eventually(lambda: revisions(parley, pay)[0]["proven"], within_s=10)

        # The second is refused; its neighbour in the same change arrives all the same.
        change = parley.apply_and_publish(
            static(pay, health_checks=[UNKNOWN_CHECKER]), static(ledger, connect_timeout="7s")
        )
        incident = eventually(lambda: incident_of(parley, pay), within_s=10)
        assert incident["state"] == "open"
        assert "no.such.checker" in incident["message"]
        assert incident["change"] == change["id"]
        assert incident["clients"] == {"nacked": 1, "sent": 1}
        # Alone, and nobody knows who it is: it decides nothing for others.
        verdict = eventually(lambda: parley.call("GET", f"/incidents/{incident['id']}").body["verdict"], within_s=10)
        assert verdict == {
            "outcome": "inconclusive",
            "reason": "1 of 1 clients refused it; it is the only client, so that a person decides",
            "suggested": True,
        }
        eventually(lambda: timeouts(proxy)[ledger], lambda timeout: timeout == "7s", within_s=10)

        # An operator takes it out of service: what is published is the proven revision of that one resource.
        answer = parley.call("POST", f"/incidents/{incident['id']}/quarantine", {"reason": "refused by the edge"})
        assert answer.status in {200, 202}, answer
        eventually(lambda: revisions(parley, pay)[0]["quarantined"], within_s=5)
        parley.apply_and_publish(static(ledger, connect_timeout="8s"))
        eventually(lambda: timeouts(proxy)[ledger], lambda timeout: timeout == "8s", within_s=10)
        assert timeouts(proxy)[pay] == "1s"

        # A new revision ends the quarantine by itself.
        parley.apply_and_publish(static(pay, connect_timeout="9s"))
        eventually(lambda: timeouts(proxy)[pay], lambda timeout: timeout == "9s", within_s=10)
        eventually(lambda: revisions(parley, pay)[0]["proven"], within_s=10)
        eventually(lambda: incident_of(parley, pay)["state"], lambda state: state == "resolved", within_s=10)


@pytest.mark.slow
def test_quarantine__envoys_take_what_another_kind_refuses__nothing_is_taken_from_them(
    parley: Parley, tmp_path: Path
) -> None:
    name = "new-for-some"
    places = [tmp_path / f"proxy{number}" for number in range(3)]
    for place in places:
        place.mkdir()
    port = parley.ads_port
    with (
        envoy(places[0], ads_port=port, node_id="taker-sotw", api_type="GRPC") as sotw,
        envoy(places[1], ads_port=port, node_id="taker-delta", api_type="DELTA_GRPC") as delta,
        data_planes(f"127.0.0.1:{port}") as planes,
    ):
        refuser = planes.start("refuser", CLUSTER, refuses={name: "not for me"})
        refuser.ask(CLUSTER, name)
        parley.apply_and_publish(static(name))
        for proxy in (sotw, delta):
            eventually(lambda proxy=proxy: name in timeouts(proxy), within_s=10)  # type: ignore[misc]
        eventually(lambda: revisions(parley, name)[0]["proven"], within_s=10)
        incident = eventually(lambda: incident_of(parley, name), within_s=5)

        # Nothing older is known to be good: it is withheld from the kind that refuses it.
        made = parley.call("POST", f"/incidents/{incident['id']}/quarantine", {"reason": "breaks one kind"})
        assert made.status == 202, made
        row = eventually(
            lambda: parley.call("GET", f"/environments/default/resources?name={name}").body["results"][0],
            lambda found: found["status"] == "withheld",
            within_s=5,
        )
        assert "other ?" in row["reason"]
        parley.apply_and_publish(static("beside", connect_timeout="3s"))
        for proxy in (sotw, delta):
            eventually(lambda proxy=proxy: timeouts(proxy).get("beside"), lambda found: found == "3s", within_s=5)  # type: ignore[misc]
            assert timeouts(proxy)[name] == "1s"
            assert proxy.stat("cluster_manager.cluster_removed") == 0

        # Who comes new gets it, or hears why not, by its kind.
        with envoy(places[2], ads_port=port, node_id="late-taker", api_type="DELTA_GRPC") as late:
            eventually(lambda: name in timeouts(late), within_s=10)
        other = planes.start("late-other", CLUSTER)
        other.ask(CLUSTER, name)
        told = eventually(
            lambda: other.held().get(("cluster", name)),
            lambda found: found is not None and found.text != "",
            within_s=5,
        )
        assert told is not None
        assert told.text.startswith("INTERNAL [XDS2106]")
        assert "rejected by clients of this kind" in told.text


def test_apply_wait__envoy_refuses_while_another_client_says_nothing__1_within_3_s_in_the_incidents_words(
    parley: Parley, tmp_path: Path
) -> None:
    """The first fact that decides ends the wait. Of three drills one has to be as quick as is promised: what else the
    machine does is not the product's."""
    with (
        envoy(tmp_path, ads_port=parley.ads_port, node_id="judge", api_type="GRPC") as proxy,
        watching(parley, "sleeper", "drill") as sleeper,
    ):
        took = [drill(parley, tmp_path, proxy, sleeper, "1s")]
        while took[-1] > 3.0 and len(took) < 3:
            took.append(drill(parley, tmp_path, proxy, sleeper, f"{len(took) + 1}s"))

    assert min(took) <= 3.0, took


def drill(
    parley: Parley, folder: Path, proxy: Envoy, sleeper: "subprocess.Popen[bytes]", connect_timeout: str
) -> float:
    """Seconds from Envoy's refusal to the end of `xdsctl apply --wait`."""
    good = static("drill", connect_timeout=connect_timeout)
    parley.apply_and_publish(good)
    for node in ("judge", "sleeper"):
        eventually(lambda node=node: acked(parley, node), within_s=20)  # type: ignore[misc]
    manifest = folder / "bad.json"
    manifest.write_text(json.dumps({**good, "health_checks": [UNKNOWN_CHECKER]}))
    refusals = proxy.stat("cluster_manager.cds.update_rejected")
    refused_at: list[float] = []
    watch = threading.Thread(target=lambda: refused_at.append(when_refused(proxy, refusals)))
    watch.start()
    with asleep(sleeper):
        wait = ("--wait", "--timeout", "60s", "-o", "json")
        said = xdsctl_for(parley, folder)("apply", "-f", str(manifest), "-m", "break it", *wait)
        ended_at = time.monotonic()
    watch.join()

    assert said.status == NO, said
    [incident] = said.data["incidents"]
    assert f"cluster 'drill' is refused by 1 of 2 clients: {incident['message']}" in said.err
    assert "no.such.checker" in incident["message"]
    assert said.data["state"] == "published"  # the sleeper has not spoken
    return ended_at - refused_at[0]


def acked(parley: Parley, node: str) -> bool:
    found = parley.call("GET", f"/clients?node_id={node}").body["results"]
    return bool(found) and any(each["type"] == "cluster" and each["state"] == "acked" for each in found[0]["types"])


def when_refused(proxy: Envoy, before: int) -> float:
    rejected = "cluster_manager.cds.update_rejected"
    eventually(lambda: proxy.stat(rejected), lambda count: count > before, within_s=60, every_s=0.02)
    return time.monotonic()


def static(name: str, **more: object) -> dict[str, object]:
    return cluster(name, eds=False, type="STATIC", **more)


def revisions(parley: Parley, name: str) -> list[dict[str, Any]]:
    body = parley.call("GET", f"/environments/default/resources/cluster/{name}/revisions").body
    return list(body["results"] if isinstance(body, dict) else body)


def incident_of(parley: Parley, name: str) -> dict[str, Any]:
    results = parley.call("GET", "/incidents").body["results"]
    return dict(next((each for each in results if each["name"] == name), {}))


def timeouts(proxy: Envoy) -> dict[str, str]:
    """The connect timeout of each dynamic cluster that Envoy runs."""
    with urllib.request.urlopen(f"http://127.0.0.1:{proxy.admin}/config_dump", timeout=5) as answer:
        dump = json.loads(answer.read())
    clusters = next(each for each in dump["configs"] if each["@type"].endswith("ClustersConfigDump"))
    running = clusters.get("dynamic_active_clusters", [])
    return {each["cluster"]["name"]: each["cluster"]["connect_timeout"] for each in running}
