"""Finds what of a text becomes a link: URLs, and words such as PAY-12 that stand for a ticket. Pure.

A text is split into parts and never changed: who shows it escapes each part. Only https goes out, and a ticket's URL
has the host that an administrator gave it, because a number is all that the text adds.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

MAX_PREFIX_CHARS: Final = 30
MAX_URL_CHARS: Final = 500
_NUMBER: Final = "{number}"
_SCHEME: Final = "https://"
# Nobody's tracker counts further.
_MAX_DIGITS: Final = 12
_IN_PREFIX: Final = frozenset("-_#!/.")
# What a word goes on with, to the left of which no link begins: the 12 of `a#12` or of `x-PAY-12` is part of another.
_GLUE: Final = frozenset("_-/#&.@!+")
# What a sentence or a bracket puts behind a URL.
_BEHIND_URL: Final = ".,;:!?'\")]}>"


@dataclass(frozen=True, slots=True)
class Ticket:
    """The words for the tickets of one tracker: `prefix` and a number. `url`: that of a ticket, with `{number}` where
    its number goes.
    """

    prefix: str
    url: str

    @property
    def form(self) -> str:
        """The words as an administrator writes them, such as `PAY-{number}`."""
        return self.prefix + _NUMBER


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text. `url`: where it leads; empty for one that is no link."""

    text: str
    url: str = ""


def ticket_problems(form: str, url: str) -> dict[str, str]:
    """What is wrong with the form of a ticket's words and its URL, by `form` and `url`; empty where both are sound."""
    found = {}
    prefix = form.removesuffix(_NUMBER)
    allowed = all((each.isascii() and each.isalnum()) or each in _IN_PREFIX for each in prefix)
    if prefix == form or not allowed or not 0 < len(prefix) <= MAX_PREFIX_CHARS or prefix[-1].isdigit():
        found["form"] = (
            f"Write 1 to {MAX_PREFIX_CHARS} letters, digits and signs of {' '.join(sorted(_IN_PREFIX))}, not a digit "
            f"last, and then {_NUMBER}: such as PAY-{_NUMBER} or #{_NUMBER}."
        )
    elif prefix.lower().startswith("http"):
        found["form"] = "Addresses are links anyhow."
    if not _is_sound(url):
        found["url"] = (
            f"Write an address that begins with {_SCHEME} and a host, with {_NUMBER} once behind the host: such as "
            f"{_SCHEME}jira.example/browse/PAY-{_NUMBER}."
        )
    return found


def _is_sound(url: str) -> bool:
    if len(url) > MAX_URL_CHARS or not url.isascii() or not url.isprintable() or any(each in url for each in ' \\"<>`'):
        return False
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    host = parts.netloc
    behind = url.removeprefix(_SCHEME + host)
    return (
        url.startswith(_SCHEME)
        and bool(parts.hostname)
        and "@" not in host
        and url.count(_NUMBER) == 1
        and _NUMBER in behind
        and not set("{}") & set(url.replace(_NUMBER, ""))
    )


def parts_of(text: str, tickets: Sequence[Ticket]) -> tuple[Part, ...]:
    """The text in parts, which joined are the text. Where several words could begin at one place, the longest does."""
    found, done = [], 0
    for start, end, url in sorted(_links(text, tickets), key=lambda link: (link[0], -link[1])):
        if start < done:
            continue
        found.append(Part(text[done:start]))
        found.append(Part(text[start:end], url))
        done = end
    found.append(Part(text[done:]))
    return tuple(part for part in found if part.text)


def shortened(parts: Iterable[Part], chars: int) -> Iterator[Part]:
    """The first parts, of `chars` characters in all, and an ellipsis where there is more. A link is there as a whole or
    not at all, for a part of it would lead elsewhere.
    """
    left = chars
    for part in parts:
        if len(part.text) > left:
            yield Part(f"{'' if part.url else part.text[:left]}…")
            return
        left -= len(part.text)
        yield part


def _links(text: str, tickets: Sequence[Ticket]) -> Iterator[tuple[int, int, str]]:
    """Where links begin and end, and where they lead; they may overlap."""
    read = 0
    for start in _places(text, _SCHEME):
        if start < read:
            continue  # within an address, good or not: each character is read once, however many begin in one
        read = _end_of_word(text, start)
        end = _end_of_url(text, start, read)
        if end > start + len(_SCHEME):
            yield start, end, text[start:end]
    for ticket in tickets:
        for start in _places(text, ticket.prefix):
            first = start + len(ticket.prefix)
            end = first
            while end < len(text) and text[end].isascii() and text[end].isdigit():
                end += 1
            goes_on = end < len(text) and (text[end].isalnum() or text[end] == "_")
            if 0 < end - first <= _MAX_DIGITS and not goes_on:
                yield start, end, ticket.url.replace(_NUMBER, text[first:end])


def _places(text: str, word: str) -> Iterator[int]:
    """Where `word` stands in the text and is not the rest of a longer word."""
    start = text.find(word)
    while start >= 0:
        if not start or not (text[start - 1].isalnum() or text[start - 1] in _GLUE):
            yield start
        start = text.find(word, start + 1)


def _end_of_word(text: str, start: int) -> int:
    """Where the characters end that a URL may have."""
    end = start
    while end < len(text) and text[end].isascii() and text[end].isprintable() and text[end] not in ' "<>\\`{}|^':
        end += 1
    return end


def _end_of_url(text: str, start: int, end: int) -> int:
    """Where the URL ends that these characters are; its start where they are none."""
    while text[end - 1] in _BEHIND_URL:
        end -= 1
    try:
        host = urlsplit(text[start:end]).hostname
    except ValueError:
        return start
    return end if host and "@" not in urlsplit(text[start:end]).netloc else start
