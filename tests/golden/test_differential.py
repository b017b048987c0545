"""A real Envoy as the oracle of our rules: what we refuse it must refuse, or the reason stands in a list here.

`make differential` tries every mutation there is; a test run tries every n-th, which are the same ones each time.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.mutations import Mutation, envoy_refusal, mutations
from xdscore.findings import Finding, Severity
from xdscore.schema import Manifest, Refused, parse

COUNT = 310
ALL = os.environ.get("DIFFERENTIAL") == "all"
# What we refuse although Envoy accepts it, by code and the end of the sentence, and why.
EXCEPTIONS = {
    ("XDS1020", "has no name."): "Envoy makes up a name for a static listener; over xDS nobody could subscribe to it",
    ("XDS1021", "at position 2."): "a line break in a name splits logs and NACK texts (reliability.md, name length)",
}


def chosen() -> list[Mutation]:
    every = list(mutations())
    return every if ALL else [every[place * len(every) // COUNT] for place in range(COUNT)]


def is_exception(finding: Finding) -> bool:
    return any(finding.code == code and finding.detail.endswith(end) for code, end in EXCEPTIONS)


def errors(mutation: Mutation) -> list[Finding]:
    outcome = parse(Manifest(mutation.manifest))
    if not isinstance(outcome, Refused):
        return []
    return [finding for finding in outcome.findings if finding.severity is Severity.ERROR]


@pytest.mark.slow
@pytest.mark.timeout(1800 if ALL else 300)
def test_differential__what_we_refuse__envoy_refuses_too(
    tmp_path: Path, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    tried = chosen()

    with ThreadPoolExecutor(2) as pool:
        oracle = list(pool.map(lambda mutation: envoy_refusal(mutation, tmp_path), tried))

    ours = [errors(mutation) for mutation in tried]
    accepted_by_envoy = [
        f"{mutation.title}: {found[0].code} {found[0].pointer} {found[0].detail}"
        for mutation, found, refusal in zip(tried, ours, oracle, strict=True)
        if not refusal and not all(map(is_exception, found))
    ]
    missed = [
        f"{mutation.title}: {refusal}"
        for mutation, found, refusal in zip(tried, ours, oracle, strict=True)
        if refusal and not found
    ]
    refused = sum(map(bool, oracle))
    with capsys.disabled():
        print(  # noqa: T201  the figure is part of what the test is for
            f"\n{len(tried)} mutations: Envoy refuses {refused}, of which our rules accept {len(missed)} "
            f"({len(missed) / max(refused, 1):.0%})"
        )
    record_property("missed", missed)
    assert len(tried) >= 300
    assert refused > len(tried) // 4
    assert accepted_by_envoy == []
