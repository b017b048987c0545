"""Golden pairs: a manifest in, its canonical form and every finding out (`make golden` rewrites the latter).

A file named after a code must be found with that code; one named `valid-…` has no finding. The first line of a text may
say which address it was put to. The keys in these files were made for them and open nothing.
"""

import json
import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from xdscore.codes import CATALOGUE
from xdscore.findings import Finding, Severity
from xdscore.resource_types import RESOURCE_TYPES
from xdscore.schema import Expected, Media, ParsedResource, parse, read_manifests, to_json

FOLDER = Path(__file__).parent / "manifests"
CASES = sorted(FOLDER.glob("*.in.*"))
REWRITE = os.environ.get("GOLDEN_REWRITE") == "1"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
# Codes of texts and manifests without a pair, and why.
ELSEWHERE = {
    "XDS1000": "what a request is refused with, not a finding",
    "XDS1018": "protobuf refuses nothing that this reader lets through; tests/unit/schema/test_convert.py",
    "XDS1077": "only where a policy takes such a message; tests/unit/schema/test_unknown.py",
    "XDS1025": "a pair of a megabyte; tests/unit/schema/test_parse.py",
    "XDS1099": "a pair of fifty routes; tests/unit/schema/test_never_used.py",
}


def outcome(case: Path) -> dict[str, object]:
    body = case.read_bytes()
    media = Media.JSON if case.suffix == ".json" else Media.YAML
    first = body.partition(b"\n")[0]
    address = first.removeprefix(b"# address: ").decode() if first.startswith(b"# address: ") else "/"
    word, _, name = address.partition("/")
    manifests, findings = read_manifests(body, media)
    resources = []
    said = list(findings)
    for manifest in manifests:
        result = parse(manifest, Expected(word, name), now=NOW)
        said += result.findings
        if isinstance(result, ParsedResource):
            resources.append(
                {
                    "type": result.type.word,
                    "name": result.name,
                    "content_hash": result.content_hash.hex(),
                    "canonical": to_json(result.any_bytes, lambda _: "…", ttl_ms=result.ttl_ms),
                    "references": [f"{each.type} {each.name} at {each.pointer}" for each in result.references],
                }
            )
    return {"resources": resources, "findings": [finding_line(each) for each in said]}


def finding_line(finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "at": f"{finding.pointer or '/'} line {finding.line} column {finding.column}",
        "detail": finding.detail,
        "hint": finding.hint,
    }


def codes_of(found: dict[str, object]) -> list[str]:
    findings = found["findings"]
    assert isinstance(findings, list)
    return [each["code"] for each in findings]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.partition(".")[0])
def test_pair__manifest__gives_this_canonical_form_and_these_findings(case: Path) -> None:
    expected = case.with_name(case.name.partition(".")[0] + ".out.json")

    found = outcome(case)

    if REWRITE:
        expected.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == json.loads(expected.read_text(encoding="utf-8"))
    promised = case.name.partition("-")[0]
    if promised == "valid":
        assert found["findings"] == []
        assert found["resources"]
    else:
        assert promised in codes_of(found)


def test_pairs__every_type_and_every_code__has_one() -> None:
    found = [outcome(case) for case in CASES]
    codes = {code for each in found for code in codes_of(each)}
    words = {row["type"] for each in found for row in each["resources"]}  # type: ignore[attr-defined]

    assert words == {kind.word for kind in RESOURCE_TYPES}
    assert {code for code in CATALOGUE if code.startswith("XDS10")} - codes == set(ELSEWHERE)


def test_pairs__invalid_manifests__are_sixty_and_more_beyond_one_of_each_code() -> None:
    refused = [
        case.name
        for case in CASES
        if any(
            each["severity"] == Severity.ERROR.value
            for each in outcome(case)["findings"]  # type: ignore[attr-defined]
        )
    ]

    by_code = Counter(name.partition("-")[0] for name in refused)
    assert len(refused) - len(by_code) >= 60
