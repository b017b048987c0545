"""One manifest to one resource: type, name, wrapper, bytes, limits."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.any_pb2 import Any as AnyProto

from xdscore.findings import Severity
from xdscore.resource_types import RESOURCE_TYPES, ResourceType, by_word
from xdscore.schema import (
    Expected,
    Manifest,
    Media,
    ParsedResource,
    Refused,
    ResourceLimits,
    canonical,
    parse,
    read_manifests,
)
from xdscore.schema.types_registry import new_message
from xdscore.snapshot import content_hash

GOOGLE = "type.googleapis.com/"
CLUSTER = GOOGLE + "envoy.config.cluster.v3.Cluster"
WRAPPER = GOOGLE + "envoy.service.discovery.v3.Resource"
SAMPLES: dict[str, dict[str, Any]] = {
    "cluster": {"name": "c"},
    "endpoint": {"cluster_name": "c"},
    "listener": {
        "name": "l",
        "address": {"socket_address": {"address": "10.0.0.1", "port_value": 80}},
        "default_filter_chain": {},
    },
    "route": {"name": "r"},
    "scoped_route": {"name": "s", "route_configuration_name": "r", "key": {"fragments": [{"string_key": "k"}]}},
    "virtual_host": {"name": "v", "domains": ["*"]},
    "secret": {"name": "s", "generic_secret": {"secret": {"inline_string": "x"}}},
    "runtime": {"name": "rt", "layer": {"a": 1}},
    "extension": {"name": "e", "typed_config": {"@type": GOOGLE + "envoy.extensions.filters.http.router.v3.Router"}},
}


def parsed(tree: dict[str, Any]) -> ParsedResource:
    outcome = parse(Manifest(tree))
    assert isinstance(outcome, ParsedResource), outcome
    return outcome


def codes(tree: dict[str, Any], expected: Expected | None = None) -> list[tuple[str, str]]:
    outcome = parse(Manifest(tree), expected or Expected())
    return [(found.code, found.pointer) for found in outcome.findings]


@pytest.mark.parametrize("kind", RESOURCE_TYPES, ids=lambda kind: kind.word)
def test_parse__each_served_type__gives_its_name_bytes_and_hash(kind: Any) -> None:
    tree = {"@type": kind.url, **SAMPLES[kind.word]}

    resource = parsed(tree)
    packed = AnyProto.FromString(resource.any_bytes)

    assert resource.type is kind
    assert resource.name == SAMPLES[kind.word][kind.name_field]
    assert packed.type_url == kind.url
    assert getattr(new_message(kind.message).FromString(packed.value), kind.name_field) == resource.name
    assert resource.content_hash == content_hash(resource.any_bytes)
    assert resource.findings == ()


def test_parse__wrapper__gives_name_and_ttl_and_says_who_is_told_of_the_ttl() -> None:
    inner = {"@type": CLUSTER, "name": "c"}

    resource = parsed({"@type": WRAPPER, "name": "xdstp://a/b", "ttl": "30.5s", "resource": inner})

    assert (resource.name, resource.ttl_ms) == ("xdstp://a/b", 30_500)
    assert resource.any_bytes == parsed(inner).any_bytes
    assert [(found.code, found.severity) for found in resource.findings] == [("XDS1028", Severity.WARNING)]


@pytest.mark.parametrize("kind", RESOURCE_TYPES, ids=lambda kind: kind.word)
def test_parse__ttl_of_a_type__is_refused_with_the_reason_where_it_would_do_harm(kind: ResourceType) -> None:
    inner = {"@type": kind.url, **SAMPLES[kind.word]}

    found = codes({"@type": WRAPPER, "ttl": "30s", "resource": inner})

    assert ("XDS1053" if kind.no_ttl else "XDS1028", "/ttl") in found


@pytest.mark.parametrize(("ttl", "taken"), [("14.999s", False), ("15s", True), ("604800s", True), ("604801s", False)])
def test_parse__ttl_at_its_bounds__is_taken_or_refused(ttl: str, taken: bool) -> None:
    found = codes({"@type": WRAPPER, "ttl": ttl, "resource": {"@type": CLUSTER, "name": "c"}})

    assert found == [("XDS1028" if taken else "XDS1054", "/ttl")]


@pytest.mark.parametrize(
    ("wrapper", "expected"),
    [
        ({"name": "x"}, [("XDS1014", "/resource")]),
        ({"resource": 5}, [("XDS1014", "/resource")]),
        ({"resource": {"name": "x"}}, [("XDS1010", "/resource")]),
        ({"resource": {"@type": WRAPPER}}, [("XDS1012", "/resource/@type")]),
        ({"resource": {"@type": CLUSTER, "nam": "x"}}, [("XDS1013", "/resource/nam")]),
        ({"resource": {"@type": CLUSTER}, "name": 5}, [("XDS1014", "/name"), ("XDS1020", "/resource/name")]),
        ({"resource": {"@type": CLUSTER, "name": "x"}, "ttl": 30}, [("XDS1014", "/ttl")]),
        ({"resource": {"@type": CLUSTER, "name": "x"}, "ttl": "0s"}, [("XDS1016", "/ttl")]),
        ({"resource": {"@type": CLUSTER, "name": "x"}, "ttl": "-1s"}, [("XDS1016", "/ttl")]),
        ({"resource": {"@type": CLUSTER, "name": "x"}, "aliases": ["y"]}, [("XDS1024", "/aliases")]),
        ({"resource": {"@type": CLUSTER, "name": "x"}, "metadata": {}}, [("XDS1024", "/metadata")]),
        ({"resource": {"@type": CLUSTER, "name": "x"}, "bogus": 1}, [("XDS1013", "/bogus")]),
        ({"resource": {"@type": CLUSTER, "name": "x"}, "version": "7"}, [("XDS1029", "/version")]),
    ],
)
def test_parse__wrapper_with_a_fault__says_which(wrapper: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert codes({"@type": WRAPPER, **wrapper}) == expected


@pytest.mark.parametrize(
    ("url", "code", "hint"),
    [
        (CLUSTER + "s", "XDS1011", CLUSTER),
        ("type.googleapis.com/envoy.api.v2.Cluster", "XDS1012", CLUSTER),
        ("envoy.config.cluster.v3.Cluster", "XDS1019", CLUSTER),
        ("example.com/envoy.config.cluster.v3.Cluster", "XDS1019", CLUSTER),
        (GOOGLE + "envoy.config.endpoint.v3.Endpoint", "XDS1012", "ClusterLoadAssignment (endpoint)"),
        (GOOGLE + "envoy.extensions.filters.network.kafka_broker.v3.KafkaBroker", "XDS1011", "manage.py schema add"),
        (5, "XDS1014", ""),
        ("", "XDS1011", ""),
    ],
)
def test_parse__type_that_is_not_served__says_why_and_what_is_near(url: Any, code: str, hint: str) -> None:
    outcome = parse(Manifest({"@type": url, "name": "x"}))

    assert isinstance(outcome, Refused)
    assert [(found.code, found.pointer) for found in outcome.findings] == [(code, "/@type")]
    assert hint in outcome.findings[0].hint


def test_parse__no_type__hints_at_the_type_of_the_address() -> None:
    outcome = parse(Manifest({"name": "x"}), Expected(type_word="cluster"))

    assert [found.code for found in outcome.findings] == ["XDS1010"]
    assert CLUSTER in outcome.findings[0].hint


@pytest.mark.parametrize(
    ("name", "code"),
    [("", "XDS1020"), ("*", "XDS1021"), ("a\nb", "XDS1021"), ("x" * 1025, "XDS1021"), ("é" * 513, "XDS1021")],
)
def test_parse__name_that_cannot_be_one__is_refused(name: str, code: str) -> None:
    assert (code, "/name") in codes({"@type": CLUSTER, "name": name})


@pytest.mark.parametrize(
    "tree",
    [
        {"@type": CLUSTER, "name": "xdstp://a/b?z=1&a=2"},
        {"@type": WRAPPER, "name": "xdstp://a/b?z=1&a=2", "resource": {"@type": CLUSTER, "name": "c"}},
    ],
    ids=("its own", "wrapper's"),
)
def test_parse__context_parameters_in_any_order__are_one_name(tree: dict[str, Any]) -> None:
    outcome = parse(Manifest(tree), Expected("cluster", "xdstp://a/b?z=1&a=2"))

    assert isinstance(outcome, ParsedResource)
    assert outcome.name == "xdstp://a/b?a=2&z=1"


@pytest.mark.parametrize("name", ["x" * 1024, "é" * 512, "a b", "xdstp://x/y?z=1#f", "日本"])
def test_parse__name_at_the_limit__passes(name: str) -> None:
    assert parsed({"@type": CLUSTER, "name": name}).name == name


def test_parse__address_says_otherwise__both_are_named() -> None:
    tree: dict[str, Any] = {"@type": CLUSTER, "name": "a"}

    assert codes(tree, Expected("cluster", "a")) == []
    assert codes(tree, Expected("cluster", "b")) == [("XDS1023", "/name")]
    assert codes(tree, Expected("listener", "a")) == [("XDS1022", "/@type")]
    outcome = parse(Manifest(tree), Expected("listener", "b"))
    assert [found.detail for found in outcome.findings] == [
        "The manifest holds a Cluster, the address names a Listener.",
        "The manifest is named 'a', the address names 'b'.",
    ]


def test_parse__resource_at_the_size_limit__passes_and_one_byte_more_is_refused() -> None:
    tree: dict[str, Any] = {"@type": CLUSTER, "name": "a", "alt_stat_name": "x" * 100}
    size = len(parsed(tree).any_bytes)

    at_limit = parse(Manifest(tree), limits=ResourceLimits(max_bytes=size))
    above = parse(Manifest(tree), limits=ResourceLimits(max_bytes=size - 1))

    assert isinstance(at_limit, ParsedResource)
    assert [found.code for found in above.findings] == ["XDS1025"]


def test_parse__findings__name_resource_line_and_column_in_yaml_and_json() -> None:
    yaml = f'"@type": {CLUSTER}\nname: pay\nhealth_checks:\n- timeout: 1s\n  bogus: 1\n'
    text = json.dumps({"@type": CLUSTER, "name": "pay", "health_checks": [{"timeout": "1s", "bogus": 1}]}, indent=1)

    for body, media, place in ((yaml, Media.YAML, (5, 3)), (text, Media.JSON, (7, 4))):
        (manifest,), _ = read_manifests(body.encode(), media)
        first = parse(manifest).findings[0]
        assert (first.line, first.column) == place
        assert (first.pointer, first.resource_type, first.resource_name) == ("/health_checks/0/bogus", "cluster", "pay")


def test_parse__spelling_and_order__do_not_change_the_bytes() -> None:
    one = parsed({"@type": CLUSTER, "name": "a", "connect_timeout": "1s", "dns_resolvers": [], "metadata": {}})
    two = parsed({"metadata": {}, "dnsResolvers": [], "connectTimeout": "1.000s", "name": "a", "@type": CLUSTER})

    assert one.any_bytes == two.any_bytes


def packed(message: Any) -> AnyProto:
    return AnyProto(type_url=GOOGLE + message.DESCRIPTOR.full_name, value=message.SerializeToString())


def test_canonical__bytes_that_another_protobuf_ordered_otherwise__become_the_same() -> None:
    """Two map entries of a message inside an Any inside an Any, in both orders: joined bytes are merged messages."""
    router = packed(new_message("envoy.extensions.filters.http.router.v3.Router"))
    entries = []
    for name in ("a", "b"):
        route: Any = new_message("envoy.config.route.v3.RouteConfiguration")
        route.typed_per_filter_config[name].MergeFromString(router.SerializeToString())
        entries.append(route.SerializeToString())
    stored = []
    for first, second in (entries, reversed(entries)):
        extension: Any = new_message("envoy.config.core.v3.TypedExtensionConfig")
        extension.typed_config.type_url = by_word["route"].url
        extension.typed_config.value = first + second
        stored.append(packed(extension).SerializeToString())

    assert stored[0] != stored[1]
    assert canonical(stored[0]) == canonical(stored[1])
    assert canonical(canonical(stored[0])) == canonical(stored[0])


PROGRAM = """
import json, sys
from xdscore.schema import *
for line in json.load(sys.stdin):
    outcome = parse(Manifest(line))
    print(type(outcome).__name__, getattr(outcome, "content_hash", b"").hex(), [repr(f) for f in outcome.findings])
    if isinstance(outcome, ParsedResource):
        print(json.dumps(to_json(outcome.any_bytes, lambda data: str(len(data)))), outcome.references)
"""


def test_parse__three_hash_seeds__give_the_same_bytes_findings_and_references() -> None:
    per_filter = {f"f{n}": {"@type": GOOGLE + "envoy.extensions.filters.http.router.v3.Router"} for n in range(20)}
    metadata = {"filter_metadata": {f"k{n}": {f"m{m}": m for m in range(5)} for n in range(10)}}
    good = {"@type": by_word["route"].url, "name": "r", "typed_per_filter_config": per_filter, "metadata": metadata}
    bad = {
        "@type": CLUSTER,
        "nme": 1,
        "typ": 2,
        "metadata": {"filter_metadata": {"": {}, "a": 5}},
        "health_checks": [{}],
    }
    unknown = {"@type": CLUSTER + "x", "name": "a"}
    root = Path(__file__).parents[3]

    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input=json.dumps([good, bad, unknown]),
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }

    assert len(outputs) == 1
    assert "ParsedResource" in outputs.pop()


def test_schema__import__does_not_load_the_descriptors() -> None:
    program = "import sys, xdscore.schema; print(sum(name.startswith('envoy.config') for name in sys.modules))"
    root = Path(__file__).parents[3]

    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(root)}, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "0"
