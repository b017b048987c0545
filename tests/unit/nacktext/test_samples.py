"""Attribution over 155 texts of real clients with their true culprits (tests/golden/nacktext/samples.json).

The samples were recorded against Envoy 1.40.0, grpcio 1.85.1, grpc-go 1.85.0-dev and @grpc/grpc-js-xds 1.14.1; those of
gRPC-Java follow the format strings of its source. The scores are pinned to the letter: a change of one is a decision.
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
_DIALECTS = {
    "Envoy": Dialect.ENVOY,
    "grpc C-core": Dialect.GRPC_CORE,
    "grpc-go": Dialect.GRPC_GO,
    "grpc-java": Dialect.GRPC_JAVA,
    "grpc-js-xds": Dialect.GRPC_NODE,
}
# What the recorder wrote where gRPC-Node died of the response instead of answering.
_NO_ANSWER = "<<no request with this nonce>>"


@dataclass(frozen=True, slots=True)
class Sample:
    """One recorded NACK. A resource that the recorder could not name is `""` in `names` (resolutions C32)."""

    title: str
    client: str
    type_url: str
    message: str
    names: tuple[str, ...]
    culprits: frozenset[str]

    def attribution(self) -> Attribution:
        return attribute(self.message, type_url=self.type_url, names=self.names)

    def unnamed(self) -> tuple[int, ...]:
        """The places of the resources without a name: none of them could be decoded, or their name is missing."""
        return tuple(place for place, name in enumerate(self.names) if name == "")


def _samples() -> list[Sample]:
    return [
        Sample(
            title=f"{place}: {row['client']} {row['variant']} {row['type']}: {row['case']}",
            client=next(client for client in _DIALECTS if row["client"].startswith(client)),
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


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.title)
def test_attribute__real_text__blames_nobody_who_is_innocent(sample: Sample) -> None:
    found = sample.attribution()

    assert set(found.names) <= sample.culprits
    innocent = {place for place, name in enumerate(sample.names) if name not in {*sample.culprits, ""}}
    assert not innocent & set(found.indexes)


def test_attribute__all_real_texts__scores() -> None:
    # resource_errors entries blame nobody, which is exact where nobody of the response is to blame.
    exact = Counter(sample.client for sample in SAMPLES if _exact(sample))

    assert Counter(sample.client for sample in SAMPLES) == {
        "Envoy": 69,
        "grpc C-core": 33,
        "grpc-go": 24,
        "grpc-java": 4,
        "grpc-js-xds": 25,
    }
    # Envoy's other ten: bare texts of responses with several resources, an undecodable resource with a name beside
    # others, and a text that was cut. Go's other one: top level errors beside named ones.
    assert exact == {"Envoy": 59, "grpc C-core": 33, "grpc-go": 23, "grpc-java": 4, "grpc-js-xds": 25}


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
    assert dialect == (Dialect.UNKNOWN if bare else _DIALECTS[sample.client])
