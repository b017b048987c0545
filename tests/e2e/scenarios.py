"""What every shape of Parley must do for data planes and writers; told once, run against each shape."""

import json
import time
from collections import Counter
from pathlib import Path

from tests.support.backends import grpc_backend, http_backend
from tests.support.crowd import Wanted, answers_at_once
from tests.support.envoy import envoy
from tests.support.figures import measured
from tests.support.grpc_client import Outcome, grpc_client, simple_bootstrap
from tests.support.manifests import api_listener, cluster, endpoints, listener, route
from tests.support.ports import free_ports
from tests.support.stack import Parley
from tests.support.waiting import eventually


def envoy_follows_changes(parley: Parley, directory: Path, api_type: str, *, ads_port: int) -> None:
    """CDS, EDS, LDS and RDS over REST; traffic flows, moves with an endpoint, and ends with its listener."""
    name = f"shop-{api_type}-{ads_port}"
    (port,) = free_ports(1)
    with (
        http_backend("blue") as blue,
        http_backend("green") as green,
        envoy(directory, ads_port=ads_port, node_id=name, api_type=api_type) as proxy,
    ):
        parley.apply_and_publish(
            cluster(name, eds=True), endpoints(name, blue), route(name, name), listener(name, name, port)
        )
        eventually(lambda: proxy.get(port), lambda body: body == "blue", within_s=20)
        assert proxy.state() == "LIVE"

        parley.apply_and_publish(endpoints(name, green))
        eventually(lambda: proxy.get(port), lambda body: body == "green", within_s=10)

        parley.apply_and_publish(delete=[{"type": "listener", "name": name}], losing=1)
        eventually(lambda: _refused(proxy.get, port), within_s=20)
        assert proxy.stat("cluster_manager.cds.update_rejected") == 0
        assert proxy.stat("listener_manager.lds.update_rejected") == 0


def grpc_client_is_served(parley: Parley, *, ads_port: int) -> None:
    """An RPC through xds:///, and our words for a listener that does not exist, within a second."""
    name = f"echo-{ads_port}"
    bootstrap = simple_bootstrap(ads_port=ads_port, node_id=name, features=())
    with grpc_backend("parley") as backend, grpc_client(bootstrap) as client:
        parley.apply_and_publish(
            cluster(name, eds=True), endpoints(name, backend), route(name, name), api_listener(name, name)
        )
        served = client.call(f"xds:///{name}")
        assert (served.code, served.text) == ("OK", "parley:hello")

        missing = client.call(f"xds:///nowhere-{ads_port}")
        assert missing.code == "UNAVAILABLE"
        assert f"NOT_FOUND [XDS2101] Listener 'nowhere-{ads_port}' is not published in 'default'." in missing.text
        assert f"/x?e=default&t=listener&n=nowhere-{ads_port}" in missing.text
        assert missing.seconds < 1.0

        parley.apply_and_publish(api_listener(f"nowhere-{ads_port}", name))
        eventually(lambda: client.call(f"xds:///nowhere-{ads_port}").code, lambda code: code == "OK", within_s=5)


def rules_decide_what_a_grpc_client_reads(parley: Parley, *, ads_port: int) -> None:
    """A denied RPC fails within a second in the rule's own words; the rule goes and comes back on the open stream."""
    name = f"vault-{ads_port}"
    environment = "/environments/default"
    # A denial takes from gRPC what it already has only with this feature (A88).
    bootstrap = simple_bootstrap(ads_port=ads_port, node_id=name, features=["fail_on_data_errors"])
    with grpc_backend("parley") as backend, grpc_client(bootstrap) as client:
        parley.apply_and_publish(
            cluster(name, eds=True), endpoints(name, backend), route(name, name), api_listener(name, name)
        )
        group = {"key": f"of-{name}", "matchers": [{"node_id": name}], "trust": "declared"}
        assert parley.call("POST", f"{environment}/client-groups", group).status == 201
        rule = {"pattern": f"{name}*", "types": ["listener"], "effect": "deny", "client_groups": [group["key"]]}
        made = parley.call("POST", f"{environment}/rules", {**rule, "message": "ask the vault team"})
        assert made.status == 201, made
        parley.published(made.body["change"])
        path = f"{environment}/rules/{made.body['id']}"

        def outcome() -> Outcome:
            return client.call(f"xds:///{name}")

        denied = eventually(outcome, lambda got: "XDS2103" in got.text, within_s=3)
        again = outcome()
        words = f"PERMISSION_DENIED [XDS2103] This client may not read Listener '{name}': ask the vault team. Explain: "
        assert words in denied.text
        assert f"/x?e=default&t=listener&n={name}" in denied.text
        assert (denied.code, again.code) == ("UNAVAILABLE", "UNAVAILABLE")
        assert again.seconds < 1.0

        parley.call("PATCH", path, {"enabled": False})
        eventually(outcome, lambda got: got.code == "OK", within_s=3)
        assert parley.call("PATCH", f"{path}?accept_loss=1", {"enabled": True}).status == 200
        eventually(outcome, lambda got: "XDS2103" in got.text, within_s=3)
        parley.call("DELETE", path)
        eventually(outcome, lambda got: got.code == "OK", within_s=3)


def one_of_many_writers_wins(parley: Parley, *, rounds: int, writers: int) -> None:
    """Many PUTs of one revision's successor at once: one is stored, every other is told 412 with what is there now;
    history and audit log know the winners and nobody else.
    """
    path = "/environments/default/resources/cluster/contested"
    assert parley.call("PUT", path, cluster("contested")).status == 202
    winners: list[tuple[str, str]] = []
    rounds_s: list[float] = []
    for number in range(1, rounds + 1):
        crowd = [
            Wanted(
                "PUT",
                f"/api/v1{path}",
                json.dumps(cluster("contested", connect_timeout=f"{number * writers + writer}s")).encode(),
                {
                    "Authorization": f"Bearer {parley.token}",
                    "Content-Type": "application/json",
                    "If-Match": f'"r{number}"',
                    "X-Request-ID": f"round-{number}-writer-{writer}",
                },
            )
            for writer in range(writers)
        ]

        started = time.monotonic()
        answers = answers_at_once(parley.web_port, crowd)
        rounds_s.append(time.monotonic() - started)

        others = [each for each in answers if each.status != 202]
        assert Counter(each.status for each in answers) == {202: 1, 412: writers - 1}, others[0].body
        assert {each.headers["etag"] for each in answers} == {f'"r{number + 1}"'}
        [winner] = [index for index, each in enumerate(answers) if each.status == 202]
        winners.append((f"round-{number}-writer-{winner}", answers[winner].body["id"]))
        stored = parley.call("GET", path)
        assert stored.headers["ETag"] == f'"r{number + 1}"'
        assert stored.body["connect_timeout"] == f"{number * writers + winner}s"

    history = parley.call("GET", f"{path}/revisions").body["results"]
    audit = parley.call("GET", "/audit?verb=change.saved&environment=default&limit=1000").body["results"]
    assert [row["revision"] for row in history] == list(range(rounds + 1, 0, -1))
    assert [row["change"] for row in history[:-1]] == [change for _request, change in reversed(winners)]
    told = [(row["request_id"], row["subject"]) for row in audit if row["request_id"].startswith("round-")]
    assert told == winners[::-1]
    measured(writers=writers, rounds=rounds, slowest_round_s=max(rounds_s))


def _refused(get: object, port: int) -> bool:
    try:
        get(port)  # type: ignore[operator]
    except OSError:
        return True
    return False
