"""Builds an environment: catalogue and access in, snapshot out. The two doors, `tasks` and `sweeper`, both end here."""

import time
from collections.abc import Callable

import structlog
from django.conf import settings
from django.db import transaction

from controlplane.access.selectors import access_table_read
from controlplane.builder.claims import claim
from controlplane.builder.debounce import wait_for_quiet
from controlplane.builder.models import Build, BuildOutcome
from controlplane.builder.stages.fallback import resolve_entries
from controlplane.builder.stages.permit import permit
from controlplane.catalog.selectors import environment_generations, environments_due
from controlplane.catalog.state import catalog_state_read
from controlplane.databases import READER
from controlplane.snapshots.services import PublishOutcome, snapshot_publish

log = structlog.get_logger(__name__)


def build_when_quiet(*, environment_id: int) -> None:
    """Build until nothing is due: wait for a quiet moment, build, look again.

    Only one process at a time does this for an environment. Whoever finds it claimed goes away: the claimant looks
    again after it let go, and the sweeper looks after everybody.
    """
    while True:
        with claim(f"build-{environment_id}") as claimed:
            if not claimed:
                return
            wait_for_quiet(
                generation=lambda: environment_generations(environment_id=environment_id)[0],
                quiet_s=settings.PARLEY.debounce_ms / 1000,
                at_most_s=settings.PARLEY.debounce_max_ms / 1000,
                clock=time.monotonic,
                sleep=time.sleep,
            )
            build(environment_id=environment_id)
        generation, built = environment_generations(environment_id=environment_id)
        if generation <= built:
            return


def build(*, environment_id: int) -> None:
    """Build and publish an environment's newest generation; nothing is done when none is due. Safe to run twice at
    once.
    """
    watch = _Stopwatch(time.monotonic)
    # One transaction, one moment: heads and rules never come from different generations (resolutions D6).
    with transaction.atomic(using=READER):
        state = catalog_state_read(environment_id=environment_id)
        access = (
            access_table_read(environment_id=environment_id, default=state.default_effect, using=READER)
            if state
            else None
        )
    if state is None or access is None or state.generation <= state.built_generation:
        return
    watch.lap("read")
    try:
        entries, held = resolve_entries(state.heads)
        watch.lap("resolve")
        permitted = permit(entries, access)
        watch.lap("permit")
        published = snapshot_publish(
            environment_id=environment_id,
            environment_key=state.environment,
            generation=state.generation,
            entries=permitted.entries,
            access=permitted.table,
        )
        watch.lap("publish")
    except Exception as error:
        _record(
            environment_id, state.built_generation, state.generation, BuildOutcome.FAILED, watch, detail=repr(error)
        )
        raise
    _record(
        environment_id,
        state.built_generation,
        state.generation,
        BuildOutcome(published.outcome.value),
        watch,
        epoch=published.epoch if published.outcome is not PublishOutcome.FENCED else None,
        held=[
            {"type": each.key[0], "name": each.key[1], "reason": each.reason, "served": each.served} for each in held
        ],
    )
    log.info(
        "build.ended",
        environment=state.environment,
        generation=state.generation,
        outcome=published.outcome.value,
        epoch=published.epoch,
        held=len(held),
        stage_ms=watch.laps_ms,
    )


def builds_sweep() -> None:
    """Build whatever is due; finds what a lost hint would have told (resolutions D7)."""
    for environment_id in environments_due():
        build_when_quiet(environment_id=environment_id)


class _Stopwatch:
    """How long each stage took."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = clock()
        self.laps_ms: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now = self._clock()
        self.laps_ms[stage] = round((now - self._last) * 1000, 1)
        self._last = now


def _record(
    environment_id: int,
    built: int,
    generation: int,
    outcome: BuildOutcome,
    watch: _Stopwatch,
    *,
    epoch: int | None = None,
    detail: str = "",
    held: list[dict[str, object]] | None = None,
) -> None:
    Build.objects.create(
        environment_id=environment_id,
        from_generation=built,
        to_generation=generation,
        epoch=epoch,
        outcome=outcome,
        stage_ms=watch.laps_ms,
        detail=detail[:1000],
        held=held or [],
    )
