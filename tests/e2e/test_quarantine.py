"""A fleet that refuses a revision is given the last good one: two Envoys, fifty clusters, one of them bad."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_nack import UNKNOWN_CHECKER, incident_of, revisions, static, timeouts
from tests.support.envoy import envoy
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually

pytestmark = [pytest.mark.timeout(180), pytest.mark.slow, pytest.mark.xdist_group("quarantine")]

CLUSTERS = 50


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    # Where clients prove who they are, a quarantine is automatic unless somebody says otherwise.
    with running_up(tmp_path_factory.mktemp("quarantine") / "home", {"PARLEY_ADS_AUTH": "token"}) as running:
        yield running


def token(parley: Parley, subject: str) -> str:
    """A data plane's own: an Envoy without one of its own would be as good as any other to whoever counts refusals."""
    made = parley.call("POST", "/client-tokens", {"subject": subject, "environment": "default"})
    assert made.status == 201, made
    return str(made.body["token"])


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
    first, second, third = (token(parley, f"{which}-{api_type}") for which in ("one", "two", "three"))
    with (
        envoy(places[0], ads_port=port, node_id=f"one-{api_type}", api_type=api_type, token=first) as one,
        envoy(places[1], ads_port=port, node_id=f"two-{api_type}", api_type=api_type, token=second) as two,
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
        assert settled["counts"] == {"clients": 2, "acked": 0, "nacked": 2, "silent": 0, "not_in_use": 0}

        # The others stay updatable, and who starts now comes up clean with the last good one.
        parley.apply_and_publish(*(static(name, connect_timeout="7s") for name in others))
        for proxy in (one, two):
            eventually(
                lambda proxy=proxy: {timeouts(proxy)[name] for name in others},  # type: ignore[misc]
                lambda found: found == {"7s"},
                within_s=5,
            )
            assert timeouts(proxy)[bad] == "1s"
        with envoy(places[2], ads_port=port, node_id=f"three-{api_type}", api_type=api_type, token=third) as three:
            eventually(lambda: three.state() == "LIVE" and len(timeouts(three)) >= CLUSTERS, within_s=10)
            assert timeouts(three)[bad] == "1s"
            assert three.stat("cluster_manager.cds.update_rejected") == 0

            # The fix heals everything by itself.
            parley.apply_and_publish(static(bad, connect_timeout="9s"))
            for proxy in (one, two, three):
                eventually(lambda proxy=proxy: timeouts(proxy)[bad], lambda found: found == "9s", within_s=5)  # type: ignore[misc]
            eventually(lambda: incident_of(parley, bad)["state"], lambda state: state == "resolved", within_s=10)
            assert not revisions(parley, bad)[0]["quarantined"]

            # Two NACKs, one each; and no response that nobody needed (texts.md 9.1).
            assert parley.metric("parley_ads_nacks_total") - refused_before == 2
            assert parley.metric("parley_ads_responses_total") - sent_before <= 3 * 8
