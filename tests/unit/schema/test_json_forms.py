"""Scalars, maps and the google.protobuf types with a JSON of their own: what is read and what is refused."""

from typing import Any

import pytest
from google.protobuf.any_pb2 import Any as AnyProto

from xdscore.schema.convert import Conversion, Depth
from xdscore.schema.positions import label_of, path_of, pointer_of
from xdscore.schema.types_registry import new_message

GOOGLE = "type.googleapis.com/"


def read(name: str, value: object) -> tuple[Any, list[tuple[str, str]]]:
    """A google.protobuf type read from its JSON inside an Any, and the codes and labels of what was refused."""
    conversion = Conversion()
    packed = AnyProto()
    conversion.pack(packed, {"@type": f"{GOOGLE}google.protobuf.{name}", "value": value}, (), Depth())
    message = new_message(f"google.protobuf.{name}")
    message.ParseFromString(packed.value)
    return message, [(found.code, found.detail) for _, found in conversion.findings]


@pytest.mark.parametrize(
    ("name", "value", "fields"),
    [
        ("Duration", "1.5s", {"seconds": 1, "nanos": 500_000_000}),
        ("Duration", "-0.25s", {"seconds": 0, "nanos": -250_000_000}),
        ("Duration", "315576000000s", {"seconds": 315_576_000_000}),
        ("Timestamp", "1970-01-01T00:00:01.5Z", {"seconds": 1, "nanos": 500_000_000}),
        ("FieldMask", "aB,c", {"paths": ["a_b", "c"]}),
        ("BytesValue", "_-8=", {"value": b"\xff\xef"}),
        ("BytesValue", "/+8", {"value": b"\xff\xef"}),
        ("Int64Value", "-9223372036854775808", {"value": -(2**63)}),
        ("UInt64Value", "18446744073709551615", {"value": 2**64 - 1}),
        ("UInt32Value", 7.0, {"value": 7}),
        ("DoubleValue", "-1.5e3", {"value": -1500.0}),
        ("DoubleValue", "Infinity", {"value": float("inf")}),
        ("FloatValue", 3.4028234663852886e38, {"value": 3.4028234663852886e38}),
        ("BoolValue", False, {"value": False}),
        ("StringValue", "é", {"value": "é"}),
    ],
)
def test_well_known__in_its_json_form__is_read(name: str, value: object, fields: dict[str, Any]) -> None:
    message, found = read(name, value)

    assert found == []
    assert {key: getattr(message, key) for key in fields} == fields


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("Duration", "1.0000000001s", "XDS1016"),
        ("Duration", "s", "XDS1016"),
        ("Duration", "forever", "XDS1016"),
        ("Duration", [], "XDS1014"),
        ("Timestamp", "yesterday", "XDS1016"),
        ("Timestamp", "2026-13-01T00:00:00Z", "XDS1016"),
        ("Timestamp", 5, "XDS1014"),
        ("FieldMask", "a_b", "XDS1016"),
        ("BytesValue", "a!b", "XDS1016"),
        ("BytesValue", "a", "XDS1016"),
        ("BytesValue", "é", "XDS1016"),
        ("BytesValue", 5, "XDS1014"),
        ("Int64Value", 2**63, "XDS1016"),
        ("Int64Value", "9" * 20, "XDS1016"),
        ("Int64Value", "9" * 21, "XDS1016"),
        ("Int64Value", True, "XDS1014"),
        ("Int64Value", "010", "XDS1014"),
        ("DoubleValue", "1_0", "XDS1014"),
        ("DoubleValue", True, "XDS1014"),
        ("DoubleValue", float("nan"), "XDS1016"),
        ("DoubleValue", 10**400, "XDS1016"),
        ("FloatValue", 3.5e38, "XDS1016"),
        ("BoolValue", "sure", "XDS1014"),
        ("Struct", [], "XDS1014"),
        ("Struct", {"a": 10**400}, "XDS1016"),
        ("Struct", {"a": {"b": ["\ud800"]}}, "XDS1016"),
        ("Struct", {"\ud800": 1}, "XDS1016"),
        ("Struct", {"a": {1, 2}}, "XDS1014"),
        ("ListValue", {"wrong": 1}, "XDS1013"),
    ],
)
def test_well_known__in_another_form__is_refused(name: str, value: object, code: str) -> None:
    _, found = read(name, value)

    assert [found_code for found_code, _ in found] == [code]


def test_struct__an_error_inside__is_named_by_its_member() -> None:
    _, found = read("Struct", {"a": {"pin": [1, 10**400]}})

    assert found == [("XDS1016", "'pin[1]' is a number that does not fit.")]


def test_map__keys_of_other_types__are_written_as_strings() -> None:
    """`map<uint32, …>` and `map<bool, …>` exist; JSON objects have string keys only."""
    conversion = Conversion()
    good, bad = new_message("cel.expr.CheckedExpr"), new_message("cel.expr.CheckedExpr")

    conversion.fill(good, {"type_map": {"7": {"dyn": {}}}}, (), Depth())
    assert conversion.findings == []
    conversion.fill(bad, {"type_map": {"x": {}, "-": {}}}, (), Depth())

    assert list(good.type_map) == [7]  # type: ignore[attr-defined]
    assert [(found.code, path) for path, found in conversion.findings] == [
        ("XDS1014", ("type_map", "x")),
        ("XDS1014", ("type_map", "-")),
    ]


def test_message__with_a_required_field_of_proto2__is_refused_not_raised() -> None:
    conversion = Conversion()

    conversion.pack(AnyProto(), {"@type": GOOGLE + "google.protobuf.UninterpretedOption", "name": [{}]}, (), Depth())

    assert [found.code for _, found in conversion.findings] in (["XDS1018"], ["XDS1011"])


def test_pointer__escapes__go_both_ways() -> None:
    tree = {"a/b": [{"~": 1}]}

    assert pointer_of(("a/b", 0, "~")) == "/a~1b/0/~0"
    assert path_of("/a~1b/0/~0", tree) == ("a/b", 0, "~")
    assert path_of("/a~1b/7/x", tree) == ("a/b", 7, "x")
    assert path_of("", tree) == ()
    assert pointer_of(("\ud800",)) == "/?"


def test_label__item_of_a_list__names_the_list() -> None:
    assert label_of(("a", "domains", 0)) == "domains[0]"
    assert label_of(("a", 1, 2)) == "a[1][2]"
    assert label_of(()) == ""
