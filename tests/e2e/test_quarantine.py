"""A fleet that refuses a revision is given the last good one: two Envoys, fifty clusters, one of them bad."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_nack import UNKNOWN_CHECKER, incident_of, revisions, static, timeouts
from tests.support.data_planes import data_planes
from tests.support.envoy import envoy
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually
from xdscore.resource_types import CLUSTER

pytestmark = [pytest.mark.timeout(180), pytest.mark.slow]

CLUSTERS = 50


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    with running_up(tmp_path_factory.mktemp("quarantine") / "home") as running:
        answer = running.call("PATCH", "/environments/default", {"quarantine": "automatic"})
        assert answer.status == 200, answer
        yield running


@pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])
def test_fleet__refuses_one_of_fifty_clusters__is_given_the_last_good_one_and_heals_with_the_fix(
    parley: Parley, tmp_path: Path, api_type: str
) -> None:
    names = [f"c{number}-{api_type}" for number in range(CLUSTERS)]
    bad = names[20]
    others = [name for name in names if name != bad]
    places = [tmp_path / f"proxy{number}" for number in range(3)]
    for place in places:
        place.mkdir()
    parley.apply_and_publish(*(static(name) for name in names))
    port = parley.ads_port
    with (
        envoy(places[0], ads_port=port, node_id=f"one-{api_type}", api_type=api_type) as one,
        envoy(places[1], ads_port=port, node_id=f"two-{api_type}", api_type=api_type) as two,
    ):
        eventually(lambda: revisions(parley, bad)[0]["proven"], within_s=10)
        eventually(
            lambda: (len(timeouts(one)), len(timeouts(two))), lambda counts: min(counts) >= CLUSTERS, within_s=10
        )
        sent_before = parley.metric("parley_ads_responses_total")
        refused_before = parley.metric("parley_ads_nacks_total")

        # One change makes one of the fifty bad.
        change = parley.apply_and_publish(static(bad, health_checks=[UNKNOWN_CHECKER]))
        eventually(
            lambda: parley.metric("parley_ads_nacks_total") - refused_before, lambda nacks: nacks >= 2, within_s=5
        )
        refused_at = time.monotonic()
        incident = eventually(lambda: incident_of(parley, bad), within_s=2)
        assert (incident["change"], incident["confidence"]) == (change["id"], "only_change")
        detail = parley.call("GET", f"/incidents/{incident['id']}").body
        assert detail["author"] == "token:admin.token"
        eventually(lambda: revisions(parley, bad)[0]["quarantined"], within_s=3 - (time.monotonic() - refused_at))
        held = eventually(
            lambda: parley.call("GET", "/environments/default/snapshots").body["results"][0],
            lambda newest: newest["epoch"] > change["epoch"],
            within_s=3 - (time.monotonic() - refused_at),
        )
        assert held["counts"]["cluster"] >= CLUSTERS
        verdict = parley.call("GET", f"/incidents/{incident['id']}").body["verdict"]
        assert verdict == {"outcome": "fail", "reason": "2 of 2 clients refused it", "suggested": False}

        settled = parley.call("GET", f"/changes/{change['id']}?wait=20s&for=settled").body
        assert settled["state"] == "settled"
        assert settled["counts"] == {"clients": 2, "acked": 0, "nacked": 2, "silent": 0}

        # The others stay updatable, and who starts now comes up clean with the last good one.
        parley.apply_and_publish(*(static(name, connect_timeout="7s") for name in others))
        for proxy in (one, two):
            eventually(
                lambda proxy=proxy: {timeouts(proxy)[name] for name in others},  # type: ignore[misc]
                lambda found: found == {"7s"},
                within_s=5,
            )
            assert timeouts(proxy)[bad] == "1s"
        with envoy(places[2], ads_port=port, node_id=f"three-{api_type}", api_type=api_type) as three:
            eventually(lambda: three.state() == "LIVE" and len(timeouts(three)) >= CLUSTERS, within_s=10)
            assert timeouts(three)[bad] == "1s"
            assert three.stat("cluster_manager.cds.update_rejected") == 0

            # The fix heals everything by itself.
            parley.apply_and_publish(static(bad, connect_timeout="9s"))
            for proxy in (one, two, three):
                eventually(lambda proxy=proxy: timeouts(proxy)[bad], lambda found: found == "9s", within_s=5)  # type: ignore[misc]
            eventually(lambda: incident_of(parley, bad)["state"], lambda state: state == "resolved", within_s=10)
            assert not revisions(parley, bad)[0]["quarantined"]

            # Two NACKs, one each; and no response that nobody needed (ux.md 9.1).
            assert parley.metric("parley_ads_nacks_total") - refused_before == 2
            assert parley.metric("parley_ads_responses_total") - sent_before <= 3 * 8


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
