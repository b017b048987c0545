"""Whom a NACK blames: what changed comes first, the text narrows it, and nobody outside the response is ever blamed."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.clients.foreign_text import nack_text
from controlplane.incidents.attribution import Confidence, blame
from xdscore.evidence import Evidence
from xdscore.redaction import NO_SECRETS
from xdscore.resource_types import CLUSTER, LISTENER, RESOURCE_TYPES

SAMPLES = json.loads((Path(__file__).parents[2] / "golden" / "nacktext" / "samples.json").read_text())
URLS = {kind.short: kind.url for kind in RESOURCE_TYPES}

A, B, C = ("a", "v1"), ("b", "v1"), ("c", "v1")


def envoy_says(*names: str) -> str:
    return "Error adding/updating cluster(s) " + ", ".join(f"{name}: Invalid path: /no" for name in names)


@pytest.mark.parametrize(
    ("text", "suspects", "confidence", "culprits", "left"),
    [
        (envoy_says("b"), (A, B, C), Confidence.NAMED_IN_TEXT, (B,), ()),
        (envoy_says("a", "c"), (A, B, C), Confidence.NAMED_IN_TEXT, (A, C), ()),
        ("Invalid duration", (B,), Confidence.ONE_OF, (B,), ()),
        ("Invalid duration", (A, B), Confidence.ONE_OF, (), (A, B)),
        ("Invalid duration", (), Confidence.UNKNOWN, (), ()),
    ],
)
def test_blame__what_changed_and_what_the_text_says__decide(
    text: str,
    suspects: tuple[tuple[str, str], ...],
    confidence: Confidence,
    culprits: tuple[tuple[str, str], ...],
    left: tuple[tuple[str, str], ...],
) -> None:
    found = blame(type_url=CLUSTER.url, text=text, resources=(A, B, C), suspects=suspects)

    assert (found.confidence, found.culprits, found.suspects) == (confidence, culprits, left)


def test_blame__stream_suspects_what_the_client_took_before__that_is_named_and_its_neighbours_are_not() -> None:
    """The client's whole text named `a`, which it had acknowledged, and `b` was new to it (reliability N2)."""
    found = blame(
        type_url=CLUSTER.url, text=envoy_says("a"), resources=(A, B, C), suspects=(A,), evidence=Evidence.TEXT
    )

    assert (found.confidence, found.culprits, found.suspects) == (Confidence.NAMED_IN_TEXT, (A,), ())


def test_blame__text_names_only_what_was_acknowledged_before__does_not_count() -> None:
    found = blame(type_url=CLUSTER.url, text=envoy_says("a"), resources=(A, B, C), suspects=(B, C))

    assert (found.confidence, found.culprits, found.suspects) == (Confidence.ONE_OF, (), (B, C))


def test_blame__suspect_that_was_not_in_the_response__is_dropped() -> None:
    found = blame(type_url=CLUSTER.url, text="no", resources=(A, B), suspects=(B, ("victim", "v9")))

    assert (found.confidence, found.culprits) == (Confidence.ONE_OF, (B,))


def test_blame__response_of_one__is_not_called_named() -> None:
    found = blame(
        type_url=CLUSTER.url,
        text="Invalid duration",
        resources=(A,),
        suspects=(A,),
        evidence=Evidence.ONLY_CHANGE,
    )

    assert (found.confidence, found.culprits) == (Confidence.ONLY_CHANGE, (A,))


def test_blame__name_that_is_escaped_in_the_stored_text__is_found_by_its_place() -> None:
    turned = ("pay\u202egnp", "v1")
    stored = nack_text(envoy_says(turned[0]), secret=False, held=NO_SECRETS, max_bytes=4096)

    found = blame(type_url=CLUSTER.url, text=stored, resources=(A, turned), suspects=(A, turned))

    assert "\u202e" not in stored
    assert found.culprits == (turned,)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample['client']} {sample['case']}"[:60])
def test_blame__real_texts_as_they_are_stored__never_blame_the_innocent(sample: dict[str, object]) -> None:
    names = [name or "" for name in sample["resource_names_in_order"]]  # type: ignore[attr-defined]
    culprits = {name or "" for name in sample["truly_invalid"]}  # type: ignore[attr-defined]
    resources = tuple((name, "v1") for name in dict.fromkeys(names))
    text = nack_text(str(sample["message"]), secret=False, held=NO_SECRETS, max_bytes=4096)

    found = blame(
        type_url=URLS.get(str(sample["type"]), CLUSTER.url), text=text, resources=resources, suspects=resources
    )

    assert {name for name, _ in found.culprits} <= culprits | {""} or len(resources) == 1


names = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=12)
contents = st.lists(st.tuples(names, st.sampled_from(["v1", "v2"])), max_size=6, unique_by=lambda each: each[0])


@given(resources=contents, suspects=contents, text=st.text(max_size=80))
def test_blame__whatever_is_said__only_what_was_in_the_response(
    resources: list[tuple[str, str]], suspects: list[tuple[str, str]], text: str
) -> None:
    found = blame(type_url=LISTENER.url, text=text, resources=resources, suspects=suspects)

    assert set(found.culprits) | set(found.suspects) <= set(resources) & set(suspects)
    assert found.culprits or found.confidence in {Confidence.ONE_OF, Confidence.UNKNOWN}


@pytest.mark.parametrize(
    ("evidence", "confidence"),
    [(Evidence.ISOLATED, Confidence.ISOLATED), (Evidence.ONLY_CHANGE, Confidence.ONLY_CHANGE)],
)
def test_blame__server_knows_the_culprit__text_that_names_another_changes_nothing(
    evidence: Evidence, confidence: Confidence
) -> None:
    found = blame(type_url=CLUSTER.url, text=envoy_says("a"), resources=(A, B, C), suspects=(B,), evidence=evidence)

    assert (found.confidence, found.culprits) == (confidence, (B,))


def test_confidence__seen_again_less_surely__stays_as_sure_as_it_was() -> None:
    assert Confidence.ONE_OF.or_surer(Confidence.ISOLATED) is Confidence.ISOLATED
    assert Confidence.ONLY_CHANGE.or_surer(Confidence.NAMED_IN_TEXT) is Confidence.ONLY_CHANGE
