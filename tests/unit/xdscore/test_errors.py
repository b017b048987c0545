"""The texts clients read (texts.md section 8, reliability T3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xdscore.decision import Decision, Denied, Missing, Serve, Undecided, Withheld
from xdscore.errors import MAX_TEXT_CHARS, ResourceError, StatusCode, error_of
from xdscore.resource_types import CLUSTER, LISTENER, RESOURCE_TYPES
from xdscore.snapshot import Content

URL = "https://cp"


def entry(decision: Decision, name: str = "pay.internal", environment: str = "prod") -> ResourceError:
    error = error_of(decision, kind=LISTENER, name=name, environment=environment, public_url=URL)
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("decision", "code", "text"),
    [
        (Missing(), 5, "NOT_FOUND [XDS2101] Listener 'pay.internal' is not published in 'prod'."),
        (Missing(removed=True), 5, "NOT_FOUND [XDS2102] Listener 'pay.internal' was removed from 'prod'."),
        (Missing(hidden=True), 5, "NOT_FOUND [XDS2101] Listener 'pay.internal' is not published in 'prod'."),
        (
            Denied(17, "ask the payments team."),
            7,
            "PERMISSION_DENIED [XDS2103] This client may not read Listener 'pay.internal': ask the payments team.",
        ),
        (Denied(0, ""), 7, "PERMISSION_DENIED [XDS2103] This client may not read Listener 'pay.internal'."),
        (
            Withheld("rejected by clients"),
            13,
            "INTERNAL [XDS2106] Listener 'pay.internal' is withheld: rejected by clients.",
        ),
    ],
)
def test_error_of__each_refusal__reads_as_the_catalogue_says(decision: Decision, code: int, text: str) -> None:
    error = entry(decision)

    assert error.code == code
    assert error.text == f"{text} Explain: https://cp/x?e=prod&t=listener&n=pay.internal"
    assert error.name == "pay.internal"


def test_error_of__served__says_nothing() -> None:
    served = Serve(Content(b"", "v", 0), None)

    assert error_of(served, kind=CLUSTER, name="a", environment="e", public_url=URL) is None


def test_error_of__undecided__passes_by_itself_and_never_says_why_to_clients() -> None:
    error = entry(Undecided("sealed under key 0011"), name="a")

    assert error.code is StatusCode.UNAVAILABLE  # law 3: no data error
    said = "UNAVAILABLE [XDS2105] Nothing is decided for Listener 'a' in 'prod' yet."
    assert error.text == f"{said} Explain: https://cp/x?e=prod&t=listener&n=a"


def test_error_of__name_too_long_for_the_link__keeps_code_words_and_drops_the_link() -> None:
    error = entry(Missing(), name="n" * 900)

    assert error.text.startswith("NOT_FOUND [XDS2101] Listener 'nnn")
    assert error.text.endswith("is not published in 'prod'.")
    assert "…" in error.text
    assert error.name == "n" * 900


DECISIONS = st.one_of(
    st.builds(Missing, hidden=st.booleans(), removed=st.booleans()),
    st.builds(Denied, rule=st.integers(), message=st.text(max_size=600)),
    st.builds(Withheld, finding=st.text(max_size=600)),
    st.builds(Undecided, reason=st.text(max_size=600)),
)


@given(
    decision=DECISIONS,
    kind=st.sampled_from(RESOURCE_TYPES),
    name=st.text(min_size=1, max_size=1024),
    environment=st.text("abz09-", min_size=1, max_size=63),
)
def test_error_of__whatever_the_names_hold__one_printable_line_of_bounded_length(
    decision: Decision, kind: object, name: str, environment: str
) -> None:
    error = error_of(decision, kind=kind, name=name, environment=environment, public_url=URL)  # type: ignore[arg-type]

    assert error is not None
    assert error.text.isprintable()
    assert len(error.text) <= MAX_TEXT_CHARS
    assert error.text.startswith(f"{error.code.name} [{error.xds_code}] ")
    assert error.name == name
