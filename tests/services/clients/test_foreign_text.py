"""The words of clients are harmless once stored, and still say what they said."""

import ast
import time
import unicodedata
from pathlib import Path
from typing import get_type_hints

from hypothesis import given
from hypothesis import strategies as st

from controlplane.clients.facts import NackFact
from controlplane.clients.foreign_text import TRUNCATED_SUFFIX, KeptText, nack_text, one_line
from controlplane.clients.identity import CLIENT_ID_CHARS, client_id
from xdscore.client_kinds import ClientFamily, family_of
from xdscore.redaction import NO_SECRETS

ROOT = Path(__file__).parents[3]


@given(st.text(max_size=400), st.integers(1, 60))
def test_one_line__any_text__is_bounded_and_acts_on_nobody(text: str, max_chars: int) -> None:
    line = one_line(text, max_chars=max_chars)

    assert len(line) <= max_chars
    assert line.splitlines() in ([], [line])
    assert not any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in line)
    assert not set(line) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


@given(st.text(max_size=400), st.booleans(), st.integers(64, 200))
def test_nack_text__any_text__fits_and_says_when_it_was_cut(message: str, secret: bool, max_bytes: int) -> None:
    kept = nack_text(message, secret=secret, held=NO_SECRETS, max_bytes=max_bytes)

    assert len(kept.encode()) <= max_bytes
    assert "\x00" not in kept
    if len(message.encode()) > 2 * max_bytes and len(message) > 2 * max_bytes:
        assert kept.endswith(TRUNCATED_SUFFIX)


def test_nack_text__plain_text_of_two_lines__is_kept_to_the_letter() -> None:
    text = "Error adding/updating listener(s) a: <b>no</b>\n\tb: Ünïcode 'no'\n"

    assert nack_text(text, secret=False, held=NO_SECRETS, max_bytes=4096) == text


def test_nack_text__dump_with_key_material__keeps_names_and_drops_values() -> None:
    dump = (
        'name: "edge" tls { private_key { inline_string: "-----BEGIN PRIVATE KEY-----\\nCANARY" } '
        'password { inline_bytes: "CANA\\"RY" } } typed_config { type_url: "x" value: "\\n\\006CANARY" }'
    )

    kept = nack_text(dump, secret=False, held=NO_SECRETS, max_bytes=4096)

    assert "CANA" not in kept
    assert 'name: "edge"' in kept


def test_nack_text__key_without_quotes_or_end__is_dropped() -> None:
    text = "bad key -----BEGIN RSA PRIVATE KEY-----\nCANARY\nCANARY"

    assert nack_text(text, secret=False, held=NO_SECRETS, max_bytes=4096) == "bad key <redacted>"


def test_nack_text__key_cut_in_the_middle_of_its_literal__is_dropped() -> None:
    assert "CANARY" not in nack_text('inline_string: "CANARY CANARY', secret=False, held=NO_SECRETS, max_bytes=4096)


def test_nack_text__texts_made_to_be_slow__take_linear_time() -> None:
    started = time.perf_counter()
    for hostile in ('value: "' * 9_000, "\\" * 60_000, "-----BEGIN PRIVATE KEY" * 5_000, '"' * 60_000):
        nack_text(hostile, secret=True, held=NO_SECRETS, max_bytes=65_536)

    assert time.perf_counter() - started < 2


def test_family_of__as_clients_call_themselves__and_anything_else_is_other() -> None:
    families = [
        family_of(name) for name in ("envoy", "gRPC C-core linux Python", "gRPC Go", "gRPC Node Pure JS", "curl")
    ]

    assert families == [
        ClientFamily.ENVOY,
        ClientFamily.GRPC_CORE,
        ClientFamily.GRPC_GO,
        ClientFamily.GRPC_NODE,
        ClientFamily.OTHER,
    ]


def test_client_id__of_a_client__never_changes() -> None:
    # It is the key of rows and part of URLs that people have kept.
    assert client_id(environment="prod", identity="", node_id="n") == "6gzvoranh44sbbyjusqq4nck"
    assert client_id(environment="prod", identity="spiffe://x/\xe9", node_id='a"b') == "o5qznttbpwddotbiceynk6wc"


@given(st.tuples(st.text(), st.text(), st.text()), st.tuples(st.text(), st.text(), st.text()))
def test_client_id__different_clients__have_different_ids(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    ids = [client_id(environment=each[0], identity=each[1], node_id=each[2]) for each in (one, other)]

    assert (ids[0] == ids[1]) == (one == other)
    assert all(len(each) == CLIENT_ID_CHARS and each.isalnum() for each in ids)


def test_kept_text__in_all_of_the_code__is_made_by_the_redaction_alone() -> None:
    # The type checker refuses a raw text where one is asked for; nothing may talk it out of that.
    made = [
        str(path.relative_to(ROOT))
        for folder in ("controlplane", "adsserver", "xdscore", "xdsclient", "xdsctl")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Call) and "KeptText" in ast.unparse(node.func))
        or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("cast") and "KeptText" in ast.unparse(node))
    ]

    assert set(made) == {"controlplane/clients/foreign_text.py"}
    assert get_type_hints(NackFact)["text"] is KeptText
