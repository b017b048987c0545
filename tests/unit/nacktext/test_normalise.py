"""The noise-free text: equal for one fault, different for different ones, and cheap."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xdscore.nacktext.normalise import ALGORITHM, normalise
from xdscore.nacktext.reading import MAX_TEXT_CHARS

_SAMPLES = json.loads((Path(__file__).parents[2] / "golden" / "nacktext" / "samples.json").read_text())


def test_algorithm__is_the_number_that_stored_fingerprints_were_made_with() -> None:
    assert ALGORITHM == 1


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        # Marks of protobuf's dumps, and blanks.
        (
            "Invalid duration: Expected positive duration: goo.gle/debugonly    \nseconds: -1\n",
            "Invalid duration: Expected positive duration: seconds: -<number>",
        ),
        ('name:"c1"  type:EDS', "name:<value> type:EDS"),
        # Numbers, addresses, hexadecimal digits, uuids.
        ("num_retries = 0; must be >= 1.5", "num_retries = <number>; must be >= <number>"),
        ("same address 127.0.0.1:36743", "same address <address>"),
        ("in 10.0.0.0/8 or ipv4:10.1.2.3:80", "in <address> or <address>"),
        ("at [2001:db8::1]:8080, ::1 and fe80::1", "at <address>, <address> and <address>"),
        ("hash 0x7F3a of 9f86d081884c7d65", "hash <hex> of <hex>"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id <uuid>"),
        # Values between quotes, of both kinds; an apostrophe opens none.
        ("route: unknown cluster 'pay-7'", "route: unknown cluster <value>"),
        ('invalid domain pattern "a\\"b"', "invalid domain pattern <value>"),
        ("Can't parse, doesn't have 'x'", "Can't parse, doesn't have <value>"),
        ('cut inside "a value', "cut inside <value>"),
        # Field paths, types and names of filters stay.
        (
            "[field:virtual_hosts[0].routes[12].match error:not present]",
            "[field:virtual_hosts[0].routes[12].match error:not present]",
        ),
        ("endpoints[1].lb_endpoints[0].endpoint: bad", "endpoints[1].lb_endpoints[0].endpoint: bad"),
        ("virtual_hosts[vh].routes[].match unset", "virtual_hosts[vh].routes[].match unset"),
        ("(ClusterValidationError.Name: bad)", "(ClusterValidationError.Name: bad)"),
        (
            "for 'acme.http2' with type URL: 'acme.No.v3'",
            "for <value> with type URL: 'acme.No.v3'",
        ),
        ("implementation for 'acme.http2' missing", "implementation for 'acme.http2' missing"),
        ('found for "type.googleapis.com/envoy.x.v3.Lua"', 'found for "type.googleapis.com/envoy.x.v3.Lua"'),
        ('http filter "router" is last', 'http filter "router" is last'),
        ("Field 'weight' is missing", "Field 'weight' is missing"),
        ("", ""),
    ],
)
def test_normalise__each_pattern__keeps_what_says_the_fault(message: str, expected: str) -> None:
    assert normalise(message) == expected


def test_normalise__one_fault_from_two_processes__is_one_text() -> None:
    # Envoy's SotW and delta recordings of one case differ in the random mark of the process only.
    texts: dict[tuple[str, str], set[str]] = {}
    for sample in _SAMPLES:
        if sample["client"].startswith("Envoy") and sample["case"] != "duplicate names":
            texts.setdefault((sample["type"], sample["case"]), set()).add(normalise(sample["message"]))

    assert {case for case, normalised in texts.items() if len(normalised) > 1} == set()


def test_normalise__different_faults__stay_different() -> None:
    by_text: dict[str, set[str]] = {}
    for sample in _SAMPLES:
        by_text.setdefault(normalise(sample["message"]), set()).add(" ".join(sample["message"].split()))

    merged = {text: messages for text, messages in by_text.items() if len(messages) > 1}

    # What falls together differs in the place of the resource or in the mark of the process, and in nothing else.
    without = re.compile(r"resource index \d|goo\.gle/debug\w+ ")
    assert len(merged) > 5
    assert all(len({without.sub("", message) for message in messages}) == 1 for messages in merged.values())


@settings(deadline=None)
@given(st.text())
def test_normalise__any_text__is_one_line_without_noise_and_always_the_same(message: str) -> None:
    normalised = normalise(message)

    assert normalised == " ".join(normalised.split())
    assert normalise(message) == normalised


_UNITS = (
    *('"', '\\"', "'", " '", "'a", "a", "a.", "a[", "a[b.a", "[a", "a-", "f0", "f", ":", "f:", "f:f:f:f:f:f:f:f g "),
    *("1.", "1 ", "1.2.3.", "field:", "field:'", "goo.gle/debug", "envoy.", "google.a ", "aValidationError", "\n"),
    *("12345678-1234-1234-1234-", "filter '", "type URL: '", "0x", " ", "é", "\u2028", "type.googleapis.com/"),
)


@pytest.mark.parametrize("unit", _UNITS)
def test_normalise__hostile_64_kib__takes_time_in_proportion(unit: str) -> None:
    def seconds(chars: int) -> float:
        text = (unit * (chars // len(unit) + 1))[:chars]
        runs = []
        for _ in range(3):
            start = time.process_time()
            normalise(text)
            runs.append(time.process_time() - start)
        return min(runs)

    # 20 to 80 ms on an idle machine. A pattern that is quadratic takes minutes.
    whole = seconds(MAX_TEXT_CHARS)
    assert whole < 0.3
    assert whole < 4 * 2 * seconds(MAX_TEXT_CHARS // 4) + 0.01


def test_normalise__text_beyond_the_limit__is_cut() -> None:
    assert len(normalise("ab " * MAX_TEXT_CHARS)) <= MAX_TEXT_CHARS
