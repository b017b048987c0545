"""Builds an environment: catalogue and access in, snapshot out. The two doors, `tasks` and `sweeper`, both end here."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import structlog
from django.conf import settings
from django.utils import timezone

from controlplane.broker.hints import hint_rollout
from controlplane.builder.candidate import Candidate, candidate_build
from controlplane.builder.claims import claim
from controlplane.builder.deep.envoy_refusals import Inspection, refusals_replace
from controlplane.builder.inputs import Inputs, inputs_read
from controlplane.builder.isolating import isolation_of
from controlplane.builder.memory import Memory, Remembered
from controlplane.builder.models import BuildOutcome
from controlplane.builder.pacing import pause_left, wait_for_quiet, wait_for_turn
from controlplane.builder.recording import Report, build_record, held_replace, report_of
from controlplane.builder.retention import builds_prune
from controlplane.builder.selectors import last_build
from controlplane.builder.stages.assemble import Assembly, assemble
from controlplane.builder.stages.fallback import Resolution, resolve
from controlplane.builder.stages.isolation import NOTHING_ISOLATED, Isolation
from controlplane.builder.stages.permit import Permitted, permit
from controlplane.builder.stages.sides import Heads, stable_heads, with_stopped
from controlplane.catalog.change_names import changes_between, named_fields
from controlplane.catalog.heads import CatalogState
from controlplane.catalog.selectors import environment_generations, environments_due
from controlplane.catalog.services import certificates_watch, rehearsal_expire, rehearsal_held
from controlplane.catalog.staging import sides_moved_last
from controlplane.database.failpoints import failpoint
from controlplane.journal.services import event_append
from controlplane.snapshots.retention import BATCH, NeededChunks, StillRun, snapshots_prune
from controlplane.snapshots.services import Published, PublishOutcome, snapshot_publish

log = structlog.get_logger(__name__)

# What this process knows of the environments it built.
MEMORY = Memory()
_UPKEEP_S = 60.0
_PRUNES_AT_MOST = 20  # in one upkeep: more than as many snapshots as there can be in its interval


def build_in_turn(*, environment_id: int) -> None:
    """Build an environment until no change of it waits any more: wait for its turn (`pacing`), build, look again.
    Nothing waits for what a rollout moves between the sides: clients are to have it, or not, at once.

    Only one process at a time does this for an environment; called in another one meanwhile, it returns at once. The
    process that builds looks once more after it has finished, and the sweeper looks after that.
    """
    while True:
        with claim(f"build-{environment_id}") as claimed:
            if not claimed:
                return
            failpoint("build.claimed")
            _wait(environment_id)
            failpoint("build.turn")
            build(environment_id=environment_id)
        generation, built = environment_generations(environment_id=environment_id)
        if generation <= built:
            return


def _wait(environment_id: int) -> None:
    """Return when the next build of this environment may begin."""
    hurried = partial(sides_moved_last, environment_id=environment_id)
    debounce = settings.PARLEY.debounce
    if debounce is not None:
        wait_for_quiet(
            generation=lambda: environment_generations(environment_id=environment_id)[0],
            hurried=hurried,
            quiet_s=debounce.quiet_ms / 1000,
            at_most_s=debounce.at_most_ms / 1000,
            clock=time.monotonic,
            sleep=time.sleep,
        )
    elif (last := last_build(environment_id=environment_id)) is not None:
        left = pause_left(took_s=last.took_s, ago_s=(timezone.now() - last.at).total_seconds())
        wait_for_turn(pause_s=left, hurried=hurried, clock=time.monotonic, sleep=time.sleep)


def build(*, environment_id: int, memory: Memory = MEMORY) -> None:
    """Build and publish the newest generation of an environment; does nothing when that is built already. Two calls at
    the same time do no harm.
    """
    watch = _Stopwatch(time.monotonic)
    known = memory.take(environment_id)
    inputs = inputs_read(environment_id=environment_id, known=known.state)
    if inputs is not None and inputs.state.overdue:
        # Whoever made it died, and no sweeper was here yet (rollouts.md "Rehearsal").
        rehearsal_expire(environment_id=environment_id)
        inputs = inputs_read(environment_id=environment_id, known=inputs.state)
    if inputs is None:
        return
    state = inputs.state
    if state.at.generation <= state.built_generation:
        memory.bring(environment_id, known)
        return
    watch.lap("read")
    failpoint("build.read")
    names = named_fields(
        changes_between(environment_key=state.environment, after=state.built_generation, until=state.at.generation)
    )
    with structlog.contextvars.bound_contextvars(**names):
        try:
            _build(environment_id, inputs, known, watch, memory)
        except Exception as error:
            # Whoever called logs it, where nothing is bound any more.
            error.add_note(f"It was about the changes {names['changes']} of the requests {names['request_ids']}.")
            raise


def _build(environment_id: int, inputs: Inputs, known: Remembered, watch: "_Stopwatch", memory: Memory) -> None:
    state = inputs.state
    try:
        prepared = _prepare_what_can_be(environment_id, inputs, known, watch)
        accepted = prepared.inspection.accepted
        memory.bring(environment_id, Remembered(state, prepared.permitted, prepared.assembly, accepted))
        _publish(prepared, watch)
    except Exception as error:
        build_record(
            environment_id=environment_id,
            from_generation=state.built_generation,
            to_generation=state.at.generation,
            outcome=BuildOutcome.FAILED,
            stage_ms=watch.laps_ms,
            detail=repr(error),
        )
        event_append(
            kind="build.failed",
            environment=state.environment,
            subject=f"build/{state.environment}",
            payload={"generation": state.at.generation, "reason": type(error).__name__},
        )
        log.warning("build.failed", environment=state.environment, reason=type(error).__name__)
        raise


def builds_sweep() -> None:
    """Build every environment in which a change waits for a build, also where the hint about it was lost (decisions
    D7).
    """
    for environment_id in environments_due():
        build_in_turn(environment_id=environment_id)


class Upkeep:
    """Deletes old snapshots and builds and logs certificates that expire soon: at intervals, and in one process at a
    time.

    `still_run`: a function that says when clients were sent what they still run. It is passed in because this package
        may not import that of clients.
    """

    def __init__(self, still_run: StillRun, clock: Callable[[], float] = time.monotonic) -> None:
        self._still_run = still_run
        self._needed = NeededChunks()
        self._clock = clock
        self._next = clock() + _UPKEEP_S

    def __call__(self) -> None:
        """Do the upkeep when its interval has passed since the last time; otherwise do nothing."""
        if self._clock() < self._next:
            return
        self._next = self._clock() + _UPKEEP_S
        with claim("upkeep") as claimed:
            if claimed:
                for _ in range(_PRUNES_AT_MOST):
                    if snapshots_prune(still_run=self._still_run, needed=self._needed) < BATCH:
                        break
                builds_prune()
                certificates_watch(now=timezone.now())


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A build that is computed and not stored yet: all that the publishing transaction writes."""

    environment_id: int
    state: CatalogState
    inspection: Inspection
    permitted: Permitted
    assembly: Assembly
    report: Report
    candidate: Candidate


def _prepare_what_can_be(environment_id: int, inputs: Inputs, known: Remembered, watch: "_Stopwatch") -> _Prepared:
    """Compute the build of `inputs`. Where it fails because of some types only, those stay as they are published and
    the others are built (reliability F29).
    """
    state = inputs.state
    try:
        return _prepare(environment_id, inputs, known, watch)
    except Exception:
        isolation = isolation_of(state)
        failed = isolation.failed
        if not failed:
            raise
        log.exception("build.types_failed", environment=state.environment, types=dict(failed))
    event_append(
        kind="build.failed",
        environment=state.environment,
        subject=f"build/{state.environment}",
        payload={"generation": state.at.generation, "reason": ", ".join(failed.values()), "types": ", ".join(failed)},
    )
    return _prepare(environment_id, inputs, known, watch, isolation)


def _prepare(
    environment_id: int,
    inputs: Inputs,
    known: Remembered,
    watch: "_Stopwatch",
    isolation: Isolation = NOTHING_ISOLATED,
) -> _Prepared:
    state = inputs.state
    heads = isolation.heads if isolation.failed else stable_heads(state.heads, state.staged)
    resolution = resolve(heads)
    watch.lap("resolve")
    failpoint("build.resolved")
    inspect = _inspect if state.deep_validation else _not_inspected
    inspection = inspect(environment_id, heads, resolution, known.accepted)
    if state.deep_validation:
        watch.lap("inspect")
    resolution = isolation.keep(inspection.resolution)
    candidate = candidate_build(
        state, resolution, heads, inputs.access, inspection, partial(inspect, environment_id), isolation
    )
    if candidate.part is not None:
        watch.lap("candidate")
    resolution = with_stopped(resolution, state.heads, state.staged)
    permitted = permit(resolution.entries, inputs.access, known.permitted)
    watch.lap("permit")
    assembly = assemble(permitted.entries, known.assembly)
    watch.lap("assemble")
    failpoint("build.assembled")
    report = candidate.report(report_of(resolution, heads, state.environment, candidate.inspection.findings))
    watch.lap("report")
    return _Prepared(environment_id, state, candidate.inspection, permitted, assembly, report, candidate)


def _inspect(environment_id: int, heads: Heads, resolution: Resolution, accepted: frozenset[bytes]) -> Inspection:
    # Not at the top: it reads messages, whose descriptors most workers never need (dependencies.md 7).
    from controlplane.builder.deep.inspection import inspect  # noqa: PLC0415

    return inspect(environment_id=environment_id, heads=heads, resolution=resolution, accepted=accepted)


def _not_inspected(_id: int, _heads: Heads, resolution: Resolution, _accepted: frozenset[bytes]) -> Inspection:
    return Inspection(resolution)


def _publish(prepared: _Prepared, watch: "_Stopwatch") -> None:
    state, report = prepared.state, prepared.report

    def record(published: Published) -> None:
        """Store the build's record in the transaction that writes the snapshot, so that whoever sees the new epoch also
        sees what the build said about it.
        """
        watch.lap("publish")
        held_replace(environment_id=prepared.environment_id, generation=state.at.generation, held=report.held)
        if state.rehearsal:
            rehearsal_held(rehearsal=state.rehearsal, held=prepared.candidate.rehearsed)
        refusals_replace(environment_id=prepared.environment_id, refusals=prepared.inspection.refusals)
        build_record(
            environment_id=prepared.environment_id,
            from_generation=state.built_generation,
            to_generation=state.at.generation,
            outcome=BuildOutcome(published.outcome.value),
            stage_ms=watch.laps_ms,
            epoch=published.epoch,
            report=report,
        )

    published = snapshot_publish(
        environment_id=prepared.environment_id,
        environment_key=state.environment,
        built_from=state.at,
        parts=prepared.assembly.parts,
        access=prepared.permitted.table,
        counts=prepared.assembly.counts,
        record=record,
        candidate=prepared.candidate.part,
    )
    if published.outcome is PublishOutcome.FENCED:
        build_record(
            environment_id=prepared.environment_id,
            from_generation=state.built_generation,
            to_generation=state.at.generation,
            outcome=BuildOutcome.FENCED,
            stage_ms=watch.laps_ms,
        )
    if prepared.candidate.part is not None:
        # Nobody may ask for anything that differs: then no client's answer would say that it is served.
        hint_rollout(prepared.environment_id)
    failpoint("build.ended")
    log.info(
        "build.ended",
        environment=state.environment,
        generation=state.at.generation,
        outcome=published.outcome.value,
        epoch=published.epoch,
        held=len(report.held),
        stage_ms=watch.laps_ms,
    )


class _Stopwatch:
    """Measures how many milliseconds each stage of one build takes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = clock()
        self.laps_ms: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now = self._clock()
        self.laps_ms[stage] = round((now - self._last) * 1000, 1)
        self._last = now
