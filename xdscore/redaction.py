r"""Takes the secrets of a content out of a text that may quote it, in whatever spelling. Pure; no protobuf.

Data planes quote what they refuse: as JSON, as protobuf's text format, escaped once or twice, in base64, folded, cut in
the middle. So neither side is looked for as it is. The text is undone (`_views`: escapes up to three times, also what
URLs, mail and HTML make of characters, hexadecimal and lists of bytes), the secrets are done (`_forms`: as they are,
base64 in its three alignments, and what a PEM or base64 text decodes to), and both are compared without what spelling
and folding change: case, blanks, quotes, backslashes, and the two alphabets of base64.

Every stretch of at least FRAGMENT_CHARS that a text shares with a secret goes, since clients cut what they quote. Of a
shorter secret the whole goes, and one of fewer than WHOLE_CHARS where it stands as a word by itself: it could not be
told from the text otherwise.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

REDACTED: Final = "<redacted>"
"""What stands in the place of a secret."""

FRAGMENT_CHARS: Final = 8
WHOLE_CHARS: Final = 4
MAX_SECRET_BYTES: Final = 32 * 1024
"""Of all secrets of one response, some 20 keys: a text about more cannot be searched in reasonable time and memory."""

# An encoded form says less with each character than the secret itself.
_ENCODED_CHARS: Final = 6
_MAX_ESCAPED: Final = 3
_MAX_MARKED: Final = 2
# What is the same in every key is no secret, and stands in plain sentences ("private key").
_ARMOUR = re.compile(rb"-----(?:BEGIN|END) [A-Za-z0-9 ]{0,40}-----")
_BASE64_TEXT = re.compile(rb"[A-Za-z0-9+/_-]+={0,2}")
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}"
    r"|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))",
    re.DOTALL,
)
# As in a URL, in mail, and in HTML.
_MARKED = re.compile(r"[%=]([0-9a-fA-F]{2})|&#(?:[xX]([0-9a-fA-F]{1,6})|([0-9]{1,7}));?")
# Bytes as pairs of hexadecimal digits, and as a list of numbers: signed ones, and those of Go and C.
_PAIRS = re.compile(r"(?:[0-9a-fA-F](?:[:\s-]|,\s?)?){16,}")
_NUMBERS = re.compile(r"(?:-?[0-9]{1,3}[,\s]+){7,}-?[0-9]{1,3}")
_NUMBER = re.compile(r"-?[0-9]+")
_HEX_NUMBERS = re.compile(r"(?:0[xX][0-9a-fA-F]{1,2}[,\s]+){7,}0[xX][0-9a-fA-F]{1,2}")
_HEX_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+")
_LISTS: Final = ((_NUMBERS, _NUMBER, 10), (_HEX_NUMBERS, _HEX_NUMBER, 16))
_HEXADECIMAL: Final = frozenset("0123456789abcdefABCDEF")
_LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LAST_CODE_POINT: Final = 0x10FFFF
# One byte is one character here (Latin-1), so that bytes which are no text compare like everything else.
_DROPPED: Final = frozenset(map(chr, (*range(0x21), 0x7F, *b"\"'`\\=,")))
_SAME: Final = {ord("-"): "+", ord("_"): "/"} | {code: chr(code + 32) for code in range(ord("A"), ord("Z") + 1)}
_TABLE: Final = {**_SAME, **dict.fromkeys(map(ord, _DROPPED))}


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets that must not stay in a text, prepared for searching. Never stored, logged or shown, because the
    secrets can be read from it.

    fragments: all stretches of FRAGMENT_CHARS in secrets that are at least as long.
    wholes: secrets shorter than that.
    words: very short secrets, found only as words by themselves.
    values: the secrets themselves, spelled for comparison.
    """

    fragments: frozenset[str] = field(default=frozenset(), repr=False)
    wholes: frozenset[str] = field(default=frozenset(), repr=False)
    words: frozenset[str] = field(default=frozenset(), repr=False)
    values: frozenset[str] = field(default=frozenset(), repr=False)

    def __bool__(self) -> bool:
        """Whether there is any secret to look for."""
        return bool(self.values)


NO_SECRETS: Final = Secrets()


def secrets_of(values: Iterable[bytes]) -> Secrets | None:
    """The values prepared for searching. None where that is impossible, so that no text about them may be kept: they
    are longer than MAX_SECRET_BYTES together, or one is empty without its blanks, quotes and backslashes.
    """
    fragments: set[str] = set()
    wholes: set[str] = set()
    words: set[str] = set()
    plain: set[str] = set()
    room = MAX_SECRET_BYTES
    for value in set(values):
        room -= len(value)
        compared = _compared(_ARMOUR.sub(b"", value))
        if room < 0 or not compared:
            return None
        plain.add(compared)
        if len(compared) < WHOLE_CHARS:
            words.add(value.decode("latin-1").strip())
            continue
        for least, form in _forms(value):
            if len(form) >= FRAGMENT_CHARS:
                fragments |= {form[at : at + FRAGMENT_CHARS] for at in range(len(form) - FRAGMENT_CHARS + 1)}
            elif len(form) >= least:
                wholes.add(form)
    return Secrets(frozenset(fragments), frozenset(wholes), frozenset(words), frozenset(plain))


def without_secrets(text: str, secrets: Secrets, *, names: Sequence[str] = ()) -> str:
    """`text` with REDACTED in place of everything that it shares with `secrets`.

    `names` are the names of the resources that the text is about. They stay where a secret merely looks like a part of
    one, because they say which resource is to blame; a whole secret goes even inside a name. Takes time linear in the
    text.
    """
    if not secrets:
        return text
    spans = _merged(span for view in _views(text) for span in view.found(secrets))
    if spans:
        standing = [name for name in names if name and name in text]
        spans = [span for span in spans if not _is_part_of_name(text, span, secrets, standing)]
    parts: list[str] = []
    end = 0
    for start, after in spans:
        parts += (text[end:start], REDACTED)
        end = after
    return "".join((*parts, text[end:]))


def _forms(value: bytes) -> Iterator[tuple[int, str]]:
    """Every spelling of a secret to search for: as it is, in base64, decoded. Each comes with the least length at which
    it is searched for.
    """
    body = _ARMOUR.sub(b"", value)
    yield WHOLE_CHARS, _compared(body)
    decoded = _decoded(body)
    for each in decoded:
        yield _ENCODED_CHARS, _compared(each)
    for each in (body, *decoded):
        for shift, first in ((0, 0), (1, 2), (2, 3)):
            encoded = base64.b64encode(bytes(shift) + each)
            # The last character, and the first after a shift, are made with what stands beside the secret.
            last = len(encoded) if (shift + len(each)) % 3 == 0 else len(encoded.rstrip(b"=")) - 1
            yield _ENCODED_CHARS, _compared(encoded[first:last])


def _decoded(text: bytes) -> tuple[bytes, ...]:
    """The bytes that a base64 text stands for, such as the inside of a PEM file, as the only item of a tuple; an empty
    tuple for any other text.
    """
    packed = b"".join(text.split())
    if len(packed) < FRAGMENT_CHARS or not _BASE64_TEXT.fullmatch(packed):
        return ()
    packed = packed.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
    try:
        return (base64.b64decode(packed + b"=" * (-len(packed) % 4)),)
    except binascii.Error:
        return ()


def _compared(value: bytes) -> str:
    return value.decode("latin-1").translate(_TABLE)


@dataclass(frozen=True, slots=True)
class _View:
    """A text with some of its encoding undone: bytes as characters. `starts` and `ends` say where each character begins
    and ends in the original text.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def found(self, secrets: Secrets) -> Iterator[tuple[int, int]]:
        """The places (start, end) in the original text where a secret, or a part of one, stands."""
        kept = [at for at, character in enumerate(self.text) if character not in _DROPPED]
        compared = self.text.translate(_TABLE)
        fragments, length = secrets.fragments, FRAGMENT_CHARS
        if fragments:
            for at in range(len(compared) - length + 1):
                if compared[at : at + length] in fragments:
                    yield self.starts[kept[at]], self.ends[kept[at + length - 1]]
        for whole in secrets.wholes:
            at = compared.find(whole)
            while at >= 0:
                yield self.starts[kept[at]], self.ends[kept[at + len(whole) - 1]]
                at = compared.find(whole, at + 1)
        for word in secrets.words:
            for match in re.finditer(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", self.text):
                yield self.starts[match.start()], self.ends[match.end() - 1]

    def undone(self, pattern: re.Pattern[str]) -> "_View | None":
        """The view with one level of the escapes that `pattern` matches undone; None where there are none."""
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        end = 0
        for match in pattern.finditer(self.text):
            meant = _meant(match)
            parts += (self.text[end : match.start()], meant)
            starts += self.starts[end : match.start()]
            starts += [self.starts[match.start()]] * len(meant)
            ends += self.ends[end : match.start()]
            ends += [self.ends[match.end() - 1]] * len(meant)
            end = match.end()
        if not parts:
            return None
        return _View("".join((*parts, self.text[end:])), [*starts, *self.starts[end:]], [*ends, *self.ends[end:]])

    def bytes_spelled(self) -> Iterator["_View"]:
        """The bytes that this text spells as digits, each way to read them as a view: hexadecimal pairs, or lists of
        numbers. Pairs may begin at either digit, because a cut may have taken the first one.
        """
        pairs = [
            [at for at in range(*run.span()) if self.text[at] in _HEXADECIMAL] for run in _PAIRS.finditer(self.text)
        ]
        for first in (0, 1) if pairs else ():
            yield self._of(
                (int(self.text[run[at]] + self.text[run[at + 1]], 16), run[at], run[at + 1])
                for run in pairs
                for at in range(first, len(run) - 1, 2)
            )
        for many, one, base in _LISTS:
            for run in many.finditer(self.text):
                numbers = one.finditer(self.text, *run.span())
                yield self._of((int(each[0], base) & 0xFF, each.start(), each.end() - 1) for each in numbers)

    def _of(self, spelled: Iterable[tuple[int, int, int]]) -> "_View":
        """A view of these bytes. Each is given with the places of its first and last character in this view."""
        found = list(spelled)
        starts, ends = [self.starts[first] for _, first, _ in found], [self.ends[last] for _, _, last in found]
        return _View("".join(chr(byte) for byte, _, _ in found), starts, ends)


def _views(text: str) -> Iterator[_View]:
    """The views of a text in which to look for secrets: as it is and with its escapes undone, level by level, and each
    of these with other encodings undone.
    """
    view: _View | None = _as_bytes(text)
    for _ in range(_MAX_ESCAPED + 1):
        if view is None:
            return
        yield view
        yield from view.bytes_spelled()
        marked = view.undone(_MARKED)
        for _ in range(_MAX_MARKED):
            if marked is None:
                break
            yield marked
            marked = marked.undone(_MARKED)
        view = view.undone(_ESCAPE)


def _as_bytes(text: str) -> _View:
    if text.isascii():
        return _View(text, range(len(text)), range(1, len(text) + 1))
    encoded = [character.encode("utf-8", "surrogatepass").decode("latin-1") for character in text]
    starts = [at for at, each in enumerate(encoded) for _ in each]
    return _View("".join(encoded), starts, [at + 1 for at in starts])


def _meant(match: re.Match[str]) -> str:
    """The bytes that a matched escape stands for, as Latin-1 characters."""
    if match.re is _MARKED:
        byte, point, decimal = match.groups(default="")
        return chr(int(byte, 16)) if byte else _utf8(int(point, 16) if point else int(decimal))
    high, low, short, braced, long, byte, octal, other = match.groups(default="")
    if high:
        return _utf8(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    if point := short or braced or long:
        return _utf8(int(point, 16))
    if byte or octal:
        return chr((int(byte, 16) if byte else int(octal, 8)) & 0xFF)
    return _LETTERS.get(other, other)


def _utf8(point: int) -> str:
    return chr(min(point, _LAST_CODE_POINT)).encode("utf-8", "surrogatepass").decode("latin-1")


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(set(spans)):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _is_part_of_name(text: str, span: tuple[int, int], secrets: Secrets, names: Sequence[str]) -> bool:
    """Whether the text within `span` (start, end) belongs to one of these names and is no whole secret."""
    part = text[span[0] : span[1]]
    compared = _compared(part.encode("utf-8", "surrogatepass"))
    if any(value in compared for value in secrets.values):
        return False
    for name in names:
        offset = name.find(part)
        while offset >= 0:
            start = span[0] - offset
            if start >= 0 and text.startswith(name, start):
                return True
            offset = name.find(part, offset + 1)
    return False
