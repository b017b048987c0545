"""The noise-free text of a NACK: what stays equal when the same fault is reported by another process, address or value.

Fingerprints of incidents are made of it (texts.md 9.2), so the same text must always give the same result: whoever
changes a pattern raises ALGORITHM, and incidents keep the number they were opened with. Messages of Go and protobuf
hold random blanks and marks, so that raw texts must never be compared (reliability finding 9).

The text is read once from left to right; at each place the first pattern of the table that fits decides. Every pattern
takes time linear in what it matches or gives up after a bounded distance: runs are possessive or bounded, and start
only where a word starts.
"""

import re
from dataclasses import dataclass

from xdscore.nacktext.reading import MAX_TEXT_CHARS

ALGORITHM = 1


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A named regular expression for text that varies between reports of one fault. `stands_for` replaces what it
    matches; KEPT leaves that as it is.
    """

    name: str
    regex: str
    stands_for: str


KEPT = "kept"

_WORD_START = r"(?<![\w.])"
_WORD_END = r"(?!\w)"
# Values are cut at this length so that one stray quote cannot swallow a text; names have at most 1,024 bytes.
_IN_QUOTES = "{0,1024}+"

_PATTERNS: tuple[_Pattern, ...] = (
    # Protobuf begins a dump with a random word and a random number of blanks, to keep people from parsing it.
    _Pattern("debug_mark", r"goo\.gle/debug\w*+", ""),
    # What a filter, an extension or a field is called says what is wrong: `implementation for 'acme.http' with type
    # URL: 'acme.X'`, `http filter "router"`, `Field 'weight'`, Go's `error parsing "ListenerResource"`.
    _Pattern(
        "called",
        r"(?:implementation for|type|type URL|filter|extension|Field|error parsing):? ['\"][\w./-]{1,256}+['\"]",
        KEPT,
    ),
    # Protobuf types: `type.googleapis.com/envoy.config.cluster.v3.Cluster`, `envoy.filters.http.router`, quoted or not.
    _Pattern(
        "type",
        rf"['\"]?{_WORD_START}(?:type\.googleapis\.com/)?(?:envoy|xds|udpa|google|grpc)(?:\.\w++)++['\"]?",
        KEPT,
    ),
    # C-core's field paths: `field:virtual_hosts[0].routes[2].match`, with types in brackets.
    _Pattern("field", rf"{_WORD_START}field:[^\s\"']{{1,1024}}+", KEPT),
    # Field paths with an index or key, as Node and Envoy write them: `endpoints[0].locality`, `VirtualHosts[0]`.
    _Pattern("indexed_field", rf"{_WORD_START}[A-Za-z_]\w*+(?:\.\w++)*+(?:\[[\w./-]{{0,256}}+\](?:\.\w++)*+)++", KEPT),
    # Envoy's field paths: `ClusterLoadAssignmentValidationError.Endpoints`.
    _Pattern("rule", rf"{_WORD_START}\w++ValidationError\.\w++", KEPT),
    # Values: names, patterns, addresses, texts of others. An apostrophe inside a word opens nothing.
    _Pattern("double_quoted", rf'"(?:[^"\\\n]|\\.){_IN_QUOTES}"?', "<value>"),
    _Pattern("single_quoted", rf"(?<!\w)'[^'\n]{_IN_QUOTES}'{_WORD_END}", "<value>"),
    _Pattern(
        "uuid",
        rf"{_WORD_START}[0-9a-fA-F]{{8}}-(?:[0-9a-fA-F]{{4}}-){{3}}[0-9a-fA-F]{{12}}{_WORD_END}",
        "<uuid>",
    ),
    # `127.0.0.1`, `127.0.0.1:8080`, `ipv4:10.0.0.0/8`.
    _Pattern(
        "ipv4",
        rf"{_WORD_START}(?:ipv4:)?(?:[0-9]{{1,3}}\.){{3}}[0-9]{{1,3}}(?::[0-9]{{1,5}}+|/[0-9]{{1,2}}+)?{_WORD_END}",
        "<address>",
    ),
    # `[2001:db8::1]:8080`, `ipv6:…`, `::1`; two colons at least, so that `a:b` is none.
    _Pattern(
        "ipv6",
        r"(?<![\w.:])(?:ipv6:)?\[?(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?:\]:[0-9]{1,5}+|\])?(?![\w:])",
        "<address>",
    ),
    # `0x7f3a`, and runs of eight or more hexadecimal digits with a decimal one among them: hashes, ids, pointers.
    _Pattern("hex", rf"(?<!\w)(?:0[xX][0-9a-fA-F]++|(?=[a-fA-F]*+[0-9])[0-9a-fA-F]{{8,}}+){_WORD_END}", "<hex>"),
    _Pattern("number", rf"(?<!\w)[0-9]++(?:\.[0-9]++)?{_WORD_END}", "<number>"),
    # Anything else is taken by the word, because nothing above starts inside one.
    _Pattern("word", r"[A-Za-z_]\w*+|\s++", KEPT),
)

_TOKEN = re.compile("|".join(f"(?P<{pattern.name}>{pattern.regex})" for pattern in _PATTERNS))
_STANDS_FOR = {pattern.name: pattern.stands_for for pattern in _PATTERNS}


def normalise(message: str) -> str:
    """`message` on one line, with everything that varies between reports of one fault replaced (by the table of
    patterns in this module).

    Field paths, types and names of filters are kept. At most MAX_TEXT_CHARS of the message are read.
    """
    return " ".join(_TOKEN.sub(_replacement, message[:MAX_TEXT_CHARS]).split())


def _replacement(match: re.Match[str]) -> str:
    stands_for = _STANDS_FOR[match.lastgroup or ""]
    return match[0] if stands_for is KEPT else stands_for
