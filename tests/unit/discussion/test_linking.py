"""What of a text becomes a link, and what never does, whoever writes it."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.discussion import linking
from controlplane.discussion.linking import Part, Ticket, parts_of, shortened, ticket_problems

JIRA = Ticket("PAY-", "https://jira.example/browse/PAY-{number}")
GITHUB = Ticket("#", "https://github.com/acme/shop/issues/{number}")
LONGER = Ticket("PAY-OPS-", "https://jira.example/ops/{number}")
ALL = (JIRA, GITHUB, LONGER)


def links(text: str, tickets: tuple[Ticket, ...] = ALL) -> list[tuple[str, str]]:
    return [(part.text, part.url) for part in parts_of(text, tickets) if part.url]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("PAY-12", [("PAY-12", "https://jira.example/browse/PAY-12")]),
        ("(PAY-12, #7).", [("PAY-12", "https://jira.example/browse/PAY-12"), ("#7", GITHUB.url.format(number=7))]),
        ("fixes #12", [("#12", "https://github.com/acme/shop/issues/12")]),
        ("PAY-OPS-3", [("PAY-OPS-3", "https://jira.example/ops/3")]),
        ("PAY-12-retry", [("PAY-12", "https://jira.example/browse/PAY-12")]),
        ("see https://e.example/a?b=1#c.", [("https://e.example/a?b=1#c", "https://e.example/a?b=1#c")]),
        ("(https://e.example)", [("https://e.example", "https://e.example")]),
        ("https://e.example/#12", [("https://e.example/#12", "https://e.example/#12")]),
    ],
)
def test_parts__words_for_tickets_and_addresses__are_links(text: str, found: list[tuple[str, str]]) -> None:
    assert links(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "PAY-",
        "PAY-x",
        "pay-12",
        "XPAY-12",
        "a#12",
        "&#39;",
        "##12",
        "PAY-12x",
        "PAY-1234567890123",
        "PAY-\uff11\uff12",
        "http://e.example",
        "javascript:alert(1)",
        "https://",
        "https:///x",
        "https://user:pw@e.example/",
        "https://[::1",
        "xhttps://e.example",
    ],
)
def test_parts__what_only_looks_like_it__is_no_link(text: str) -> None:
    assert links(text) == []


def test_parts__markup_behind_an_address__stays_text() -> None:
    assert links('https://e.example/"onclick=x') == [("https://e.example/", "https://e.example/")]
    assert links("https://e.example/<script>") == [("https://e.example/", "https://e.example/")]
    assert parts_of("<b>#1</b>", ALL) == (Part("<b>"), Part("#1", GITHUB.url.format(number=1)), Part("</b>"))


def test_shortened__where_a_link_would_be_cut__leaves_it_out() -> None:
    parts = parts_of("see PAY-12 and #7", ALL)

    assert [each.text for each in shortened(parts, 9)] == ["see ", "…"]
    assert [each.text for each in shortened(parts, 12)] == ["see ", "PAY-12", " a…"]
    assert tuple(shortened(parts, 17)) == parts


TEXTS = st.lists(
    st.one_of(
        st.sampled_from(["PAY-", "#", "https://", "12", " ", "e.example", "@", "<", '"', "/", "OPS-"]), st.text()
    ),
    max_size=12,
).map("".join)


@given(TEXTS)
def test_parts__of_any_text__joined_are_the_text_and_lead_where_they_may(text: str) -> None:
    found = parts_of(text, ALL)

    assert "".join(part.text for part in found) == text
    for part in found:
        if part.url:
            assert urlsplit(part.url).scheme == "https"
            assert not set(part.url) & set(" \"'<>\\`\n") - {"'"}
            if not part.text.startswith("https://"):
                assert urlsplit(part.url).hostname in ("jira.example", "github.com")


@pytest.mark.parametrize("form", ["PAY-{number}", "#{number}", "!{number}", "team/repo#{number}", "a.b_{number}"])
def test_ticket__sound_form__is_taken(form: str) -> None:
    assert ticket_problems(form, "https://e.example/{number}") == {}


@pytest.mark.parametrize(
    "form",
    [
        "",
        "{number}",
        "PAY-",
        "PAY-{number}x",
        "PAY-{number}{number}",
        "P Y-{number}",
        "PAY1{number}",
        "<{number}",
        "x" * 31 + "{number}",
        "https:{number}",
        "é{number}",
        "(a+)+{number}",
    ],
)
def test_ticket__form_that_is_none__is_refused(form: str) -> None:
    assert set(ticket_problems(form, "https://e.example/{number}")) == {"form"}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://e.example/",
        "https://e.example/{number}/{number}",
        "http://e.example/{number}",
        "HTTPS://e.example/{number}",
        "javascript:alert({number})",
        "//e.example/{number}",
        "https://{number}.example/",
        "https://e.example:{number}/",
        "https:///{number}",
        "https://user@e.example/{number}",
        "https://e.example/{number}{x}",
        'https://e.example/"{number}',
        "https://e.example/ {number}",
        "https://e.example/\n{number}",
        "https://e.example\\@evil.example/{number}",
        "https://[::1/{number}",
        "https://é.example/{number}",
        "https://e.example/" + "x" * 500 + "{number}",
    ],
)
def test_ticket__address_that_is_not_sure__is_refused(url: str) -> None:
    assert set(ticket_problems("PAY-{number}", url)) == {"url"}


def test_ticket__both_wrong__both_are_said() -> None:
    assert set(ticket_problems("", "")) == {"form", "url"}


def test_parts__a_thousand_addresses_in_one_word__are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, end_of_word = [], linking._end_of_word

    def counted(text: str, start: int) -> int:
        end = end_of_word(text, start)
        read.append(end - start)
        return end

    monkeypatch.setattr(linking, "_end_of_word", counted)
    text = ",https://a@b" * 1_000

    assert parts_of(text, ()) == (Part(text),)
    assert sum(read) <= len(text)
