"""Envoy's texts: what they blame, what they cannot be made to blame, and where they name nobody."""

import pytest

from tests.unit.nacktext.grammar import CDS, EDS, LDS, RDS
from xdscore.nacktext import Dialect, attribute

_CLUSTERS = "Error adding/updating cluster(s) "
_LISTENERS = "Error adding/updating listener(s) "


def _names(message: str, names: list[str], type_url: str = CDS) -> tuple[str, ...]:
    found = attribute(message, type_url=type_url, names=names)
    assert found.dialect is Dialect.ENVOY
    return found.names


def test_list__separator_in_a_text__is_no_entry_unless_a_name_follows() -> None:
    message = _CLUSTERS + "b: bad path, see: docs, or ask, c: bad"

    assert _names(message, ["a", "b", "c", "see", "ask"]) == ("b", "see")
    assert _names(message, ["a", "b", "c", "d"]) == ("b", "c")


def test_list__name_that_goes_back_in_the_response__is_text() -> None:
    found = attribute(_CLUSTERS + "c: bad value, type: x", type_url=CDS, names=["type", "b", "c"])

    assert found.names == ("c",)
    assert not found.complete


def test_list__name_repeated_in_its_own_text__is_no_entry() -> None:
    forger = "x, victim: y"
    message = _CLUSTERS + f"{forger}: cluster provided LB specified but cluster '{forger}' did not provide one."

    found = attribute(message, type_url=CDS, names=[forger, "victim"])

    assert found.names == (forger,)
    assert found.complete


def test_list__name_that_is_the_separator__hides_no_entry_behind_a_quoted_word() -> None:
    assert _names(_CLUSTERS + ", : not 'A' or 'B', ': not 'A' or 'B'", [", ", "'"]) == (", ", "'")


def test_list__names_that_start_and_end_one_another__are_told_apart() -> None:
    names = ["pay", "pay-eu", "eu", "pay: eu", "pay-eu-1"]

    assert _names(_CLUSTERS + "pay-eu: bad, pay: eu: bad", names) == ("pay-eu", "pay: eu")


def test_list__cluster_found_twice__blames_both_places() -> None:
    found = attribute(_LISTENERS + "d: duplicate listener d found\n", type_url=LDS, names=["a", "d", "d"])

    assert (found.names, found.indexes) == (("d",), (1, 2))


def test_list__cut_inside_a_name_that_another_one_starts__does_not_blame_the_other() -> None:
    found = attribute(_CLUSTERS + "bad-1: x, bad-2...(truncated)", type_url=CDS, names=["bad-1", "bad-2", "bad-20"])

    assert found.names == ("bad-1",)
    assert not found.complete


def test_list__cut_where_a_longer_name_may_go_on__blames_neither() -> None:
    found = attribute(_CLUSTERS + "a: b...(truncated)", type_url=CDS, names=["a", "a: bc", "d"])

    assert found.names == ()


def test_list__line_of_a_dump__is_no_entry() -> None:
    message = (
        _LISTENERS + 'l1: goo.gle/debugstr   \nname: "l2"\ntype: STATIC\nport: 1\naddress: "x"\n'
        ": Proto constraint validation failed (HttpConnectionManagerValidationError.X: y)\nname: bad\n"
    )

    assert _names(message, ["l1", "type", "port", "address", "name"], LDS) == ("l1", "name")


def test_list__dump_without_end__does_not_hide_the_next_entry() -> None:
    message = _LISTENERS + "l1: Field 'weight' is missing in: goo.gle/debugstr   \nname: \"c1\"\n\nl2: missing ): (\n"

    assert _names(message, ["l1", "l2", "name"], LDS) == ("l1", "l2")


def test_list__first_entry_of_a_stranger__blames_only_whom_it_names() -> None:
    assert attribute(_CLUSTERS + "stranger: x", type_url=CDS, names=["c1"]).names == ()
    found = attribute(_CLUSTERS + "stranger: x, c1: y", type_url=CDS, names=["c1"])
    assert found.names == ("c1",)
    assert not found.complete


@pytest.mark.parametrize("mark", ["", "...(truncated)", "...(trunc"])
def test_list__cut_inside_a_name_that_holds_an_entry__does_not_blame_whom_it_holds(mark: str) -> None:
    forger = "x, victim: y"

    assert _names(_CLUSTERS + "x, victim: " + mark, [forger, "victim"]) == ()
    assert _names(_CLUSTERS + f"{forger}: bad, x, victim: " + mark, [forger, f"{forger}2", "victim"]) == (forger,)


def test_list__cut_inside_a_mention_of_a_name_that_holds_an_entry__does_not_blame_whom_it_holds() -> None:
    forger = "x, victim: y"
    message = _CLUSTERS + f"{forger}: cluster provided LB specified but cluster 'x, victim: "

    assert _names(message, [forger, "victim"]) == (forger,)


@pytest.mark.parametrize("value", ["", "S", "tr", "-"])
def test_list__dump_cut_inside_a_value__is_no_entry_of_the_field(value: str) -> None:
    message = _LISTENERS + f'l1: goo.gle/debugstr   \nname: "l2"\ntype: {value}'

    assert _names(message, ["l1", "type"], LDS) == ("l1",)


def test_list__without_the_line_end_that_ends_it__is_incomplete() -> None:
    whole = attribute(_LISTENERS + "l1: missing ): (\n", type_url=LDS, names=["l1", "l2"])
    cut = attribute(_LISTENERS + "l1: missing ): (", type_url=LDS, names=["l1", "l2"])

    assert (whole.names, whole.complete) == (("l1",), True)
    assert (cut.names, cut.complete) == (("l1",), False)


def test_on_demand_cluster__name_that_holds_the_dash__is_exact() -> None:
    message = "Error adding/updating cluster a - b - a - b: malformed IP address: x"

    found = attribute(message, type_url=CDS, names=["a", "a - b"])

    assert (found.names, found.complete, found.dialect) == (("a - b",), True, Dialect.ENVOY)
    assert _names("Error adding/updating cluster stranger - stranger: x", ["a"]) == ()
    assert _names("Error adding/updating cluster a - b...(truncated)", ["a", "a - b"]) == ()


def test_line_of_envoys_log_about_a_rejected_resource__is_no_nack_and_blames_nobody() -> None:
    # Envoy 1.40 logs it (envoyproxy/envoy#44664); a NACK with such a text is not Envoy's.
    found = attribute("cds: cluster 'b' config rejected: malformed IP address: x", type_url=CDS, names=["a", "b"])

    assert (found.names, found.indexes, found.dialect) == ((), (), Dialect.UNKNOWN)


def _dump(fields: str, rule: str) -> str:
    return f"goo.gle/debugproto    \n{fields}\n: Proto constraint validation failed ({rule}: value is bad)"


def test_rule__dump_of_the_resource__blames_its_own_name_only() -> None:
    fields = 'name: "b"\nload_assignment {\n  cluster_name: "c"\n  name: "a"\n}'

    assert _names(_dump(fields, "ClusterValidationError.X"), ["a", "b", "c"]) == ("b",)


def test_rule__name_that_looks_like_fields__is_unescaped_and_exact() -> None:
    forger = 'x"\nname: "victim'
    escaped = forger.replace('"', '\\"').replace("\n", "\\n")

    assert _names(_dump(f'name: "{escaped}"', "ClusterValidationError.X"), ["victim", forger]) == (forger,)


def test_rule__name_beyond_ascii_as_octal_bytes__is_found() -> None:
    assert _names(_dump('name: "caf\\303\\251"', "ClusterValidationError.X"), ["café", "cafe"]) == ("café",)


def test_rule__assignment__is_named_by_its_cluster() -> None:
    fields = 'cluster_name: "e2"\nendpoints {\n}'

    assert _names(_dump(fields, "ClusterLoadAssignmentValidationError.X"), ["e1", "e2"], EDS) == ("e2",)


def test_rule__dump_of_a_part_of_a_resource__blames_nobody() -> None:
    message = _dump('name: "r2"', "WeightedCluster_ClusterWeightValidationError.X")

    assert _names(message, ["r1", "r2"], RDS) == ()


def test_rule__resource_without_name__is_blamed_by_index_only() -> None:
    message = _dump("type: STATIC", "ClusterValidationError.Name")

    assert attribute(message, type_url=CDS, names=["a", "", "b"]).indexes == (1,)
    assert attribute(message, type_url=CDS, names=["a", "", ""]).indexes == ()


def test_rule__older_form_with_the_dump_behind__blames_the_same() -> None:
    message = (
        'Proto constraint validation failed (ClusterValidationError.X: ["value is bad"]): name: "b"\nalt_name: "a"\n'
    )

    assert _names(message, ["a", "b"]) == ("b",)


@pytest.mark.parametrize(
    ("type_url", "fields", "expected"),
    [
        (CDS, 'name: "b"\ntype: STA', ("b",)),
        (RDS, 'name: "b"\nvirtual_hosts {\n  name: "v', ("b",)),
        (RDS, 'name: "b"\nclusters {\n', ()),
        (CDS, 'name: "b', ()),
        (CDS, "type: STATIC\n", ()),
    ],
)
def test_rule__dump_that_was_cut__blames_only_what_is_surely_a_whole_resource(
    type_url: str, fields: str, expected: tuple[str, ...]
) -> None:
    message = f"goo.gle/debugstr   \n{fields}...(truncated)"

    found = attribute(message, type_url=type_url, names=["a", "b", "", "c"])

    assert found.names == expected
    assert len(found.indexes) == len(expected)
    assert not found.complete


def _response(*types: str) -> str:
    resources = "".join(f'resources {{\n  [{kind}] {{\n    name: "x"\n  }}\n}}\n' for kind in types)
    return f'goo.gle/debugstr   \nversion_info: "n16"\n{resources}type_url: "{CDS}"\n'


def test_other_type__dump_of_the_response__blames_the_first_of_that_type_by_place() -> None:
    message = f"{RDS} does not match the message-wide type URL {CDS} in DiscoveryResponse {_response(CDS, RDS, RDS)}"

    found = attribute(message, type_url=CDS, names=["a", "b", "c"])

    assert (found.names, found.indexes, found.dialect) == (("b",), (1,), Dialect.ENVOY)


def test_other_type__wrapped_in_a_delta_response__is_found_inside_its_wrapper() -> None:
    dump = (
        f'resources {{\n  name: "x"\n  version: "1"\n  resource {{\n    [{CDS}] {{\n    }}\n  }}\n}}\n'
        f'resources {{\n  name: "y"\n  resource {{\n    type_url: "{RDS}"\n  }}\n}}\n'
    )
    message = (
        f"type URL {RDS} embedded in an individual Any does not match the message-wide type URL {CDS} "
        f"in DeltaDiscoveryResponse goo.gle/debugstr   \n{dump}"
    )

    assert _names(message, ["a", "b", "c"]) == ("b",)


def test_other_type__more_resources_than_the_response_has__blames_nobody() -> None:
    message = f"{RDS} does not match the message-wide type URL {CDS} in DiscoveryResponse {_response(CDS, CDS, RDS)}"

    assert _names(message, ["a", "b"]) == ()


def test_undecodable__single_resource_without_name__is_the_one() -> None:
    message = 'Unable to unpack as envoy.config.cluster.v3.Cluster: goo.gle/debugstr   \nvalue: "\\377"\n'

    assert attribute(message, type_url=CDS, names=["a", "", "b"]).indexes == (1,)
    assert attribute(message, type_url=CDS, names=["", "", "b"]).indexes == ()
    assert attribute(message, type_url=CDS, names=["a", "b"]).indexes == ()


def test_delta_duplicate__name_with_the_words_of_the_text__is_exact() -> None:
    name = "r1 found among added/updated resources"

    assert _names(f"duplicate name {name} found among added/updated resources", ["r1", name], RDS) == (name,)


def test_route_domains__text_that_ends_with_the_name__blames_it() -> None:
    wildcard = "Only a single wildcard domain is permitted in route r2"
    twice = "Only unique values for domains are permitted. Duplicate entry of domain a.b in route http in route 80"

    assert _names(wildcard, ["r1", "r2"], RDS) == ("r2",)
    assert _names(twice, ["80", "http in route 80", "http"], RDS) == ("http in route 80",)
    assert _names(wildcard, ["r1", "r"], RDS) == ()


@pytest.mark.parametrize(
    "message",
    [
        "malformed IP address: not-an-ip. Consider setting resolver_name",
        "Invalid duration: Expected positive duration: goo.gle/debugonly    \nseconds: -1\n",
        "route: unknown cluster 'a'",
        "Field 'weight' is missing in: goo.gle/debugstr   \nname: \"a\"\n",
    ],
)
def test_bare_text__several_resources__blames_nobody_although_a_name_occurs(message: str) -> None:
    assert _names(message, ["a", "b"], RDS) == ()
