"""A real Envoy as the oracle of our rules: what we refuse it must refuse, or the reason stands in a list here; what it
refuses we should, all but a few in a hundred.

A test run tries every n-th mutation, which are the same ones each time; `make differential` tries 2,000, and
`SHIFT=…` those that stand so many further on.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import pytest

from tests.support.mutations import Mutation, envoy_refusal, mutations
from xdscore.findings import Finding, Severity
from xdscore.resource_types import CLUSTER
from xdscore.schema import Manifest, ParsedResource, Refused, parse

COUNT = int(os.environ.get("DIFFERENTIAL", "310"))
SHIFT = int(os.environ.get("DIFFERENTIAL_SHIFT", "0"))
FULL = 2_000
# Of what Envoy refuses, the share that our rules may accept. The part of a test run is small: one more is a per cent.
MAY_MISS = 0.02 if COUNT >= FULL else 0.06
# What we refuse although Envoy accepts it, by code and the end of the sentence, and why.
EXCEPTIONS = {
    ("XDS1020", "has no name."): "Envoy makes up a name for a static listener; over xDS nobody could subscribe to it",
    ("XDS1021", "means every resource in a subscription."): "nobody could subscribe to that name alone",
    ("XDS1021", "at position 2."): "a line break in a name splits logs and NACK texts (reliability.md, name length)",
    ("XDS1043", "must be at most 5000011; it is 2147483647."): (
        "the API's rule for tables of Maglev, which Envoy does not look at in a policy: with hosts it makes the table"
    ),
}

# What Envoy says of the machine it runs on, or of its own bootstrap, not of the resource.
OF_THE_MACHINE = (
    "Environment variable doesn't exist",
    "Invalid path: ",  # no such file
    "invalid file path ",
    "no local cluster name is present",
    "Unknown static secret: ",
)


def chosen() -> list[Mutation]:
    every = list(mutations())
    return [every[(place * len(every) // COUNT + SHIFT) % len(every)] for place in range(COUNT)]


def is_exception(finding: Finding) -> bool:
    return any(finding.code == code and finding.detail.endswith(end) for code, end in EXCEPTIONS)


def errors(outcome: ParsedResource | Refused) -> list[Finding]:
    if isinstance(outcome, ParsedResource):
        return []
    return [finding for finding in outcome.findings if finding.severity is Severity.ERROR]


def of_the_machine(refusal: str) -> bool:
    return any(each in refusal for each in OF_THE_MACHINE)


def clusters_of(outcome: ParsedResource | Refused) -> set[str]:
    """The clusters that a resource names. Whether they exist is for the builder to say, not for rules."""
    references = outcome.references if isinstance(outcome, ParsedResource) else ()
    return {each.name for each in references if each.type == CLUSTER.word}


@pytest.mark.slow
@pytest.mark.timeout(3600 if COUNT > 500 else 300)
def test_differential__what_we_refuse__envoy_refuses_too(
    tmp_path: Path, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    tried = chosen()
    outcomes = [parse(Manifest(mutation.manifest)) for mutation in tried]
    ours = list(map(errors, outcomes))

    with ThreadPoolExecutor(2) as pool:
        named = map(clusters_of, outcomes)
        oracle = list(pool.map(envoy_refusal, tried, named, repeat(tmp_path)))

    accepted_by_envoy = [
        f"{mutation.title}: {found[0].code} {found[0].pointer} {found[0].detail}"
        for mutation, found, refusal in zip(tried, ours, oracle, strict=True)
        if found and not refusal and not all(map(is_exception, found))
    ]
    missed = [
        f"{mutation.title}: {refusal}"
        for mutation, found, refusal in zip(tried, ours, oracle, strict=True)
        if refusal and not found and not of_the_machine(refusal)
    ]
    refused = len([refusal for refusal in oracle if refusal and not of_the_machine(refusal)])
    with capsys.disabled():
        print(  # noqa: T201  the figure is part of what the test is for
            f"\n{len(tried)} mutations: Envoy refuses {refused}, of which our rules accept {len(missed)} "
            f"({len(missed) / max(refused, 1):.1%})"
        )
    record_property("missed", missed)
    assert refused > len(tried) // 4
    assert accepted_by_envoy == []
    assert len(missed) <= MAY_MISS * refused, "\n".join(missed)
