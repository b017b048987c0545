"""Opens and ends rehearsals: manifests that some clients are sent for a moment, and that are no revisions (rollouts.md
"Rehearsal").

A rehearsal has a deadline in the database. Whoever made it may die: the sweeper of any worker, and whoever builds the
environment, ends it then.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from math import ceil
from typing import Final

from django.db import models, transaction
from django.db.models.functions import Now

from controlplane.accounts.principal import Principal, Role
from controlplane.broker.hints import hint_rollout
from controlplane.catalog.choices import BlobKind
from controlplane.catalog.models import CandidateSide, Environment, Rehearsal, RehearsedName
from controlplane.catalog.references import needs_of
from controlplane.catalog.rehearsals import OVER, Foreseen
from controlplane.catalog.services.blobs import blobs_prune, blobs_write
from controlplane.catalog.services.cases import cases_foresee
from controlplane.catalog.services.changes import rewriting_of
from controlplane.catalog.services.environments import environments_publish_lock
from controlplane.catalog.services.planning import BATCH, Prepared, Terms, plan, prepare
from controlplane.catalog.services.staging import generation_count
from controlplane.catalog.services.writing import environment_lock
from controlplane.catalog.values import Edit
from controlplane.common.errors import Occupied
from controlplane.journal.services import audit_record
from xdscore.rehearsed import rehearsed_version
from xdscore.sides import RolloutTable
from xdscore.snapshot import EntryKey

# How often a caller who finds a rollout open may look again: what ends it is answers, or people.
_ROLLOUT_RETRY_S: Final = 30
# An ADS process may still be loading the snapshot that has the contents.
_KEEP_FOR: Final = timedelta(minutes=10)
_PRUNED_AT_ONCE: Final = 100
_MAX_HELD_CHARS: Final = 500


def rehearsal_open(
    *,
    environment_key: str,
    edits: Sequence[Edit],
    table: RolloutTable,
    lasts_s: float,
    actor: Principal,
    request_id: str = "",
) -> Foreseen:
    """Open the rehearsal `table.id` of these edits, for the clients that `table` picks. It ends by itself after
    `lasts_s` seconds, unless `rehearsal_close` ends it before.

    The edits are judged as a write of them would be, and nothing of them is written; returns what it would be told.
    Raises what `change_apply` raises for them but LossRefused and CasesBroken, and Occupied while a rollout or another
    rehearsal is open.
    """
    terms = Terms(roles=(Role.REHEARSER, Role.EDITOR))
    prepared = prepare(edits, environment_key, terms)
    with transaction.atomic(durable=True):
        environment = environment_lock(key=environment_key)
        planned = plan(environment, prepared, terms, actor)
        _refuse_occupied(environment)
        cases = cases_foresee(rewriting_of(environment, planned), told=planned.told)
        for kind in (BlobKind.RESOURCE, BlobKind.SECRET):
            of_kind = [edit for edit in prepared if edit.parsed is not None and edit.blob_kind is kind]
            blobs_write(kind=kind, blobs={edit.address.hex(): edit.stored for edit in of_kind})
        row = Rehearsal.objects.create(
            public_id=table.id,
            environment=environment,
            table=table.as_json(),
            ends_at=Now() + timedelta(seconds=lasts_s),
        )
        RehearsedName.objects.bulk_create(_rows(row, table.id, prepared), batch_size=BATCH // 4)
        generation_count(environment)
        audit_record(
            actor=actor,
            verb="rehearsal.made",
            subject=f"rehearsal/{table.id}",
            environment=environment_key,
            request_id=request_id,
            detail={"names": len(prepared), "clients": len(table.picks), "lasts_s": lasts_s},
        )
    return Foreseen((*planned.findings, *cases.findings), len(cases.broken))


def rehearsal_close(*, environment_key: str, rehearsal: str) -> None:
    """End the rehearsal with this public id; does nothing where it has ended already. Its clients are sent what the
    stable side has.
    """
    with transaction.atomic(durable=True):
        environment = environment_lock(key=environment_key)
        _close(environment, models.Q(public_id=rehearsal))


def rehearsal_expire(*, environment_id: int) -> bool:
    """End the rehearsal of an environment if it is open beyond its deadline; returns whether it was."""
    with transaction.atomic(durable=True):
        environment = Environment.objects.select_for_update().filter(pk=environment_id).first()
        return environment is not None and _close(environment, OVER)


def rehearsal_held(*, rehearsal: str, held: Mapping[EntryKey, str]) -> None:
    """Note which of the names of a rehearsal nobody can be sent, and why, as its newest build found it. Called within
    the caller's transaction.
    """
    rows = RehearsedName.objects.filter(rehearsal__public_id=rehearsal)
    for row in rows:
        said = held.get((row.type, row.name), "")[:_MAX_HELD_CHARS]
        if row.held != said:
            row.held = said
            row.save(update_fields=["held"])


def rehearsals_prune() -> int:
    """Delete rehearsals that ended some minutes ago, with the contents that only they have; returns how many. One call
    deletes a bounded number.
    """
    gone = Rehearsal.objects.filter(closed_at__lt=Now() - _KEEP_FOR)
    if not gone.exists():
        return 0
    with transaction.atomic(durable=True):
        # A write might find a content stored already, and refer to it.
        environments_publish_lock()
        rows = list(gone.order_by("pk").values_list("pk", flat=True)[:_PRUNED_AT_ONCE])
        names = RehearsedName.objects.filter(rehearsal__in=rows, blob__isnull=False)
        addresses = set(names.values_list("blob", flat=True))
        Rehearsal.objects.filter(pk__in=rows).delete()
        blobs_prune(addresses=addresses)
    return len(rows)


def _refuse_occupied(environment: Environment) -> None:
    """End a rehearsal whose deadline has passed; raise Occupied while a rollout or another rehearsal is open."""
    _close(environment, OVER)
    side = CandidateSide.objects.filter(environment=environment).first()
    if side is not None:
        raise Occupied(
            f"A rollout is open in '{environment.key}': {side.rollout}. A rehearsal waits for its end. "
            "Nothing was sent to any client.",
            retry_after_s=_ROLLOUT_RETRY_S,
        )
    open_ones = Rehearsal.objects.filter(environment=environment, closed_at=None)
    left = models.ExpressionWrapper(models.F("ends_at") - Now(), output_field=models.DurationField())
    left_s = open_ones.annotate(left=left).values_list("left", flat=True).first()
    if left_s is not None:
        raise Occupied(
            f"Another rehearsal is open in '{environment.key}'. Try again when it has ended. "
            "Nothing was sent to any client.",
            retry_after_s=max(1, ceil(left_s.total_seconds())),
        )


def _close(environment: Environment, which: models.Q) -> bool:
    """End the open rehearsal of a locked environment, if it is as `which` says; returns whether it was."""
    rows = Rehearsal.objects.filter(which, environment=environment, closed_at=None)
    if not rows.update(closed_at=Now()):
        return False
    generation_count(environment)
    environment_id = environment.pk
    # A rollout may have waited for its end.
    transaction.on_commit(lambda: hint_rollout(environment_id))
    return True


def _rows(row: Rehearsal, rehearsal: str, prepared: Sequence[Prepared]) -> Iterator[RehearsedName]:
    for edit in prepared:
        word, name = edit.key
        if edit.parsed is None:
            yield RehearsedName(rehearsal=row, type=word, name=name)
            continue
        yield RehearsedName(
            rehearsal=row,
            type=word,
            name=name,
            blob_id=edit.address.hex(),
            version=rehearsed_version(rehearsal, edit.address),
            size=len(edit.parsed.any_bytes),
            eds_name=edit.parsed.eds_name,
            claims="\n".join(edit.parsed.claims),
            needs=[list(target) for target in needs_of(edit.parsed)],
        )
