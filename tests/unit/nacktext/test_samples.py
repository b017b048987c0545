"""Attribution over texts of real clients with their true culprits (tests/golden/nacktext/samples.json).

151 samples were recorded against Envoy 1.40.0, grpcio 1.85.1, grpc-go 1.85.0-dev and @grpc/grpc-js-xds 1.14.1. Those
with `observed: false` follow the format strings of the client's source, most of which they cite. The scores are pinned
to the letter: a change of one is a decision. And whatever is left of a sample that was cut blames nobody else.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from xdscore import resource_types
from xdscore.nacktext import Attribution, Dialect, attribute

_FILE = Path(__file__).parents[2] / "golden" / "nacktext" / "samples.json"
_URLS = {kind.short: kind.url for kind in resource_types.RESOURCE_TYPES}
# What the recorder wrote where gRPC-Node died of the response instead of answering.
_NO_ANSWER = "<<no request with this nonce>>"


@dataclass(frozen=True, slots=True)
class Sample:
    """One recorded NACK. A resource that the recorder could not name is `""` in `names` (decisions C32)."""

    title: str
    family: str
    type_url: str
    message: str
    names: tuple[str, ...]
    culprits: frozenset[str]

    def attribution(self, text: str | None = None) -> Attribution:
        """Of the sample's text, or of `text` in its place."""
        return attribute(self.message if text is None else text, type_url=self.type_url, names=self.names)

    def unnamed(self) -> tuple[int, ...]:
        """The places of the resources without a name: none of them could be decoded, or their name is missing."""
        return tuple(place for place, name in enumerate(self.names) if name == "")


def _samples() -> list[Sample]:
    return [
        Sample(
            title=f"{place}: {row['client']} {row['variant']} {row['type']}: {row['case']}",
            family=row["family"],
            type_url=_URLS[row["type"]],
            message=row["message"],
            names=tuple(name or "" for name in row["resource_names_in_order"]),
            culprits=frozenset(row["truly_invalid"]),
        )
        for place, row in enumerate(json.loads(_FILE.read_text()))
    ]


SAMPLES = _samples()


def _exact(sample: Sample) -> bool:
    """Whether every culprit was told: by name, or by place where it has none. No sample has culprits of both kinds."""
    found = sample.attribution()
    named = sample.culprits & set(sample.names) - {""}
    if sample.unnamed():
        return found.names == () and found.indexes == sample.unnamed()
    return set(found.names) == named == sample.culprits


def _wrongly_blamed(sample: Sample, found: Attribution) -> set[str]:
    """The names it blames, by name or by place, that are no culprits."""
    return {*found.names, *(sample.names[place] for place in found.indexes)} - sample.culprits - {""}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.title)
def test_attribute__real_text__blames_nobody_who_is_innocent(sample: Sample) -> None:
    assert _wrongly_blamed(sample, sample.attribution()) == set()


# By nobody knows whom; by Envoy, or by Parley where it keeps a text; by one after the other.
_CUTS = ("", "...(truncated)", "...(trunc", "...(trunc...(truncated)")
_CHARS_CUT_ONE_BY_ONE = 300


def _cut_lengths(message: str) -> set[int]:
    """Each length up to some characters, and each percent of the whole."""
    return {*range(min(len(message), _CHARS_CUT_ONE_BY_ONE)), *(len(message) * part // 100 for part in range(100))}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.title)
def test_attribute__real_text_cut_anywhere__blames_nobody_who_is_innocent(sample: Sample) -> None:
    for kept in _cut_lengths(sample.message):
        for mark in _CUTS:
            found = sample.attribution(sample.message[:kept] + mark)

            assert _wrongly_blamed(sample, found) == set(), sample.message[:kept] + mark
            assert mark == "" or not found.complete


_LISTS = ("xDS response validation errors: ", "Error adding/updating listener(s) ")


@pytest.mark.parametrize("sample", [sample for sample in SAMPLES if sample.message.startswith(_LISTS)])
def test_attribute__real_list_that_lacks_its_end__is_incomplete_without_a_mark_too(sample: Sample) -> None:
    end = sample.message[-1]
    cut = [sample.message[:kept] for kept in _cut_lengths(sample.message)]

    assert all(not sample.attribution(text).complete for text in cut if not text.endswith(end))


def test_attribute__all_real_texts__scores() -> None:
    # resource_errors entries blame nobody, which is exact where nobody of the response is to blame.
    exact = Counter(sample.family for sample in SAMPLES if _exact(sample))

    assert Counter(sample.family for sample in SAMPLES) == {
        "envoy": 70,
        "grpc-core": 37,
        "grpc-go": 24,
        "grpc-java": 4,
        "grpc-node": 25,
        "grpc-rust": 7,
    }
    # Envoy's other ten: bare texts of responses with several resources, an undecodable resource with a name beside
    # others, and a text that was cut. Go's and Rust's other one: top level errors beside named ones.
    assert exact == {
        "envoy": 60,
        "grpc-core": 37,
        "grpc-go": 23,
        "grpc-java": 4,
        "grpc-node": 25,
        "grpc-rust": 6,
    }


def test_attribute__sixty_bad_clusters_cut_at_4096_bytes__blames_all_that_are_left() -> None:
    sample = next(sample for sample in SAMPLES if "60 bad clusters" in sample.title)

    found = sample.attribution()

    assert found.names == tuple(f"bad-{number:04d}" for number in range(31))
    assert not found.complete


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.title)
def test_attribute__real_text__knows_its_dialect_or_says_unknown(sample: Sample) -> None:
    dialect = sample.attribution().dialect

    # `missing ): (` is RE2's own text: nothing in it says that Envoy wrote it.
    bare = sample.message in {"missing ): (", _NO_ANSWER}
    assert dialect == (Dialect.UNKNOWN if bare else sample.family)
