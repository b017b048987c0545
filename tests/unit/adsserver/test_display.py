"""Status shows nothing of content that nobody can look into."""

from google.protobuf.any_pb2 import Any as AnyProto

from adsserver.store.display import Display, may_hold_secrets
from xdscore.schema import Manifest, ParsedResource, parse
from xdscore.schema.content_policy import TAKES_UNKNOWN
from xdscore.schema.text import Tree
from xdscore.snapshot import Content

TYPE = "type.googleapis.com/"


class Contents:
    """One content, whatever is asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def any_bytes(self, _: Content) -> bytes:
        return self._data


def test_display__bytes_of_an_unknown_type__are_hidden() -> None:
    socket: dict[str, Tree] = {"name": "own", "typed_config": {"@type": TYPE + "acme.Filter", "value": "c2VjcmV0"}}
    tree: dict[str, Tree] = {
        "@type": TYPE + "envoy.config.cluster.v3.Cluster",
        "name": "pay",
        "transport_socket": socket,
    }
    parsed = parse(Manifest(tree), policy=TAKES_UNKNOWN)
    assert isinstance(parsed, ParsedResource)
    assert may_hold_secrets(AnyProto.FromString(parsed.any_bytes))

    shown = Display(Contents(parsed.any_bytes)).any_bytes(Content(b"blob", "v1", 9))

    assert b"acme.Filter" in shown
    assert b"<redacted>" in shown
    assert b"secret" not in shown
