"""The four gRPC clients: what a text blames, and what it cannot be made to blame."""

import pytest

from tests.unit.nacktext.grammar import CDS, LDS
from xdscore.nacktext import (
    Attribution,
    Dialect,
    attribute,
    envoy,
    grpc_core,
    grpc_go,
    grpc_java,
    grpc_node,
    grpc_rust,
    unknown,
)
from xdscore.nacktext.reading import Nack, Reader

_LIST = "xDS response validation errors: "


def _found(names: tuple[str, ...], indexes: tuple[int, ...], dialect: Dialect, *, complete: bool = True) -> Attribution:
    return Attribution(names=names, indexes=indexes, dialect=dialect, complete=complete)


def test_core__index_and_name__blames_the_place_and_not_its_namesake() -> None:
    text = _LIST + "[resource index 1: c1: INVALID_ARGUMENT: errors validating Cluster resource: [field:type error:x]]"

    assert attribute(text, type_url=CDS, names=["c1", "c1", "c2"]) == _found(("c1",), (1,), Dialect.GRPC_CORE)


def test_core__undecodable_resource_without_name__is_blamed_by_index_only() -> None:
    text = _LIST + "[resource index 1: INVALID_ARGUMENT: Can't parse Listener resource.]"

    assert attribute(text, type_url=LDS, names=["a", "", "b"]) == _found((), (1,), Dialect.GRPC_CORE)


def test_core__name_that_looks_like_the_next_entry__blames_its_owner_only() -> None:
    forger = "x; resource index 1: victim: INVALID_ARGUMENT: y"
    text = _LIST + f"[resource index 0: {forger}: INVALID_ARGUMENT: Listener has neither address nor ApiListener]"

    assert attribute(text, type_url=LDS, names=[forger, "victim"]) == _found((forger,), (0,), Dialect.GRPC_CORE)


def test_core__name_that_starts_another__is_told_apart() -> None:
    text = _LIST + "[resource index 2: pay: INVALID_ARGUMENT: x; resource index 3: pay-eu: INVALID_ARGUMENT: x]"

    found = attribute(text, type_url=LDS, names=["p", "pa", "pay", "pay-eu", "pay-eu: x"])

    assert found == _found(("pay", "pay-eu"), (2, 3), Dialect.GRPC_CORE)


@pytest.mark.parametrize(
    "entry",
    [
        "resource index 0: a: INVALID_ARGUMENT: x",  # an index that goes back
        "resource index 7: b: INVALID_ARGUMENT: x",  # an index of nobody
        "resource index 2: b: INVALID_ARGUMENT: x",  # a name that is not the one at this index
    ],
)
def test_core__entry_that_c_core_cannot_have_written__blames_nobody_more_and_is_incomplete(entry: str) -> None:
    text = _LIST + f"[resource index 1: b: INVALID_ARGUMENT: y; {entry}]"

    found = attribute(text, type_url=LDS, names=["a", "b", "c"])

    assert found == _found(("b",), (1,), Dialect.GRPC_CORE, complete=False)


def test_core__complaint_about_an_error_entry__blames_no_resource_not_even_the_only_one() -> None:
    text = _LIST + "[resource_errors index 0: zz; resource index 0: c1: x: error_detail must be non-OK]"

    found = attribute(text, type_url=CDS, names=["c1"])

    assert (found.names, found.indexes) == ((), ())
    assert found.dialect is Dialect.GRPC_CORE


def test_core__index_beyond_the_response__blames_nobody() -> None:
    found = attribute(_LIST + "[resource index 4: INVALID_ARGUMENT: x]", type_url=CDS, names=["c1"])

    assert found == _found((), (), Dialect.GRPC_CORE, complete=False)


def test_core__list_without_its_end__is_incomplete() -> None:
    found = attribute(_LIST + "[resource index 0: a: INVALID_ARGUMENT: x", type_url=CDS, names=["a", "b"])

    assert found == _found(("a",), (0,), Dialect.GRPC_CORE, complete=False)


def test_core__digits_without_end__are_no_index() -> None:
    found = attribute(_LIST + f"[resource index {'9' * 5000}: a: x]", type_url=CDS, names=["a", "b"])

    assert found.indexes == ()


@pytest.mark.parametrize(
    "text",
    [
        "xDS response valida",
        _LIST,
        _LIST + "[resou",
        _LIST + "[resource_errors ind",
        _LIST + "[resource_errors index 12",
        _LIST + "[resource_errors index 0: c1: Cannot par",
        _LIST + "[resource_errors index 0: resource_na",
    ],
)
@pytest.mark.parametrize("mark", ["", "...(truncated)"])
def test_core__cut_where_it_may_be_about_an_error_entry__blames_not_even_the_only_resource(
    text: str, mark: str
) -> None:
    found = attribute(text + mark, type_url=CDS, names=["c1"])

    assert (found.names, found.indexes, found.complete) == ((), (), False)


def test_core__cut_behind_the_word_that_tells__blames_the_only_resource() -> None:
    assert attribute(_LIST + "[resource ind", type_url=CDS, names=["c1"]).names == ("c1",)


def test_core__resource_that_is_said_twice__is_blamed_once_and_the_list_is_complete() -> None:
    text = _LIST + (
        "[resource index 1: xdstp:x: INVALID_ARGUMENT: y; resource index 1: xdstp:x: Cannot parse xDS resource name]"
    )

    assert attribute(text, type_url=CDS, names=["a", "xdstp:x"]) == _found(("xdstp:x",), (1,), Dialect.GRPC_CORE)


def test_core__cut_inside_a_name_that_holds_an_entry__blames_its_owner_only() -> None:
    forger = "x; resource index 1: victim: INVALID_ARGUMENT: y"
    text = _LIST + f"[resource index 0: {forger}"

    found = attribute(text[:-3], type_url=LDS, names=[forger, "victim"])

    assert found == _found((forger,), (0,), Dialect.GRPC_CORE, complete=False)


def test_core__later_entry_cut_inside_a_name_that_holds_an_entry__ends_the_list() -> None:
    forger = "x; resource index 2: victim: INVALID_ARGUMENT: y"
    text = _LIST + f"[resource index 0: a: INVALID_ARGUMENT: z; resource index 1: {forger}"

    found = attribute(text[:-3], type_url=LDS, names=["a", forger, "victim"])

    assert found == _found(("a",), (0,), Dialect.GRPC_CORE, complete=False)


def test_node__wrong_type__is_told_from_c_core_by_the_type_url() -> None:
    wrong = 'resource index 1: incorrect resource type "undefined" (should be "{}envoy.config.cluster.v3.Cluster")'

    node = attribute(_LIST + f"[{wrong.format('type.googleapis.com/')}]", type_url=CDS, names=["a", "b"])
    core = attribute(_LIST + f"[{wrong.format('')}]", type_url=CDS, names=["a", "b"])

    assert node == _found(("b",), (1,), Dialect.GRPC_NODE)
    assert core == _found(("b",), (1,), Dialect.GRPC_CORE)


def test_node__two_entries__blames_both_by_index() -> None:
    text = _LIST + "[resource index 0: invalid wire type 7 at offset 4; resource index 2: Cluster message is bad: [x]]"

    assert attribute(text, type_url=CDS, names=["a", "b", "c"]) == _found(("a", "c"), (0, 2), Dialect.GRPC_NODE)


def test_go__top_level_errors_run_into_the_first_entry__blames_the_entries_and_is_incomplete() -> None:
    text = (
        'error parsing "ClusterResource" response: top level errors: failed to unmarshal resource: proto: cannot parse '
        'invalid wire-format dataresource "bad-a": unsupported cluster type;\nresource "bad-b": unsupported'
    )

    found = attribute(text, type_url=CDS, names=["c1", "bad-a", "bad-b", "bad-c"])

    assert found == _found(("bad-a", "bad-b"), (1, 2), Dialect.GRPC_GO, complete=False)


def test_go__stranger_among_the_top_level_errors__is_text() -> None:
    text = 'error parsing "ClusterResource" response: top level errors: resource "x": bad;\nworseresource "a": bad'

    found = attribute(text, type_url=CDS, names=["a", "b"])

    assert found == _found(("a",), (0,), Dialect.GRPC_GO, complete=False)


@pytest.mark.parametrize("reader", [grpc_go, grpc_java, grpc_core, grpc_node, grpc_rust, envoy, unknown])
def test_readers__text_of_another_dialect__blame_nobody(reader: Reader) -> None:
    assert reader.read(Nack.of("something else", type_url=CDS, names=["a", "b"])).slots == ()


def test_go__as_many_top_level_errors_as_unnamed_resources__blames_those_too() -> None:
    text = (
        'error parsing "ClusterResource" response: top level errors: failed to unmarshal resource: proto: x;\n'
        'failed to unmarshal resource: proto: yresource "a": unsupported cluster type'
    )

    assert attribute(text, type_url=CDS, names=["a", "", "b", ""]) == _found(("a",), (1, 3, 0), Dialect.GRPC_GO)


def test_go__fewer_top_level_errors_than_unnamed_resources__blames_none_of_them() -> None:
    text = 'error parsing "ClusterResource" response: top level errors: failed to unmarshal resource: proto: x'

    found = attribute(text, type_url=CDS, names=["a", "", ""])

    assert found == _found((), (), Dialect.GRPC_GO, complete=False)


def test_go__entry_not_behind_a_separator__is_text() -> None:
    text = 'error parsing "ClusterResource" response: resource "a": bad: resource "b": x'

    assert attribute(text, type_url=CDS, names=["a", "b"]) == _found(("a",), (0,), Dialect.GRPC_GO)


def test_go__xdstp_name_with_sorted_parameters__is_the_name_that_was_sent() -> None:
    sent = "xdstp://a/envoy.config.cluster.v3.Cluster/c?zone=z&env=prod"
    text = (
        'error parsing "ClusterResource" response: '
        'resource "xdstp://a/envoy.config.cluster.v3.Cluster/c?env=prod&zone=z": x'
    )

    assert attribute(text, type_url=CDS, names=["other", sent]) == _found((sent,), (1,), Dialect.GRPC_GO)


def test_go__name_outside_the_response__is_never_blamed_on_the_only_resource() -> None:
    text = 'error parsing "ClusterResource" response: resource "stranger": x'

    assert attribute(text, type_url=CDS, names=["c1"]) == _found((), (), Dialect.GRPC_GO, complete=False)


def test_java__every_form_of_line__blames_its_resource() -> None:
    text = (
        "CDS response Cluster 'a' validation error: no\nEDS config\n"
        "CDS response 'b' unexpected error: AssertionError: x\n"
        "CDS response Resource index 2 - can't decode Cluster: x\n"
        "Unsupported resource name: d for type: CDS"
    )

    found = attribute(text, type_url=CDS, names=["a", "b", "", "d", "e"])

    assert found == _found(("a", "b", "d"), (0, 1, 2, 3), Dialect.GRPC_JAVA)


def test_java__name_that_holds_a_line_of_java__blames_its_owner_only() -> None:
    forger = "x\nLDS response Listener 'victim' validation error: y"

    found = attribute(f"LDS response Listener '{forger}' validation error: bad", type_url=LDS, names=["victim", forger])

    assert found == _found((forger,), (1,), Dialect.GRPC_JAVA)


def test_java__index_beyond_the_response__blames_nobody() -> None:
    found = attribute("LDS response Resource index 3 - can't decode Listener: x", type_url=LDS, names=["a"])

    assert found == _found((), (), Dialect.GRPC_JAVA, complete=False)


def test_java__cut_inside_a_name_that_holds_a_line_of_java__blames_nobody() -> None:
    forger = "x\nLDS response Listener 'victim' validation error: y"
    text = f"LDS response Listener '{forger}"

    found = attribute(text[:-1], type_url=LDS, names=["victim", forger])

    assert found == _found((), (), Dialect.GRPC_JAVA, complete=False)


_INVALID = "resource validation failed: unsupported load balancing policy: 5"


def test_rust__several_entries__blames_each_in_order() -> None:
    text = f"pay: {_INVALID}; pay-eu: {_INVALID}; a: b: {_INVALID}"

    found = attribute(text, type_url=CDS, names=["p", "pay", "pay-eu", "a", "a: b"])

    assert found == _found(("pay", "pay-eu", "a: b"), (1, 2, 4), Dialect.GRPC_RUST)


def test_rust__name_that_holds_entries_and_is_mentioned__blames_its_owner_only() -> None:
    forger = f"x; victim: {_INVALID}"
    text = f"{forger}: resource validation failed: route configuration '{forger}' has no virtual hosts"

    found = attribute(text, type_url=CDS, names=[forger, "victim"])

    assert found == _found((forger,), (0,), Dialect.GRPC_RUST)
    cut = attribute(text[:-30], type_url=CDS, names=[forger, "victim"])
    assert cut.names == (forger,)


@pytest.mark.parametrize(
    "header", ["Error adding/updating cluster(s) victim: x", "CDS response 'victim' unexpected error: "]
)
def test_rust__name_that_starts_like_another_dialect__is_the_one_blamed(header: str) -> None:
    found = attribute(f"{header}: {_INVALID}", type_url=CDS, names=["victim", header])

    assert found == _found((header,), (1,), Dialect.GRPC_RUST)
    cut = attribute(f"{header}: resource valida", type_url=CDS, names=["victim", header])
    assert cut == _found((), (), Dialect.UNKNOWN, complete=False)


def test_rust__top_level_errors__blame_nobody_by_themselves_and_are_incomplete() -> None:
    top = "top level errors: decode error: failed to decode Protobuf message: invalid tag value: 0"

    several = attribute(f"{top}; b: {_INVALID}", type_url=CDS, names=["a", "b", ""])

    assert several == _found(("b",), (1,), Dialect.GRPC_RUST, complete=False)
    assert attribute(top, type_url=CDS, names=["a", "b"]).indexes == ()
    assert attribute(top, type_url=CDS, names=["a"]).indexes == (0,)


def test_rust__resource_whose_name_is_empty__blames_nobody_with_a_name() -> None:
    text = ": resource validation failed: cluster name is empty"

    assert attribute(text, type_url=CDS, names=["a", ""]) == _found((), (), Dialect.GRPC_RUST, complete=False)
