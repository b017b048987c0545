"""Lines of a resource's YAML are those that its writer and its reader agree on."""

from collections.abc import Iterator
from pathlib import Path as File
from typing import Any

import pytest
from google.protobuf.any_pb2 import Any as AnyProto
from hypothesis import given
from hypothesis import strategies as st

from xdscore.schema import Media, ParsedResource, parse, read_manifests, read_text, to_json
from xdscore.schema.manifest import Manifest
from xdscore.schema.positions import Path
from xdscore.schema.walk import AnyMessage, unpack
from xdscore.schema.yaml_lines import Lines, lines_above
from xdscore.schema.yaml_out import yaml_of

GOLDEN = sorted((File(__file__).parents[2] / "golden" / "manifests").glob("*.in.*"))
ROUTE = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
STRING = "type.googleapis.com/google.protobuf.StringValue"
FREE = {"metadata", "layer", "value"}  # free JSON; `value`: of a TypedStruct
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8) | st.text(
    st.sampled_from("ab :#'\n\té\x85-"), min_size=1, max_size=300
)


def parsed(tree: dict[str, Any]) -> ParsedResource:
    found = parse(Manifest(tree))
    assert isinstance(found, ParsedResource), found.findings
    return found


def message_of(resource: ParsedResource) -> AnyMessage:
    return unpack(AnyProto.FromString(resource.any_bytes))


def paths(tree: Any, path: Path = ()) -> Iterator[Path]:
    """Every path in a tree; what is free JSON is one value."""
    yield path
    if isinstance(tree, dict) and not FREE.intersection(path):
        for key, value in tree.items():
            if key != "@type":
                yield from paths(value, (*path, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from paths(value, (*path, index))


def assert_same(resource: ParsedResource, *, name: str = "", ttl_ms: int = 0) -> None:
    tree = to_json(resource.any_bytes, lambda _: "0" * 40, xds_name=name, ttl_ms=ttl_ms)
    text = yaml_of(tree)
    [document] = read_text(text.encode(), Media.YAML).documents
    assert document.tree == tree
    wrapped = lines_above(named=bool(name), ttl=bool(ttl_ms)) if name or ttl_ms else 0

    lines = Lines(message_of(resource), wrapped)

    inner = tree["resource"] if wrapped else tree
    for path in paths(inner):
        assert lines.at(path) == document.positions.at(lines.root + path)[0], (path, text)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case.name)
def test_lines__of_each_golden_manifest__are_those_of_its_yaml(case: File) -> None:
    manifests, _ = read_manifests(case.read_bytes(), Media.JSON if case.suffix == ".json" else Media.YAML)
    for manifest in manifests:
        found = parse(manifest)
        if isinstance(found, ParsedResource):
            assert_same(found)
            assert_same(found, name="xdstp://a/b/c", ttl_ms=60_000)


@given(st.lists(TEXTS, max_size=3), TEXTS, st.dictionaries(TEXTS, TEXTS | st.none() | st.lists(TEXTS, max_size=2)))
def test_lines__around_texts_of_any_length__are_those_of_its_yaml(
    texts: list[str], key: str, free: dict[str, Any]
) -> None:
    routes = [
        {
            "match": {"prefix": text},
            "metadata": {"filter_metadata": {key: free}},
            "direct_response": {"status": 200, "body": {"inline_string": text}},
            "stat_prefix": text,
        }
        for text in texts
    ]
    whole: dict[str, Any] = {
        "@type": ROUTE,
        "name": "r",
        "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [*routes, {"match": {"prefix": "/"}}]}],
        "internal_only_headers": ["x"],
    }
    found = parse(Manifest(whole))
    if isinstance(found, ParsedResource):
        assert_same(found)


def test_lines__around_texts_about_as_long_as_a_line__are_those_of_its_yaml() -> None:
    routes = [
        {
            "match": {"prefix": "/" + ("ab " * 60)[:length]},
            "direct_response": {"status": 200, "body": {"inline_string": ("a " * 90)[:length]}},
        }
        for length in range(80, 130)
    ]
    assert_same(
        parsed({"@type": ROUTE, "name": "r", "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": routes}]})
    )


@given(st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_lines__behind_keys_of_any_length__are_those_of_its_yaml(entries: dict[str, str]) -> None:
    config = {key: {"@type": STRING, "value": text} for key, text in entries.items()}
    whole = {
        "@type": ROUTE,
        "name": "r",
        "typed_per_filter_config": config,
        "most_specific_header_mutations_wins": True,
    }
    assert_same(parsed(whole))


def test_at__what_is_not_there__is_the_line_of_what_is_around_it() -> None:
    host = {"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "c"}}]}
    lines = Lines(message_of(parsed({"@type": ROUTE, "name": "r", "virtual_hosts": [host]})))

    route: Path = ("virtual_hosts", 0, "routes", 0)
    assert lines.at(()) == 1
    assert lines.at((*route, "match", "headers", 3)) == lines.at((*route, "match"))
    assert lines.at((*route[:3], 7)) == lines.at(route[:3])
    assert lines.at(("nothing",)) == 1
