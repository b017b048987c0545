"""Trees to messages: each error of shape, all of them at once, and json_format as the oracle of what is right."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as AnyProto
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xdscore.resource_types import RESOURCE_TYPES
from xdscore.schema import Manifest, ParsedResource, Refused, canonical, parse
from xdscore.schema.convert import Conversion, Depth, ResourceLimits
from xdscore.schema.types_registry import class_of, descriptors, new_message, schema

GOOGLE = "type.googleapis.com/"
CLUSTER = GOOGLE + "envoy.config.cluster.v3.Cluster"
ROUTER = GOOGLE + "envoy.extensions.filters.http.router.v3.Router"
TLS = GOOGLE + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
DURATION = GOOGLE + "google.protobuf.Duration"


def converted(tree: dict[str, Any], limits: ResourceLimits | None = None) -> tuple[AnyProto, list[tuple[str, str]]]:
    """The Any that a tree makes, and the (code, path) of each finding."""
    conversion = Conversion(limits or ResourceLimits())
    packed = AnyProto()
    conversion.pack(packed, tree, (), Depth())
    return packed, [(found.code, "/".join(map(str, path))) for path, found in conversion.findings]


def cluster(**fields: Any) -> dict[str, Any]:
    return {"@type": CLUSTER, "name": "pay", **fields}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"nam": "x"}, [("XDS1013", "nam")]),
        ({"type": "EDSS"}, [("XDS1015", "type")]),
        ({"lb_policy": 99}, [("XDS1015", "lb_policy")]),
        ({"lb_policy": "99"}, [("XDS1015", "lb_policy")]),
        ({"lb_policy": 1.5}, [("XDS1014", "lb_policy")]),
        ({"alt_stat_name": 5}, [("XDS1014", "alt_stat_name")]),
        ({"alt_stat_name": "\ud800"}, [("XDS1016", "alt_stat_name")]),
        ({"connect_timeout": "5m"}, [("XDS1016", "connect_timeout")]),
        ({"connect_timeout": 5}, [("XDS1014", "connect_timeout")]),
        ({"connect_timeout": "315576000001s"}, [("XDS1016", "connect_timeout")]),
        ({"respect_dns_ttl": "sure"}, [("XDS1014", "respect_dns_ttl")]),
        ({"respect_dns_ttl": 1}, [("XDS1014", "respect_dns_ttl")]),
        ({"per_connection_buffer_limit_bytes": -1}, [("XDS1016", "per_connection_buffer_limit_bytes")]),
        ({"per_connection_buffer_limit_bytes": 2**32}, [("XDS1016", "per_connection_buffer_limit_bytes")]),
        ({"per_connection_buffer_limit_bytes": 1.5}, [("XDS1014", "per_connection_buffer_limit_bytes")]),
        ({"per_connection_buffer_limit_bytes": "1_0"}, [("XDS1014", "per_connection_buffer_limit_bytes")]),
        ({"per_connection_buffer_limit_bytes": "٣"}, [("XDS1014", "per_connection_buffer_limit_bytes")]),
        ({"health_checks": "x"}, [("XDS1014", "health_checks")]),
        ({"health_checks": [5, "x"]}, [("XDS1014", "health_checks/0"), ("XDS1014", "health_checks/1")]),
        ({"metadata": []}, [("XDS1014", "metadata")]),
        ({"metadata": {"filter_metadata": {"a": 5}}}, [("XDS1014", "metadata/filter_metadata/a")]),
        ({"metadata": {"filter_metadata": {"a": {"b": [1e999]}}}}, [("XDS1016", "metadata/filter_metadata/a/b/0")]),
        ({"type": "EDS", "cluster_type": {"name": "x"}}, [("XDS1017", "cluster_type")]),
        ({"connectTimeout": "1s", "connect_timeout": "1s"}, [("XDS1017", "connect_timeout")]),
        ({"transport_socket": {"typed_config": {"x": 1}}}, [("XDS1010", "transport_socket/typed_config")]),
        (
            {"transport_socket": {"typed_config": {"@type": GOOGLE + "envoy.nope.v3.No"}}},
            [("XDS1011", "transport_socket/typed_config/@type")],
        ),
        (
            {"transport_socket": {"typed_config": {"@type": TLS[20:]}}},
            [("XDS1019", "transport_socket/typed_config/@type")],
        ),
        ({"transport_socket": {"typed_config": {"@type": 5}}}, [("XDS1014", "transport_socket/typed_config/@type")]),
        ({"transport_socket": {"typed_config": {"@type": DURATION}}}, [("XDS1014", "transport_socket/typed_config")]),
        (
            {"transport_socket": {"typed_config": {"@type": DURATION, "value": "5", "more": 1}}},
            [("XDS1013", "transport_socket/typed_config/more"), ("XDS1016", "transport_socket/typed_config/value")],
        ),
        (
            {"transport_socket": {"typed_config": {"@type": TLS, "sni": 5, "bogus": 1}}},
            [("XDS1014", "transport_socket/typed_config/sni"), ("XDS1013", "transport_socket/typed_config/bogus")],
        ),
    ],
)
def test_convert__one_error_of_shape__is_found_at_its_place(
    fields: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    _, found = converted(cluster(**fields))

    assert found == expected


def test_convert__many_errors__are_all_found_in_one_pass() -> None:
    tree = cluster(nam=1, type="EDSS", connect_timeout=5, health_checks=[{"timeout": "x"}, {"bogus": {}}])

    _, found = converted(tree)

    assert [path for _, path in found] == [
        "nam",
        "type",
        "connect_timeout",
        "health_checks/0/timeout",
        "health_checks/1/bogus",
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"nam": "x"}, "Did you mean 'name'?"),
        ({"type": "EDSS"}, "Did you mean 'EDS'?"),
        ({"type": "qqqq"}, "STATIC, STRICT_DNS"),
        ({"connect_timeout": "5m"}, 'Write "300s".'),
        ({"connect_timeout": "100ms"}, 'Write "0.1s".'),
        ({"connect_timeout": 3}, 'Write "3s" for 3 seconds.'),
        ({"alt_stat_name": 1.1}, "Put it in quotes."),
        ({"transport_socket": {"typed_config": {"@type": TLS + "t"}}}, TLS),
    ],
)
def test_convert__an_error_with_a_likely_cause__hints_at_it(fields: dict[str, Any], words: str) -> None:
    conversion = Conversion()
    conversion.pack(AnyProto(), cluster(**fields), (), Depth())

    assert words in conversion.findings[0][1].hint


def test_convert__a_secret_of_the_wrong_type__is_never_quoted() -> None:
    secret = "-----BEGIN PRIVATE KEY-----"
    certificate = {"private_key": secret, "password": {"inline_bytes": secret}, "bogus": secret}
    tls = {"@type": TLS, "common_tls_context": {"tls_certificates": [certificate]}, "max_session_keys": secret}
    conversion = Conversion()

    conversion.pack(AnyProto(), cluster(transport_socket={"name": "tls", "typed_config": tls}), (), Depth())

    assert len(conversion.findings) == 4
    assert not any("PRIVATE" in found.detail + found.hint for _, found in conversion.findings)


def test_convert__more_than_a_hundred_errors__are_counted() -> None:
    conversion = Conversion()

    conversion.pack(AnyProto(), cluster(health_checks=[5] * 150), (), Depth())

    assert len(conversion.findings) == 100
    assert conversion.unshown == 50


def nested_any(levels: int) -> dict[str, Any]:
    """A Router inside `levels` Anys in all."""
    tree: dict[str, Any] = {"@type": ROUTER}
    for _ in range(levels - 1):
        tree = {"@type": GOOGLE + "google.protobuf.Any", "value": tree}
    return tree


def nested(levels: int, wrap: Callable[[object], object]) -> object:
    value: object = 1
    for _ in range(levels):
        value = wrap(value)
    return value


def test_convert__any_in_any__at_the_limit_passes_and_one_more_is_refused() -> None:
    assert converted(nested_any(8))[1] == []
    assert [code for code, _ in converted(nested_any(9))[1]] == ["XDS1026"]
    assert [code for code, _ in converted(nested_any(200))[1]] == ["XDS1026"]


@pytest.mark.parametrize(
    ("wrap", "cost"),
    [
        (lambda value: [value], 2),  # ListValue, Value
        (lambda value: {"k": value}, 3),  # Struct, map entry, Value
    ],
)
def test_convert__message_depth__counts_as_protobuf_does_when_it_reads_back(
    wrap: Callable[[object], object], cost: int
) -> None:
    def metadata(levels: int) -> dict[str, Any]:
        return cluster(metadata={"filter_metadata": {"a": {"b": nested(levels, wrap)}}})

    deepest = next(levels for levels in range(100) if converted(metadata(levels + 1))[1])
    packed, found = converted(metadata(deepest))
    _, refused = converted(metadata(deepest + 1))

    assert found == []
    assert deepest == (64 - 6) // cost  # Cluster, Metadata, map entry, Struct, map entry, Value
    assert new_message("envoy.config.cluster.v3.Cluster").FromString(packed.value).HasField("metadata")
    assert [code for code, _ in refused] == ["XDS1026"]


def test_convert__equal_input_in_another_order__gives_equal_bytes() -> None:
    configs = {f"filter-{number}": {"@type": ROUTER, "suppress_envoy_headers": True} for number in range(50)}
    tree = {
        "@type": GOOGLE + "envoy.config.listener.v3.Filter",
        "name": "x",
        "typed_config": {
            "@type": GOOGLE + "envoy.config.route.v3.RouteConfiguration",
            "typed_per_filter_config": configs,
            "name": "r",
        },
    }
    other = copy.deepcopy(tree)
    other["typed_config"]["typed_per_filter_config"] = dict(reversed(configs.items()))  # type: ignore[index]

    assert converted(tree)[0].SerializeToString() == converted(dict(reversed(other.items())))[0].SerializeToString()


# The oracle: what json_format reads without complaint we read the same, and what it refuses we refuse.


def filled(descriptor: Descriptor, chance: random.Random, levels: int) -> Any:
    """A message with most fields set to small random values; one member of each oneof."""
    message = class_of(descriptor)()
    for field in descriptor.fields:
        oneof = field.containing_oneof
        if oneof is not None and message.WhichOneof(oneof.name) is not None:
            continue
        if chance.random() < 0.7:
            fill_field(message, field, chance, levels)
    return message


def fill_field(message: Any, field: FieldDescriptor, chance: random.Random, levels: int) -> None:
    held = field.message_type
    if held is None:
        value = scalar(field, chance)
        if field.is_repeated:
            getattr(message, field.name).extend([value, scalar(field, chance)])
        else:
            setattr(message, field.name, value)
    elif held.GetOptions().map_entry:
        key, inner = held.fields_by_name["key"], held.fields_by_name["value"]
        target = getattr(message, field.name)
        for _ in range(2):
            if inner.message_type is None:
                target[scalar(key, chance)] = scalar(inner, chance)
            elif levels:
                value = message_value(inner.message_type, chance, levels - 1)
                target[scalar(key, chance)].MergeFromString(value.SerializeToString())
    elif levels:
        value = message_value(held, chance, levels - 1)
        if field.is_repeated:
            getattr(message, field.name).add().MergeFromString(value.SerializeToString())
        else:
            getattr(message, field.name).SetInParent()
            getattr(message, field.name).MergeFromString(value.SerializeToString())


def message_value(descriptor: Descriptor, chance: random.Random, levels: int) -> Any:
    match descriptor.full_name:
        case "google.protobuf.Any":
            packed = AnyProto()
            packed.Pack(new_message("envoy.extensions.filters.http.router.v3.Router"))
            return packed
        case "google.protobuf.Value":
            return class_of(descriptor)(string_value="v")
        case "google.protobuf.Struct":
            struct: Any = class_of(descriptor)()
            struct.update({"a": [1, None, "x", {"b": True}]})
            return struct
        case "google.protobuf.Duration" | "google.protobuf.Timestamp":
            return class_of(descriptor)(seconds=chance.randrange(10**6), nanos=chance.randrange(10**9))
        case "google.protobuf.FieldMask":
            return class_of(descriptor)(paths=["a_b", "c"])
        case _:
            return filled(descriptor, chance, levels)


def scalar(field: FieldDescriptor, chance: random.Random) -> Any:
    if field.enum_type is not None:
        return chance.choice(field.enum_type.values).number
    match field.type:
        case FieldDescriptor.TYPE_STRING:
            return chance.choice(["a", "é\n", "x" * 40, "1"])
        case FieldDescriptor.TYPE_BYTES:
            return chance.randbytes(chance.randrange(5))
        case FieldDescriptor.TYPE_BOOL:
            return chance.random() < 0.5
        case FieldDescriptor.TYPE_FLOAT | FieldDescriptor.TYPE_DOUBLE:
            return chance.choice([0.1, -2.5, 1e30, 3.0, float("inf")])
        case _:
            return chance.randrange(100)


def every_type() -> list[str]:
    return [name for name in descriptors() if not name.startswith(("google.protobuf.", "cel.", "google.api.expr"))]


def test_convert__every_known_type__reads_back_what_json_format_writes_in_both_spellings() -> None:
    chance = random.Random(7)  # noqa: S311  # variety that is the same in every run
    count = 0
    for name in every_type():
        message = filled(descriptors()[name], chance, 2)
        for original in (True, False):
            tree = json_format.MessageToDict(
                message, preserving_proto_field_name=original, descriptor_pool=schema().pool
            )
            packed, found = converted({"@type": GOOGLE + name, **json.loads(json.dumps(tree))})

            assert found == [], (name, found)
            assert class_of(descriptors()[name]).FromString(packed.value) == message, name
            assert canonical(packed.SerializeToString()) == packed.SerializeToString()
            count += 1
    assert count > 4000


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(
        ["1s", "0.5s", "EDS", "NaN", "Infinity", "aGk=", "5", "-1", "1e3", "<kept:x>", "V3", "a,b", "\ud800"]
    )
)


def near_message(draw: st.DrawFn, descriptor: Descriptor, levels: int) -> Any:
    """JSON that is nearly a message of this type: its own field names with values that may or may not fit."""
    if levels == 0 or not descriptor.fields:
        return draw(scalars)
    tree: dict[str, Any] = {}
    for _ in range(draw(st.integers(0, 4))):
        field = draw(st.sampled_from(list(descriptor.fields)))
        name = draw(st.sampled_from([field.name, field.json_name, field.name + "x"]))
        tree[name] = near_value(draw, field, levels - 1)
    return tree


def near_value(draw: st.DrawFn, field: FieldDescriptor, levels: int) -> Any:
    held = field.message_type
    if draw(st.integers(0, 9)) == 0:
        return draw(scalars)
    if held is not None and held.GetOptions().map_entry:
        inner = held.fields_by_name["value"].message_type
        value = near_message(draw, inner, levels) if inner is not None else draw(scalars)
        return {draw(st.sampled_from(["a", "1", "true", ""])): value}
    value = near_message(draw, held, levels) if held is not None else fitting(draw, field)
    return [value] if field.is_repeated else value


def fitting(draw: st.DrawFn, field: FieldDescriptor) -> Any:
    if field.enum_type is not None:
        return draw(st.sampled_from([value.name for value in field.enum_type.values] + [0, 1]))
    return draw(st.sampled_from(["text", "5"]) if field.type == FieldDescriptor.TYPE_STRING else scalars)


anys = st.fixed_dictionaries(
    {"@type": st.sampled_from([CLUSTER, ROUTER, TLS, DURATION, "x", "x/y", ""]) | scalars}
).flatmap(
    lambda head: st.dictionaries(
        st.sampled_from(["value", "name", "sni", "start_child_span"]), scalars, max_size=2
    ).map(lambda rest: {**head, **rest})
)


@st.composite
def near_clusters(draw: st.DrawFn) -> dict[str, Any]:
    tree = near_message(draw, descriptors()["envoy.config.cluster.v3.Cluster"], 3)
    if draw(st.booleans()):
        tree["transport_socket"] = {"typed_config": draw(anys)}
    return {**tree, "@type": CLUSTER}


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(near_clusters())
def test_convert__nearly_a_cluster__agrees_with_json_format_whenever_it_finds_nothing(tree: dict[str, Any]) -> None:
    conversion, packed = Conversion(), AnyProto()
    conversion.pack(packed, tree, (), Depth())

    if not conversion.findings and not conversion.spelled:
        expected = json_format.ParseDict(copy.deepcopy(tree), AnyProto(), descriptor_pool=schema().pool)
        target = new_message("envoy.config.cluster.v3.Cluster")
        ours, theirs = target.__class__.FromString(packed.value), target.__class__.FromString(expected.value)
        assert ours == theirs or "nan" in str(theirs)


json_trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["@type", "name", "value", "resource", "ttl", "aliases", "metadata", "typed_config", "a"])
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([kind.url for kind in RESOURCE_TYPES] + ["x", GOOGLE + "envoy.service.discovery.v3.Resource"]),
    json_trees,
)
def test_parse__arbitrary_json__never_raises(url: str, tree: Any) -> None:
    body = {**tree, "@type": url} if isinstance(tree, dict) else {"@type": url, "resource": tree, "name": tree}

    outcome = parse(Manifest(body))

    assert isinstance(outcome, ParsedResource | Refused)
    if isinstance(outcome, Refused):
        assert outcome.findings
    for finding in outcome.findings:
        assert finding.detail.isprintable()
        json.dumps([finding.pointer, finding.detail, finding.hint], ensure_ascii=False).encode()


def deep(levels: int) -> Iterator[dict[str, Any]]:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    yield cluster(metadata={"filter_metadata": {"x": value}})
    value = {}
    for _ in range(levels):
        value = {"not_match": value}
    yield cluster(name=value)


@pytest.mark.parametrize("levels", [60, 500, 5000])
def test_parse__a_tree_deeper_than_any_limit__is_refused(levels: int) -> None:
    for tree in deep(levels):
        assert isinstance(parse(Manifest(tree)), Refused)
