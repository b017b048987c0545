"""Writes down what a build did and found: change status, resource pages and API tell it (reliability P12)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from controlplane.builder.models import Build, BuildOutcome, HeldResource
from controlplane.builder.stages.fallback import HeldBack, Resolution
from controlplane.builder.stages.wording import Pointers, code_of, finding_counts, findings_of_held, other_findings
from controlplane.catalog.heads import Head
from controlplane.catalog.selectors import reference_pointers
from controlplane.catalog.values import finding_to_json
from controlplane.database.aliases import READER
from xdscore.findings import Finding
from xdscore.snapshot import EntryKey

# A build that holds more names than this is one mistake with many victims; the first ones tell it with everything that
# was found. Of the others it is kept that they are held, and for what: a list must never call them published.
MAX_HELD = 1_000
MAX_FINDINGS = 500
_MAX_FINDINGS_OF_ONE = 20
_BATCH = 200


@dataclass(frozen=True, slots=True)
class HeldBackWhy:
    """A name that is held back, with every finding that says why its newest revision is not served."""

    held: HeldBack
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a build and the names that it holds back, ready to be stored. `findings` are the first ones;
    `finding_counts` counts all of them, by code.
    """

    held: tuple[HeldBackWhy, ...]
    findings: tuple[Finding, ...]
    finding_counts: Mapping[str, int]


def report_of(
    resolution: Resolution, heads: Mapping[EntryKey, Head], environment: str, checked: Sequence[Finding] = ()
) -> Report:
    """The report on what a build decided to serve. `checked`: the findings of deep validation, empty where Envoy was
    not asked. A finding about a reference says at which place in the manifest it stands.
    """
    pointers = _pointers(resolution, heads, [each.key for each in resolution.held[:MAX_HELD]])
    held = _held_why(resolution, environment, resolution.held, pointers)
    others = tuple(islice(chain(checked, other_findings(resolution, environment, pointers)), MAX_FINDINGS))
    counts = finding_counts(resolution) + Counter(each.code for each in checked)
    return Report(held, others, dict(sorted(counts.items())))


def held_why(
    resolution: Resolution, heads: Mapping[EntryKey, Head], environment: str, held: Sequence[HeldBack]
) -> tuple[HeldBackWhy, ...]:
    """The names in `held`, which are some of those that `resolution` holds back, with the findings that say why."""
    pointers = _pointers(resolution, heads, [each.key for each in held[:MAX_HELD]])
    return _held_why(resolution, environment, held, pointers)


def _held_why(
    resolution: Resolution, environment: str, held: Sequence[HeldBack], pointers: Pointers
) -> tuple[HeldBackWhy, ...]:
    shown, others = held[:MAX_HELD], held[MAX_HELD:]
    found = tuple(
        HeldBackWhy(each, findings_of_held(each, resolution, environment, pointers)[:_MAX_FINDINGS_OF_ONE])
        for each in shown
    )
    return found + tuple(HeldBackWhy(each, ()) for each in others)


def build_record(
    *,
    environment_id: int,
    from_generation: int,
    to_generation: int,
    outcome: BuildOutcome,
    stage_ms: Mapping[str, float],
    epoch: int | None = None,
    report: Report | None = None,
    detail: str = "",
) -> int:
    """Store that a build ran, and return the id of its row. `epoch`: the one it published, None where it published
    none;
    `detail`: why it failed.
    """
    return Build.objects.create(
        environment_id=environment_id,
        from_generation=from_generation,
        to_generation=to_generation,
        epoch=epoch,
        outcome=outcome,
        stage_ms=dict(stage_ms),
        detail=detail[:1000],
        held=[_held_json(each.held) for each in report.held[:MAX_HELD]] if report is not None else [],
        held_count=len(report.held) if report is not None else 0,
        findings=[finding_to_json(each) for each in report.findings] if report is not None else [],
        finding_counts=dict(report.finding_counts) if report is not None else {},
    ).pk


def held_replace(*, environment_id: int, generation: int, held: Sequence[HeldBackWhy]) -> None:
    """Store `held` as the names that the environment holds back now. Only rows that differ are written."""
    rows = HeldResource.objects.filter(environment_id=environment_id)
    before = {
        (word, name): (pk, tuple(said))
        for pk, word, name, *said in rows.values_list("pk", "type", "name", "served", "reason", "kinds", "findings")
    }
    wanted = {each.held.key: each for each in held}
    gone = [pk for key, (pk, _) in before.items() if key not in wanted]
    for start in range(0, len(gone), _BATCH):
        HeldResource.objects.filter(pk__in=gone[start : start + _BATCH]).delete()
    changed = []
    for key, each in wanted.items():
        findings = [finding_to_json(finding) for finding in each.findings]
        said = (each.held.served, each.held.reason, list(each.held.kinds), findings)
        if key not in before or before[key][1] != said:
            row = HeldResource(environment_id=environment_id, type=key[0], name=key[1], generation=generation)
            row.served, row.reason, row.kinds, row.findings = said
            changed.append(row)
    HeldResource.objects.bulk_create(
        changed,
        update_conflicts=True,
        unique_fields=["environment", "type", "name"],
        update_fields=["served", "reason", "kinds", "findings", "generation"],
        batch_size=_BATCH,
    )


def _pointers(
    resolution: Resolution, heads: Mapping[EntryKey, Head], held: Sequence[EntryKey]
) -> dict[tuple[EntryKey, EntryKey], str]:
    """The place (JSON pointer) in the manifest of each reference that a finding about `held` will name, by the keys of
    the two resources: the one that refers and the one referred to.
    """
    told = set(held) & resolution.references.missing.keys()
    others = chain(resolution.references.missing, resolution.references.foreign)
    told.update(sorted(set(others))[:MAX_FINDINGS])
    by_revision = {heads[key].revision: key for key in told}
    found = reference_pointers(revisions=by_revision, using=READER) if by_revision else {}
    return {(by_revision[revision], target): pointer for (revision, target), pointer in found.items()}


def _held_json(held: HeldBack) -> dict[str, object]:
    word, name = held.key
    return {"type": word, "name": name, "reason": held.reason, "served": held.served, "code": code_of(held)}
