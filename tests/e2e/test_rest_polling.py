"""A real Envoy that polls everything over REST, from the bootstrap that Parley writes for it: clusters, listeners,
endpoints, routes and a secret; what changes, what it refuses, and what a rule denies.
"""

import json
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.backends import http_backend
from tests.support.certificates import Authority
from tests.support.envoy import Envoy, envoy_with
from tests.support.manifests import TYPE, Tree, cluster, endpoints, listener, route
from tests.support.ports import free_ports
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually
from tests.support.xdsctl import xdsctl_for

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("up")]

REFRESH = "0.2s"
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
    (port,) = free_ports(1)
    home = tmp_path_factory.mktemp("rest") / "home"
    with running_up(home, {"PARLEY_ADS_REST_ADDRESS": f"127.0.0.1:{port}"}) as up:
        rule = {"effect": "allow", "types": ["secret"], "pattern": "*"}
        assert up.call("POST", "/environments/default/rules", rule).status == 201
        yield up


def polled() -> Tree:
    """The source of what a resource refers to, as an operator writes it for Envoys that poll."""
    api = {
        "api_type": "REST",
        "transport_api_version": "V3",
        "cluster_names": ["parley_rest"],
        "refresh_delay": REFRESH,
        "request_timeout": "2s",
    }
    return {"resource_api_version": "V3", "api_config_source": api}


def polled_cluster(name: str) -> Tree:
    return {**cluster(name), "type": "EDS", "eds_cluster_config": {"eds_config": polled()}}


def polled_listener(name: str, port: int, *, secret: str = "") -> Tree:
    tree: Any = listener(name, name, port)
    chain = tree["filter_chains"][0]
    chain["filters"][0]["typed_config"]["rds"]["config_source"] = polled()
    if secret:
        context = {"tls_certificate_sds_secret_configs": [{"name": secret, "sds_config": polled()}]}
        chain["transport_socket"] = {
            "name": "envoy.transport_sockets.tls",
            "typed_config": {
                "@type": TYPE + "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
                "common_tls_context": context,
            },
        }
    found: Tree = tree
    return found


def bootstrap(parley: Parley, node_id: str, folder: Path) -> dict[str, Any]:
    """The file that Parley writes, at a pace at which a test can wait."""
    said = xdsctl_for(parley, folder)("bootstrap", "envoy", "--client", node_id, "--transport", "rest")
    assert said.status == 0, said
    tree: dict[str, Any] = json.loads(said.out)
    tree["admin"]["address"]["socket_address"]["port_value"] = 0
    for which in ("cds_config", "lds_config"):
        tree["dynamic_resources"][which]["api_config_source"]["refresh_delay"] = REFRESH
    return tree


def timeouts(proxy: Envoy) -> dict[str, str]:
    found = [entry["cluster"] for entry in proxy.dump("dynamic_active_clusters")]
    return {each["name"]: each.get("connect_timeout", "") for each in found}


def client_of(parley: Parley, node_id: str) -> dict[str, Any]:
    (row,) = eventually(lambda: parley.call("GET", f"/clients?node_id={node_id}").body["results"], within_s=10)
    return dict(parley.call("GET", f"/clients/{row['id']}").body)


def test_envoy__polls_everything__traffic_flows_and_follows_changes(parley: Parley, tmp_path: Path) -> None:
    name = "shop"
    (port,) = free_ports(1)
    key, certificate = (text.decode() for text in Authority("site").issue(dns="shop.example"))
    secret = {
        "@type": TYPE + "envoy.extensions.transport_sockets.tls.v3.Secret",
        "name": name,
        "tls_certificate": {
            "certificate_chain": {"inline_string": certificate},
            "private_key": {"inline_string": key},
        },
    }
    with http_backend("blue") as blue, http_backend("green") as green:
        parley.apply_and_publish(
            secret,
            polled_cluster(name),
            endpoints(name, blue),
            route(name, name),
            polled_listener(name, port, secret=name),
        )
        with envoy_with(tmp_path, bootstrap(parley, name, tmp_path)) as proxy:
            eventually(lambda: over_tls(port), lambda body: body == "blue", within_s=20)
            assert proxy.state() == "LIVE"

            parley.apply_and_publish(endpoints(name, green))
            eventually(lambda: over_tls(port), lambda body: body == "green", within_s=10)

            # Unchanged is said in a word: what is polled again and again is not sent again and again.
            updates = "cluster_manager.cds.update_success", "listener_manager.lds.update_success"
            before = proxy.stats(*updates, "cluster_manager.cds.update_attempt")
            eventually(
                lambda: proxy.stat("cluster_manager.cds.update_attempt"),
                lambda found: found >= before["cluster_manager.cds.update_attempt"] + 5,
                within_s=10,
            )
            assert proxy.stats(*updates) == {each: before[each] for each in updates}
            refused = "cluster_manager.cds.update_rejected", "listener_manager.lds.update_rejected"
            assert set(proxy.stats(*refused).values()) == {0}
            assert set(proxy.stats("cluster_manager.cds.update_failure").values()) == {0}

            seen = eventually(
                lambda: client_of(parley, name),
                lambda found: [each["state"] for each in found["types"]] == ["acked"] * 5,
                within_s=10,
            )
            assert seen["connected"] is True
            assert {stream["variant"] for stream in seen["recent_streams"]} == {"poll"}
            kinds = {"cluster", "endpoint", "listener", "route", "secret"}
            assert {each["type"] for each in seen["types"]} == kinds

            parley.apply_and_publish(delete=[{"type": "listener", "name": name}], losing=1)
            eventually(
                lambda: proxy.stat("listener_manager.total_listeners_active"), lambda found: found == 0, within_s=20
            )


def test_envoy__refuses_what_it_polls__incident_names_the_resource_and_its_neighbour_goes_on(
    parley: Parley, tmp_path: Path
) -> None:
    parley.apply_and_publish(cluster("good"), cluster("bad"))
    with envoy_with(tmp_path, bootstrap(parley, "refuser", tmp_path)) as proxy:
        eventually(lambda: {"good", "bad"} <= timeouts(proxy).keys(), within_s=20)
        eventually(lambda: revision(parley, "bad")["proven"], within_s=10)

        change = parley.apply_and_publish(
            cluster("bad", health_checks=[UNKNOWN_CHECKER]), cluster("good", connect_timeout="7s")
        )

        incident = eventually(lambda: incident_of(parley, "bad"), within_s=20)
        assert incident["change"] == change["id"]
        assert incident["clients"] == {"nacked": 1, "sent": 1}
        eventually(lambda: timeouts(proxy)["good"], lambda found: found == "7s", within_s=10)
        # The refused one is sent no more: what Envoy is given from now on it takes.
        refused = "cluster_manager.cds.update_rejected"
        calm = proxy.stat(refused)
        eventually(lambda: proxy.stat("cluster_manager.cds.update_attempt") > 0, within_s=1)
        parley.apply_and_publish(cluster("good", connect_timeout="8s"))
        eventually(lambda: timeouts(proxy)["good"], lambda found: found == "8s", within_s=10)
        assert proxy.stat(refused) <= calm + 4

        parley.apply_and_publish(cluster("bad", connect_timeout="9s"))
        eventually(lambda: timeouts(proxy)["bad"], lambda found: found == "9s", within_s=10)
        eventually(lambda: incident_of(parley, "bad").get("state"), lambda state: state == "resolved", within_s=10)


def test_envoy__rule_denies_endpoints__holdings_say_why(parley: Parley, tmp_path: Path) -> None:
    name = "vault"
    parley.apply_and_publish(polled_cluster(name), endpoints(name, 1))
    rule = {"effect": "deny", "types": ["endpoint"], "pattern": name, "message": "ask the vault team"}
    made = parley.call("POST", "/environments/default/rules", rule)
    assert made.status == 201, made
    parley.published(made.body["change"])

    with envoy_with(tmp_path, bootstrap(parley, "denied", tmp_path)) as proxy:
        eventually(lambda: proxy.state() == "LIVE", within_s=20)

        def told() -> Any:
            seen = client_of(parley, "denied")
            found = parley.call("GET", f"/clients/{seen['id']}/resources?type=endpoint&name={name}").body["results"]
            return found[0] if found else None

        holding = eventually(told, lambda found: found and found["state"] == "ERROR_SENT", within_s=10)
        assert holding["name"] == name
        assert "ask the vault team" in json.dumps(holding)
        assert proxy.stat("cluster.vault.update_rejected") == 0


def test_envoy__fresh_with_something_it_refuses__good_ones_work_and_the_incident_names_the_bad_one(
    parley: Parley, tmp_path: Path
) -> None:
    parley.apply_and_publish(cluster("fresh-good"), cluster("fresh-bad", health_checks=[UNKNOWN_CHECKER]))

    with envoy_with(tmp_path, bootstrap(parley, "fresh", tmp_path)) as proxy:
        eventually(lambda: "fresh-good" in timeouts(proxy), within_s=20)
        incident = eventually(lambda: incident_of(parley, "fresh-bad"), within_s=40)
        assert incident["name"] == "fresh-bad"
        eventually(lambda: proxy.state() == "LIVE", within_s=20)


def over_tls(port: int) -> str:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(f"https://127.0.0.1:{port}/", timeout=5, context=context) as answer:
        body: bytes = answer.read()
        return body.decode()


def incident_of(parley: Parley, name: str) -> dict[str, Any]:
    results = parley.call("GET", "/incidents").body["results"]
    return dict(next((each for each in results if each["name"] == name), {}))


def revision(parley: Parley, name: str) -> Any:
    return parley.call("GET", f"/environments/default/resources/cluster/{name}/revisions").body["results"][0]
