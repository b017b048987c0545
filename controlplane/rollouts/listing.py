"""Rollouts as values: one with all that its page shows, or a page of them in a number of queries that does not grow."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controlplane.rollouts.models import Rollout, RolloutApproval, RolloutChange, RolloutResource
from controlplane.rollouts.stored import counts_of, step_views
from controlplane.rollouts.values import KindCounts, Outcome, ResourceOutcome, RolloutState, RolloutView
from controlplane.rollouts.values import RolloutResource as ResourceValue


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is read of a rollout beside its own row."""

    approvals: Mapping[int, tuple[str, ...]]
    changes: tuple[str, ...]
    resources: tuple[ResourceValue, ...]


def views_of(rows: Sequence[Rollout]) -> tuple[RolloutView, ...]:
    """The values of these rows, without counts by kind of client. The rows were read with their environments. Three
    queries.
    """
    parts = _parts_of(rows)
    return tuple(_view(row, parts[row.pk], ()) for row in rows)


def view_of(row: Rollout, kinds: tuple[KindCounts, ...]) -> RolloutView:
    """One rollout as a value. `kinds`: its counts by kind of client."""
    return _view(row, _parts_of([row])[row.pk], kinds)


def resource_value(row: RolloutResource) -> ResourceValue:
    """One resource of a rollout as a value."""
    return ResourceValue(
        type=row.type,
        name=row.name,
        from_revision=row.from_revision,
        to_revision=row.to_revision,
        outcome=ResourceOutcome(row.outcome),
        change=row.change,
        author=row.author,
        incident=row.incident,
        because=row.because,
    )


def _parts_of(rows: Sequence[Rollout]) -> dict[int, _Parts]:
    approvals: defaultdict[int, defaultdict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for given in RolloutApproval.objects.filter(rollout__in=rows, void=False).order_by("pk"):
        approvals[given.rollout_id][given.step].append(given.by)
    changes: defaultdict[int, list[str]] = defaultdict(list)
    for change in RolloutChange.objects.filter(rollout__in=rows).order_by("pk"):
        changes[change.rollout_id].append(change.change)
    resources: defaultdict[int, list[ResourceValue]] = defaultdict(list)
    for resource in RolloutResource.objects.filter(rollout__in=rows).order_by("type", "name"):
        resources[resource.rollout_id].append(resource_value(resource))
    return {
        row.pk: _Parts(
            {step: tuple(by) for step, by in approvals[row.pk].items()},
            tuple(changes[row.pk]),
            tuple(resources[row.pk]),
        )
        for row in rows
    }


def _view(row: Rollout, parts: _Parts, kinds: tuple[KindCounts, ...]) -> RolloutView:
    return RolloutView(
        id=str(row.public_id),
        label=str(row),
        environment=row.environment.key,
        mode=row.mode,
        state=RolloutState(row.state),
        step=row.step + 1,
        steps=step_views(row, parts.approvals),
        changes=parts.changes,
        resources=parts.resources,
        counts=counts_of(row.counts),
        control=row.control,
        outcome=Outcome(row.outcome) if row.outcome else None,
        reasons=tuple(row.reasons),
        uncovered=tuple(row.uncovered),
        waits_for=row.waits_for,
        until=row.until,
        started_at=row.started_at,
        ended_at=row.ended_at,
        ended_because=row.ended_because,
        opened_by=tuple(row.authors),
        paused_because=row.paused_because,
        kinds=kinds,
        begun=row.begun,
    )
