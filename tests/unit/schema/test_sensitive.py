"""Secrets: hidden on the way out, kept on the way back, and never to be moved into the open."""

import base64
import copy
import hmac
import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.any_pb2 import Any as AnyProto

from tests.support.certificates import Authority
from tests.support.sensitive_fields import filled, holding, kinds_with_an_any, packed, sensitive_fields
from xdscore.schema import (
    Manifest,
    Media,
    ParsedResource,
    Refused,
    canonical,
    holds_secrets,
    parse,
    read_manifests,
    redact,
    restore_kept,
    to_json,
    to_json_with_secrets,
)

GOOGLE = "type.googleapis.com/"
SECRET = GOOGLE + "envoy.extensions.transport_sockets.tls.v3.Secret"
CLUSTER = GOOGLE + "envoy.config.cluster.v3.Cluster"
CANARY = "canary-7f3a"
# PEM may have text before its first line, so a real key can carry the canary.
KEY, CHAIN = (pem.decode() for pem in Authority("test").issue())


def keyed_hash(data: bytes) -> str:
    return hmac.new(b"key", data, "sha256").hexdigest()[:20]


def tls_secret() -> dict[str, Any]:
    return {
        "@type": SECRET,
        "name": "s",
        "tls_certificate": {
            "certificate_chain": {"inline_string": CHAIN},
            "private_key": {"inline_string": f"{CANARY}-key\n{KEY}"},
            "password": {"inline_bytes": "Y2FuYXJ5LTdmM2E="},
        },
    }


def inline_tls(*certificates: dict[str, Any]) -> dict[str, Any]:
    tls = GOOGLE + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
    config = {"@type": tls, "common_tls_context": {"tls_certificates": list(certificates)}}
    return {"@type": CLUSTER, "name": "c", "transport_socket": {"name": "tls", "typed_config": config}}


def private_key(mark: str) -> dict[str, Any]:
    """A certificate's key that carries a mark."""
    return {"private_key": {"inline_string": f"{mark}\n{KEY}"}}


SAMPLES = {
    "tls": tls_secret(),
    "generic": {
        "@type": SECRET,
        "name": "g",
        "generic_secret": {
            "secret": {"inline_string": CANARY},
            "secrets": {"b": {"inline_string": CANARY + "b"}, "a": {"inline_bytes": "Y2FuYXJ5LTdmM2E="}},
        },
    },
    "session": {"@type": SECRET, "name": "k", "session_ticket_keys": {"keys": [{"inline_bytes": "Y2FuYXJ5LTdmM2E="}]}},
    "inline": inline_tls(
        {"private_key": {"inline_string": f"{CANARY}\n{KEY}"}, "certificate_chain": {"filename": "/c.pem"}}
    ),
    "provider": inline_tls(
        {
            "private_key_provider": {
                "provider_name": "p",
                "typed_config": {
                    "@type": GOOGLE + "google.protobuf.Struct",
                    "value": {"pin": 7.5, "k": [CANARY, True]},
                },
            }
        }
    ),
    "typed_struct": {
        "@type": GOOGLE + "envoy.config.core.v3.TypedExtensionConfig",
        "name": "basic",
        "typed_config": {
            "@type": GOOGLE + "xds.type.v3.TypedStruct",
            "type_url": GOOGLE + "envoy.extensions.filters.http.basic_auth.v3.BasicAuth",
            "value": {"users": {"inline_string": CANARY}},
        },
    },
}


def stored(tree: dict[str, Any]) -> bytes:
    outcome = parse(Manifest(tree))
    assert isinstance(outcome, ParsedResource), outcome
    return outcome.any_bytes


@pytest.mark.parametrize("tree", SAMPLES.values(), ids=SAMPLES)
def test_to_json__secrets__are_hidden_and_come_back_unchanged(tree: dict[str, Any]) -> None:
    before = stored(tree)

    shown = to_json(before, keyed_hash)
    after = parse(restore_kept(Manifest(shown), before, keyed_hash))

    assert CANARY not in json.dumps(shown)
    assert "Y2FuYXJ5" not in json.dumps(shown)
    assert "<kept:" in json.dumps(shown)
    assert isinstance(after, ParsedResource)
    assert after.any_bytes == before
    assert holds_secrets(before)
    assert stored(to_json_with_secrets(before)) == before
    assert canonical(before) == before


@pytest.mark.parametrize("tree", SAMPLES.values(), ids=SAMPLES)
def test_redact__secrets__are_replaced_in_a_sound_message(tree: dict[str, Any]) -> None:
    message = AnyProto.FromString(stored(tree))

    shown = redact(message)

    assert CANARY.encode() not in shown.SerializeToString()
    assert canonical(shown.SerializeToString()) == shown.SerializeToString()
    assert message.SerializeToString() == stored(tree)


def test_holds_secrets__none_filled_in__is_false() -> None:
    assert not holds_secrets(stored({"@type": CLUSTER, "name": "c"}))
    assert not holds_secrets(stored(inline_tls({"private_key": {"filename": "/k.pem"}})))


def test_to_json__places_of_secrets__stay_readable() -> None:
    before = stored(inline_tls({"private_key": {"filename": "/k.pem"}, "password": {"environment_variable": "PW"}}))

    assert "/k.pem" in json.dumps(to_json(before, keyed_hash))
    assert '"PW"' in json.dumps(to_json(before, keyed_hash))


def test_to_json__name_and_ttl_of_a_wrapper__come_back_through_parse() -> None:
    tree = to_json(stored({"@type": CLUSTER, "name": "c"}), keyed_hash, xds_name="xdstp://a/c", ttl_ms=30_500)

    outcome = parse(Manifest(tree))

    assert isinstance(outcome, ParsedResource)
    assert (outcome.name, outcome.ttl_ms) == ("xdstp://a/c", 30_500)


def test_restore__inside_a_wrapper__works_too() -> None:
    before = stored(tls_secret())
    shown = to_json(before, keyed_hash, xds_name="xdstp://a/s")

    after = parse(restore_kept(Manifest(shown), before, keyed_hash))

    assert isinstance(after, ParsedResource)
    assert after.any_bytes == before


def test_restore__a_neighbour_changed_and_items_moved__the_secret_is_kept() -> None:
    before = stored(inline_tls(private_key("one"), private_key("two")))
    shown = to_json(before, keyed_hash)
    certificates = shown["transport_socket"]["typed_config"]["common_tls_context"]["tls_certificates"]  # type: ignore[index, call-overload]
    certificates.reverse()  # type: ignore[union-attr]
    shown["connect_timeout"] = "3s"

    after = parse(restore_kept(Manifest(shown), before, keyed_hash))

    expected = inline_tls(private_key("two"), private_key("one"))
    assert isinstance(after, ParsedResource)
    assert after.any_bytes == stored({**expected, "connect_timeout": "3s"})


def test_restore__without_restoring__parse_refuses_every_placeholder() -> None:
    outcome = parse(Manifest(to_json(stored(tls_secret()), keyed_hash)))

    assert isinstance(outcome, Refused)
    assert [(found.code, found.pointer) for found in outcome.findings] == [
        ("XDS1030", "/tls_certificate/private_key/inline_string"),
        ("XDS1030", "/tls_certificate/password/inline_bytes"),
    ]


def string_places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key != "@type":
                yield from string_places(value, (*path, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from string_places(value, (*path, index))
    elif isinstance(tree, str):
        yield path


def test_restore__placeholder_moved_to_any_other_field__is_refused() -> None:
    """An editor who may not read secrets must not be able to copy one into a field that reads back."""
    tree = tls_secret()
    tree["tls_certificate"]["ocsp_staple"] = {"inline_string": "x"}
    before = stored(tree)
    shown = to_json(before, keyed_hash)
    kept = shown["tls_certificate"]["private_key"]["inline_string"]  # type: ignore[index, call-overload]
    moved = 0

    for path in string_places(shown):
        if path == ("tls_certificate", "private_key", "inline_string"):
            continue
        attempt: Any = copy.deepcopy(shown)
        target = attempt
        for part in path[:-1]:
            target = target[part]
        target[path[-1]] = kept
        outcome = parse(restore_kept(Manifest(attempt), before, keyed_hash))
        assert isinstance(outcome, Refused), path
        assert CANARY not in repr(outcome)
        moved += 1

    assert moved >= 4


def test_restore__secret_of_another_resource__is_refused() -> None:
    other = to_json(stored(tls_secret()), keyed_hash)
    mine = stored({**tls_secret(), "tls_certificate": private_key("mine")})

    outcome = parse(restore_kept(Manifest(other), mine, keyed_hash))

    assert isinstance(outcome, Refused)


def test_restore__nothing_kept__returns_the_manifest_itself() -> None:
    manifest = Manifest(tls_secret())

    assert restore_kept(manifest, stored(tls_secret()), keyed_hash) is manifest


def mistaken(tree: Any, canary: str) -> Iterator[Any]:
    """The same tree with one mistake each wherever the secret stands: of another type, misspelt, with something beside
    it, twice, in a list, deeper.
    """
    if isinstance(tree, dict):
        for key, value in tree.items():
            if isinstance(value, str) and canary in value:
                rest = {name: item for name, item in tree.items() if name != key}
                yield from (
                    {**rest, f"{key}x": value},
                    {**rest, key: [value]},
                    {**rest, key: {key: value}},
                    {**tree, "nothing": value},
                    value,
                )
            for inside in mistaken(value, canary):
                yield {**tree, key: inside}
    elif isinstance(tree, list):
        for at, item in enumerate(tree):
            for inside in mistaken(item, canary):
                yield [*tree[:at], inside, *tree[at + 1 :]]


@pytest.mark.parametrize("field", sensitive_fields(), ids=lambda field: field.full_name)
def test_findings__about_any_sensitive_field__quote_nothing_of_it(field: Any) -> None:
    kinds = kinds_with_an_any()
    kind = kinds[sensitive_fields().index(field) % len(kinds)]
    canary = "canary7f3a" * 3
    tree = to_json_with_secrets(packed(holding(kind, filled(field, canary))).SerializeToString())
    # Bytes are base64 in JSON; that they hold the secret is all the same to a finding.
    shown = json.loads(json.dumps(tree).replace(base64.b64encode(canary.encode()).decode(), canary))
    trees = [shown, *mistaken(shown, canary)]
    texts = [(json.dumps(each), Media.JSON) for each in trees]
    sound = json.dumps(shown)
    texts += [(sound[: sound.index(canary) + 20], Media.JSON), (sound.replace(canary, f'{canary}"'), Media.JSON)]
    texts += [(sound.replace(":", ": !x ", 1), Media.YAML), (sound.replace('"' + canary, "*" + canary), Media.YAML)]
    said = 0
    for text, media in texts:
        manifests, findings = read_manifests(text.encode(), media)
        results = [parse(each) for each in manifests]
        every = [*findings, *(each for result in results for each in result.findings)]
        said += len(every)
        shown_of = " ".join(f"{each.detail} {each.hint} {each.pointer}" for each in every)

        assert "canary7f3a" not in shown_of, (text, every)

    assert len(trees) > 1
    assert said
