"""No secret stays in a text that quotes it, in whatever spelling; and what a text says besides stays."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.clients.foreign_text import NOT_SHOWN, SECRET_FIELDS, nack_text
from tests.support.certificates import Authority
from tests.support.sensitive_fields import (
    filled,
    holding,
    kinds_with_an_any,
    packed,
    sensitive_fields,
    spellings,
    traces,
)
from xdscore.redaction import MAX_SECRET_BYTES, NO_SECRETS, REDACTED, secrets_of, without_secrets
from xdscore.resource_types import RESOURCE_TYPES, RUNTIME
from xdscore.schema import secret_values

PASSWORD = "pw/\"Zürich\"\\9 'x'+q_k-7\nsecond line, 100% {of} it=="
KEY = Authority("test").issue()[0].decode()
MOST_BYTES = 16_384


def cleared(text: str, *secrets: str, names: tuple[str, ...] = ()) -> str:
    found = secrets_of(secret.encode() for secret in secrets)
    assert found is not None
    return without_secrets(text, found, names=names)


@pytest.mark.parametrize("field", sensitive_fields(), ids=lambda field: field.full_name)
def test_nack_text__any_sensitive_field_of_any_type_in_any_spelling__nothing_of_it_stays(field: object) -> None:
    # Every field in every spelling; the types take turns, for what is around a field changes nothing of its value.
    turns = itertools.cycle(kinds_with_an_any())
    for secret in (PASSWORD, KEY):
        found = traces(secret)
        message = filled(field, secret)  # type: ignore[arg-type]  # pytest hands it on as it is
        held = secrets_of(secret_values(packed(holding(next(turns), message)).SerializeToString()))
        for spelling, quoted in spellings(secret).items():
            text = f"Error adding/updating listener(s) edge: bad <{quoted}> in field x of edge\n"

            kept = nack_text(text, secret=False, held=held, max_bytes=MOST_BYTES, names=["edge"])

            assert not list(found(kept.encode())), (spelling, kept)
            assert kept.startswith("Error adding/updating listener(s) edge: bad <"), (spelling, kept)


def test_secret_values__every_sensitive_field_in_every_type_that_holds_an_any__is_found() -> None:
    kinds = kinds_with_an_any()
    for kind, field in itertools.product(kinds, sensitive_fields()):
        values = secret_values(packed(holding(kind, filled(field, PASSWORD))).SerializeToString())

        assert PASSWORD.encode() in values, (kind.word, field.full_name)

    # A runtime layer is a Struct: the API marks nothing in it.
    assert set(RESOURCE_TYPES) - set(kinds) == {RUNTIME}


def test_secret_fields__of_the_api__are_all_taken_out_of_what_is_quoted_from_elsewhere() -> None:
    texts = {field for field in sensitive_fields() if field.message_type is None}

    assert {field.name for field in texts} | {field.json_name for field in texts} <= set(SECRET_FIELDS)


@pytest.mark.parametrize("spelling", spellings(PASSWORD))
def test_without_secrets__neighbours_of_a_secret__stay(spelling: str) -> None:
    text = f'name: "edge" bad <{spellings(PASSWORD)[spelling]}> of edge, line 3'

    kept = cleared(text, PASSWORD, names=("edge",))

    assert kept.startswith('name: "edge" bad <')
    assert kept.endswith("> of edge, line 3")
    assert REDACTED in kept


def test_without_secrets__secret_that_looks_like_a_name__leaves_the_name_and_takes_the_secret() -> None:
    text = "cluster payments-eu-west: token payments-eu-west-7f3a is wrong; payments-eu-w"

    kept = cleared(text, "payments-eu-west-7f3a", names=("payments-eu-west",))

    assert kept == f"cluster payments-eu-west: token {REDACTED} is wrong; {REDACTED}"


def test_without_secrets__name_that_is_a_whole_secret__goes() -> None:
    assert cleared("bad x-hunter22-y", "hunter22", names=("x-hunter22-y",)) == f"bad x-{REDACTED}-y"


def test_without_secrets__short_secrets__go_whole_and_as_words_only() -> None:
    assert cleared("pin 7281, at 72 and 7; x7", "7281", "7") == f"pin {REDACTED}, at 72 and {REDACTED}; x7"


def test_without_secrets__what_every_key_has__stays() -> None:
    text = "Failed to load private key from edge: no PRIVATE KEY, -----BEGIN CERTIFICATE-----"

    assert cleared(text, KEY) == text


def test_without_secrets__body_of_a_key_by_itself_in_any_form__goes() -> None:
    der = "".join(KEY.splitlines()[1:-1])
    for quoted in (der, der[10:40], "\\n".join(KEY.splitlines()[1:-1])):
        assert cleared(f"bad <{quoted}>", KEY) == f"bad <{REDACTED}>"


def test_secrets_of__what_cannot_be_looked_for__is_none_and_the_whole_text_is_withheld() -> None:
    assert secrets_of([b"x" * (MAX_SECRET_BYTES + 1)]) is None
    assert secrets_of([b' "" ']) is None
    assert nack_text("anything", secret=False, held=None, max_bytes=4096) == NOT_SHOWN
    assert nack_text("", secret=False, held=None, max_bytes=4096) == ""
    assert secrets_of([]) == NO_SECRETS


@given(st.text(min_size=8, max_size=60), st.text(max_size=40), st.text(max_size=40))
def test_without_secrets__any_secret_in_any_text__is_not_in_it_any_more(secret: str, before: str, after: str) -> None:
    held = secrets_of([secret.encode("utf-8", "surrogatepass")])

    if held is not None:
        assert secret not in without_secrets(f"{before}{secret}{after}", held) or secret in REDACTED


def test_without_secrets__texts_and_names_made_to_be_slow__take_linear_time() -> None:
    held = secrets_of([KEY.encode(), b"a" * 4_000, b"\\u0061" * 500])
    assert held is not None
    names = [f"{'a' * 200}{number}" for number in range(5_000)]
    started = time.perf_counter()
    for hostile in (
        "\\" * 8_192,
        "\\\\u0061" * 1_000,
        "%61" * 2_700,
        "&#97;" * 1_600,
        "0x61, " * 1_300,
        "-61 " * 2_000,
        "a" * 8_192,
        KEY * 20,
    ):
        without_secrets(hostile[:8_192], held, names=names)

    assert time.perf_counter() - started < 2
