"""Labels in manifests: they are read beside the message, and what is wrong with them has its place."""

from xdscore.schema import Media, ParsedResource, Refused, parse, read_manifests
from xdscore.schema.manifest import Manifest

CLUSTER = '"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: pay\nconnect_timeout: 1s\n'
WRAPPED = """"@type": type.googleapis.com/envoy.service.discovery.v3.Resource
"@labels": {team: pay}
name: pay
ttl: 30s
resource:
  "@type": type.googleapis.com/envoy.service.runtime.v3.Runtime
  name: pay
"""


def read(text: str) -> ParsedResource | Refused:
    (manifest,), findings = read_manifests(text.encode(), Media.YAML)
    assert not findings
    return parse(manifest)


def test_parse__labels_beside_the_message__are_its_labels_and_no_part_of_its_content() -> None:
    plain, labelled = read(CLUSTER), read(CLUSTER + '"@labels": {team: pay, tier: ""}\n')

    assert isinstance(plain, ParsedResource)
    assert isinstance(labelled, ParsedResource)
    assert (plain.labels, labelled.labels) == (None, {"team": "pay", "tier": ""})
    assert plain.any_bytes == labelled.any_bytes


def test_parse__labels_beside_a_wrapper__are_read_too() -> None:
    found = read(WRAPPED)

    assert isinstance(found, ParsedResource)
    assert (found.labels, found.ttl_ms) == ({"team": "pay"}, 30_000)


def test_parse__empty_labels__mean_none_rather_than_nothing() -> None:
    found = read(CLUSTER + '"@labels": {}\n')

    assert isinstance(found, ParsedResource)
    assert found.labels == {}


def test_parse__labels_that_are_none__each_is_told_with_its_place() -> None:
    found = read(CLUSTER + '"@labels":\n  -a: x\n  b: 1\n  c: " "\n  fine: y\n')

    assert isinstance(found, Refused)
    assert [(each.code, each.pointer, each.line) for each in found.findings] == [
        ("XDS1016", "/@labels/-a", 5),
        ("XDS1014", "/@labels/b", 6),
        ("XDS1016", "/@labels/c", 7),
    ]


def test_parse__labels_that_are_no_object_or_too_many__are_refused() -> None:
    many = {f"k{number}": "" for number in range(65)}
    tree = {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "pay"}

    for labels in (["team=pay"], many, None):
        found = parse(Manifest({**tree, "@labels": labels}))  # type: ignore[dict-item]  # a tree
        assert isinstance(found, Refused), labels
