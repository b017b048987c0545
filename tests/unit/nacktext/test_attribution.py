"""The contract of `attribute` that holds for every dialect, and its cost."""

import time
from collections.abc import Callable

import pytest

from tests.unit.nacktext.grammar import CDS, LDS, RDS
from xdscore.nacktext import Attribution, Dialect, attribute
from xdscore.nacktext.reading import MAX_NAME_PROBES, MAX_TEXT_CHARS, Names

_NAMES = [f"service-{number:05d}.prod" for number in range(10_000)]
_NESTED = ["a" * length for length in range(1, 1025)] + [f"x{number}" for number in range(9000)]
_SEPARATORS = [", " * count + "x" for count in range(1, 500)] + ["; : " * count for count in range(1, 250)]

_CLUSTERS = "Error adding/updating cluster(s) "
_LISTENERS = "Error adding/updating listener(s) "
_LIST = "xDS response validation errors: ["
_GO = 'error parsing "ClusterResource" response: '


def test_attribute__text_of_nobody_and_a_single_resource__blames_it_by_elimination() -> None:
    found = attribute("missing ): (", type_url=RDS, names=["r1"])

    assert found == Attribution(names=("r1",), indexes=(0,), dialect=Dialect.UNKNOWN, complete=False)


def test_attribute__text_of_nobody_and_one_resource_twice__blames_both_places() -> None:
    assert attribute("bad", type_url=RDS, names=["r1", "r1"]).indexes == (0, 1)


def test_attribute__text_of_nobody_and_several_resources__blames_nobody() -> None:
    found = attribute("missing ): ( in r1", type_url=RDS, names=["r1", "r2"])

    assert found == Attribution(names=(), indexes=(), dialect=Dialect.UNKNOWN, complete=False)


def test_attribute__several_resources_without_a_name__are_not_eliminated() -> None:
    assert attribute("bad", type_url=RDS, names=["", ""]).indexes == ()


def test_attribute__empty_response__blames_nobody() -> None:
    assert attribute("bad", type_url=RDS, names=[]).indexes == ()


def test_attribute__dialect__is_the_plain_word_of_the_interface() -> None:
    words = {str(dialect) for dialect in Dialect}

    assert words == {"grpc-core", "grpc-go", "grpc-java", "grpc-node", "grpc-rust", "envoy", "unknown"}
    assert attribute("x", type_url="", names=[]).dialect == "unknown"


def test_attribute__text_beyond_the_limit__reads_its_beginning_and_is_incomplete() -> None:
    text = _CLUSTERS + "a: " + "x" * MAX_TEXT_CHARS + ", b: y"

    found = attribute(text, type_url=CDS, names=["a", "b"])

    assert found.names == ("a",)
    assert not found.complete


def test_attribute__name_outside_ascii_and_lone_surrogates__are_compared_as_they_are() -> None:
    names = ["na\u0308me", "näme", "\ud800"]

    assert attribute(_CLUSTERS + "näme: x, \ud800: y", type_url=CDS, names=names).names == ("näme", "\ud800")


def test_names__text_made_to_be_slow__is_given_up_and_called_incomplete() -> None:
    names = Names(("ab", "b"))
    text = "a: " * (MAX_NAME_PROBES + 1)

    for place in range(MAX_NAME_PROBES + 1):
        names.longest_at(text, 3 * place, ": ")

    assert names.exhausted
    found = attribute(_CLUSTERS + "x: bad" + ", abc2: " * (MAX_NAME_PROBES + 1), type_url=CDS, names=["x", "abc1"])
    assert found.names == ("x",)
    assert not found.complete


def _filled(head: str, unit: str) -> str:
    return (head + unit * (MAX_TEXT_CHARS // len(unit)))[:MAX_TEXT_CHARS]


_TEXTS = {
    "clusters": _CLUSTERS + ", ".join(f"{name}: malformed IP address: not-an-ip" for name in _NAMES),
    "clusters backwards": _CLUSTERS + ", ".join(f"{name}: malformed" for name in reversed(_NAMES)),
    "cluster separators": _filled(_CLUSTERS + f"{_NAMES[0]}: ", ", "),
    "cluster beginnings": _filled(_CLUSTERS + f"{_NAMES[0]}: ", ", ser: "),
    "nested names": _filled(_CLUSTERS + "a: ", ", aaab: "),
    "nested separators": _filled(_CLUSTERS + ", x: ", ", : "),
    "listener lines": _filled(_LISTENERS + f"{_NAMES[0]}: ", "\n"),
    "listener dump": _filled(_LISTENERS + f"{_NAMES[0]}: goo.gle/debugstr \n", 'name: "x"\n'),
    "numbered": _LIST + "; ".join(f"resource index {place}: {name}: BAD_X: x" for place, name in enumerate(_NAMES)),
    "numbered alike": _filled(_LIST + "resource index 0: ", "; resource index 0: "),
    "go": _GO + ";\n".join(f'resource "{name}": bad' for name in _NAMES),
    "go quotes": _filled(_GO, 'resource "'),
    "go backslashes": _filled(_GO + 'resource "', '\\"'),
    "java": "\n".join(f"CDS response Cluster '{name}' validation error: x" for name in _NAMES),
    "java lines": _filled("CDS response Cluster 'a' validation error: x", "\n"),
    "route": _filled("Only a single wildcard domain is permitted", " in route "),
    "dump": _filled("goo.gle/debugstr \n", 'name: "'),
    "old dump": _filled("Proto constraint validation failed (", '): name: "'),
    "response": _filled("x does not match the message-wide type URL y in DiscoveryResponse ", "resources {\n  [z] {\n"),
    "nothing": _filled("", "x, : '"),
}


def _in_readings(text: str, names: list[str]) -> float:
    """What attributing costs in readings of the longest text letter by letter, which is what the same machine takes at
    the same time: seconds say how busy it is. The shortest of each counts, since the work is always the same.
    """
    attributing, reading = [], []
    for _ in range(7):
        reading.append(_seconds(lambda: [letter == "," for letter in "x" * MAX_TEXT_CHARS]))
        attributing.append(_seconds(lambda: attribute(text, type_url=LDS, names=names)))
    return min(attributing) / min(reading)


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.mark.parametrize("text", _TEXTS)
@pytest.mark.parametrize("names", ["plain", "nested", "separators"])
def test_attribute__64_kib_and_10_000_names__costs_a_few_readings_of_the_text(text: str, names: str) -> None:
    given = {"plain": _NAMES, "nested": _NESTED, "separators": _SEPARATORS + _NAMES[:9000]}[names]

    # Measured: 3 to 12, which are 8 to 17 ms. Where both the names and the text were made to be slow, up to 72.
    assert _in_readings(_TEXTS[text], given) < (36 if names == "plain" else 216)
