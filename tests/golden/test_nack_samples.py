"""Every recorded NACK whose fault is a rule of the API is found before a client could see it (nacktext/samples.json).

Each kind of sample is either written here as a manifest, and then it must be refused, or named with what it takes to
know its fault: a name of another resource, what this client can do, bytes that cannot come out of this reader.
"""

import json
from pathlib import Path

import pytest

from xdscore.schema import Manifest, Refused, parse

SAMPLES = json.loads((Path(__file__).parent / "nacktext" / "samples.json").read_text(encoding="utf-8"))
Tree = dict[str, object]
TYPE = "type.googleapis.com/"
ADS = {"ads": {}, "resource_api_version": "V3"}


def cluster(**fields: object) -> Tree:
    return {"@type": TYPE + "envoy.config.cluster.v3.Cluster", "name": "bad", **fields}


def endpoints(*, port: int = 1, **fields: object) -> Tree:
    address = {"socket_address": {"address": "192.0.2.1", "port_value": port}}
    locality = {"lb_endpoints": [{"endpoint": {"address": address}}], **fields}
    return {
        "@type": TYPE + "envoy.config.endpoint.v3.ClusterLoadAssignment",
        "cluster_name": "bad",
        "endpoints": [locality],
    }


def hosts(domains: list[str], route: Tree) -> Tree:
    return {"name": "bad", "virtual_hosts": [{"name": "vh", "domains": domains, "routes": [route]}]}


def routes(route: Tree, domains: list[str] | None = None) -> Tree:
    return {
        "@type": TYPE + "envoy.config.route.v3.RouteConfiguration",
        **hosts(["*"] if domains is None else domains, route),
    }


def listener(**manager: object) -> Tree:
    config = {
        "@type": TYPE + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "s",
        **manager,
    }
    return {
        "@type": TYPE + "envoy.config.listener.v3.Listener",
        "name": "bad",
        "api_listener": {"api_listener": config},
    }


MATCH, ROUTE, REGEX = {"prefix": "/"}, {"cluster": "c"}, {"safe_regex": {"regex": "("}}
RDS = {"route_config_name": "r", "config_source": ADS}
BAD_ROUTE = {"match": REGEX, "route": ROUTE}
UNKNOWN = {"name": "acme", "typed_config": {"@type": TYPE + "acme.NoSuchExtension"}}

FIELD_RULES: dict[tuple[str, str], Tree] = {
    ("CDS", "PGV: empty name"): cluster(name=""),
    ("CDS", "PGV: endpoint port > 65535"): cluster(
        load_assignment={key: value for key, value in endpoints(port=70000).items() if key != "@type"}
    ),
    ("CDS", "PGV: connect_timeout negative"): cluster(connect_timeout="-1s"),
    ("CDS", "PGV: two violations in two clusters"): cluster(connect_timeout="-1s", name=""),
    ("CDS", "unknown cluster_type"): cluster(cluster_type=UNKNOWN),
    ("CDS", "unknown typed extension (transport socket)"): cluster(transport_socket=UNKNOWN),
    ("EDS", "PGV: priority > 128"): endpoints(priority=300),
    ("EDS", "port out of range"): endpoints(port=70000),
    ("LDS", "empty name"): listener(rds=RDS) | {"name": ""},
    ("LDS", "inline route bad regex"): listener(route_config=hosts(["*"], BAD_ROUTE)),
    ("LDS", "inline route config with a bad regex"): listener(route_config=hosts(["*"], BAD_ROUTE)),
    ("LDS", "no route specifier"): listener(),
    ("LDS", "two errors in one listener"): listener(),
    ("LDS", "validation error"): listener(),
    ("LDS", "unknown http filter"): listener(rds=RDS, http_filters=[UNKNOWN]),
    ("LDS", "unknown network filter"): listener(rds=RDS)
    | {"api_listener": {}, "filter_chains": [{"filters": [UNKNOWN]}]},
    ("LDS", "two bad listeners"): listener(rds=RDS, http_filters=[UNKNOWN]),
    ("LDS", "two bad listeners (both rejected)"): listener(rds=RDS, http_filters=[UNKNOWN]),
    ("LDS", "wrapper without resource"): {"@type": TYPE + "envoy.service.discovery.v3.Resource", "name": "bad"},
    ("RDS", "PGV: no domains"): routes({"match": MATCH, "route": ROUTE}, []),
    ("RDS", "no domains"): routes({"match": MATCH, "route": ROUTE}, []),
    ("RDS", "bad regex"): routes(BAD_ROUTE),
    ("RDS", "r1 valid, r2 (subscribed) invalid, one response"): routes(BAD_ROUTE),
    ("RDS", "empty cluster name"): routes({"match": MATCH, "route": {"cluster": ""}}),
    ("RDS", "no action"): routes({"match": MATCH}),
    ("RDS", "no match"): routes({"route": ROUTE}),
}
_SEMANTIC = "Envoy or gRPC checks it when it applies the resource; the API has no rule for it"
_CLIENT = "what this client can do: another takes it"
_NAMES = "other resources of the response or of the environment"
_BYTES = "bytes that this reader never writes"
_PROXY = "what the proxy's machine has"
OTHERWISE: dict[tuple[str, str], str] = {
    **dict.fromkeys(
        [
            ("CDS", "60 bad clusters (message cut at 4096 bytes + '...(truncated)')"),
            ("CDS", "EDS cluster without eds_cluster_config"),
            ("CDS", "no eds_config"),
            ("CDS", "on-demand cluster by its xdstp name"),
            ("CDS", "lb_policy CLUSTER_PROVIDED on static"),
            ("CDS", "ring hash min > max"),
            ("EDS", "DNS address in EDS"),
            ("EDS", "e1 valid, e2 (subscribed) invalid"),
            ("EDS", "duplicate endpoint address"),
            ("EDS", "duplicate locality"),
            ("EDS", "no locality"),
            ("EDS", "sparse priority"),
            ("EDS", "valid + 2 invalid"),
            ("LDS", "neither api_listener nor address"),
            ("LDS", "valid + invalid unsubscribed"),
            ("LDS", "no address"),
            ("LDS", "no filter chains"),
            ("LDS", "no http filters"),
            ("LDS", "router filter not last"),
            ("LDS", "unexpected error"),
            ("RDS", "bad retry_on ok but zero retries"),
            ("RDS", "two bad virtual hosts"),
            ("RDS", "weighted clusters sum zero"),
        ],
        _SEMANTIC,
    ),
    **dict.fromkeys(
        [
            ("CDS", "TLS without CA"),
            ("CDS", "unknown discovery type"),
            ("CDS", "unknown transport socket"),
            ("CDS", "unsupported lb policy"),
            ("CDS", "valid c1 wrapped, two invalid wrapped"),
            ("CDS", "valid c1, two invalid others"),
            ("LDS", "api_listener not an HCM"),
            ("LDS", "rds config source not ads"),
            ("RDS", "unknown per-filter config"),
        ],
        _CLIENT,
    ),
    **dict.fromkeys(
        [
            ("CDS", "duplicate names"),
            ("CDS", "duplicate names, one valid one invalid"),
            ("EDS", "duplicate names"),
            ("LDS", "duplicate names"),
            ("RDS", "duplicate names"),
            ("ECDS", "type not allowed"),
            ("LDS", "inline route to an unknown cluster"),
            ("LDS", "same address as another listener"),
            ("RDS", "unknown cluster with validate_clusters"),
        ],
        _NAMES,
    ),
    **dict.fromkeys(
        [
            ("CDS", "undecodable bytes"),
            ("EDS", "undecodable bytes"),
            ("LDS", "undecodable bytes"),
            ("LDS", "undecodable bytes in a named wrapper"),
            ("LDS", "undecodable wrapper"),
            ("LDS", "two undecodable of three"),
            ("RDS", "undecodable bytes"),
            ("CDS", "resource of another type"),
            ("LDS", "resource of another type"),
            ("LDS", "resource of another type in a wrapper"),
            ("CDS", "wrapper name differs from the resource's name"),
            ("CDS", "resource_errors: error_detail code OK"),
            ("CDS", "resource_errors: error_detail unset"),
            ("CDS", "resource_errors: bad xdstp name"),
            ("CDS", "resource_errors: name of a resource beside a bad one"),
            ("CDS", "resource_errors: resource_name unset"),
            ("CDS", "resource_errors: resource_name.name empty"),
            ("CDS", "undecodable bytes beside an invalid one"),
            ("LDS", "resource_errors: error_detail code OK"),
            ("CDS", "bad name"),
            ("LDS", "xdstp name malformed"),
        ],
        _BYTES,
    ),
    ("CDS", "TLS with missing CA file"): _PROXY,
    ("LDS", "privileged / unbindable address"): _PROXY,
}


def test_samples__each_kind__is_either_a_manifest_or_has_a_reason() -> None:
    kinds = {(sample["type"], sample["case"]) for sample in SAMPLES}

    assert FIELD_RULES.keys() & OTHERWISE.keys() == set()
    assert FIELD_RULES.keys() | OTHERWISE.keys() == kinds


@pytest.mark.parametrize("kind", FIELD_RULES, ids=" ".join)
def test_sample__whose_fault_is_a_field_rule__is_refused(kind: tuple[str, str]) -> None:
    outcome = parse(Manifest(FIELD_RULES[kind]))  # type: ignore[arg-type]  # written as plain trees

    assert isinstance(outcome, Refused)
    assert outcome.findings
