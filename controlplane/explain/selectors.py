"""Gathers what an explanation needs and asks the one decision."""

import difflib
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

from django.conf import settings

from controlplane.access.review import RuleFinding, rules_for_nobody, rules_shadowed
from controlplane.access.selectors import access_table
from controlplane.builder.selectors import held_name
from controlplane.catalog.rehearsals import rehearsal_open_id
from controlplane.catalog.selectors import (
    environment_get,
    environments_holding,
    resource_names,
    revision_list,
    revision_origin,
)
from controlplane.catalog.staging import candidate_side, staged_names
from controlplane.clients.clock import database_now
from controlplane.clients.selectors import client_facts
from controlplane.common.errors import InputInvalid, NotFound
from controlplane.config.loading import Config
from controlplane.explain.answers import Answer, answer_of
from controlplane.explain.client_side import client_named, client_side
from controlplane.explain.ladder import ladder_of
from controlplane.explain.values import Ladder, NameFacts, Origin, Question, Staged, clock
from controlplane.incidents.selectors import incidents_of_name
from controlplane.snapshots.history import epoch_at, snapshot_of_name_at
from controlplane.snapshots.selectors import snapshot_of_name
from xdscore.access import AccessTable, Audience, Effect
from xdscore.decision import Decision, Missing, Serve, decide
from xdscore.environment_choice import ClientFacts
from xdscore.errors import error_of
from xdscore.names import canonical
from xdscore.resource_types import ResourceType
from xdscore.sides import Side
from xdscore.snapshot import Content, Snapshot

_CLOSEST = 3
# Names that are compared with a misspelt one.
_MAX_COMPARED = 1_000

# Refuses nobody anything.
_OPEN = AccessTable(Effect.ALLOW, default_covers_secrets=True)

NOBODY_IN_PARTICULAR = ClientFacts()


@dataclass(frozen=True, slots=True)
class _Asked:
    """The decision about a name for an audience, the snapshot that it was made from (None before the first build), and
    the answer in words for operators.
    """

    audience: Audience
    snapshot: Snapshot | None
    decision: Decision
    answer: Answer


def explain(*, question: Question, client: str = "", environment_keys: Collection[str]) -> Ladder:
    """Explain why a client has, or does not have, a name. `client`: its id or node id; empty: any client that is in no
    group.

    Only what is in `environment_keys` is told. Raises NotFound for an unknown environment or client and for an epoch
    that there has not been yet, Gone for an epoch whose snapshot is not stored any more.
    """
    state = environment_get(key=question.environment)
    known = client_named(environment=question.environment, client=client, keys=environment_keys) if client else None
    facts = known.facts if known else NOBODY_IN_PARTICULAR
    decided = _decided(question, facts)
    name = _name_facts(question, decided, waiting=state.generation > state.built_generation, keys=environment_keys)
    side = client_side(question=question, client=known, snapshot=decided.snapshot) if known else None
    return ladder_of(question, name, side)


def question_of(*, environment: str, kind: ResourceType, name: str, at: int | datetime | None = None) -> Question:
    """The question to Explain about a name, now or `at` an epoch or a time, which is answered by the snapshot that was
    published then (truth.md H6). Raises InputInvalid for a time that has not been yet, NotFound for one before anything
    was published, and Gone for one whose snapshot is not stored any more.
    """
    if not isinstance(at, datetime):
        return Question(environment, kind, name, at)
    if at > database_now():
        raise InputInvalid(f"{clock(at)} is in the future: what will be published then is not known.")
    return Question(environment, kind, name, epoch_at(environment_key=environment, moment=at), at)


def rules_review(*, environment_key: str) -> tuple[RuleFinding, ...]:
    """A finding for each access rule that never decides: because rules before it always do, or because no known client
    is in its groups. Raises NotFound for an unknown environment.
    """
    table = access_table(environment_key=environment_key)
    return (*rules_shadowed(table), *rules_for_nobody(table, client_facts(environment_key=environment_key)))


def snapshot_asked(question: Question) -> Snapshot | None:
    """The snapshot that the question is about, reduced to its one name; None before the first build. Raises NotFound
    for an epoch that there has not been yet, Gone for one whose snapshot is not stored any more.
    """
    environment, kind, name = question.environment, question.kind, canonical(question.name)
    if question.at is None:
        return snapshot_of_name(environment_key=environment, kind=kind, name=name)
    return snapshot_of_name_at(environment_key=environment, epoch=question.at, kind=kind, name=name)


def _decided(question: Question, client: ClientFacts) -> _Asked:
    environment, kind, name = question.environment, question.kind, question.name
    snapshot = snapshot_asked(question)
    audience = Audience(environment) if snapshot is None else snapshot.audience(client)
    decision = decide(audience, kind, name, snapshot)
    rules = () if snapshot is None else snapshot.access.trace(audience, kind, canonical(name))
    near: tuple[str, ...] = ()
    if isinstance(decision, Missing):
        known = resource_names(environment_key=environment, kind=kind, limit=_MAX_COMPARED)
        near = tuple(difflib.get_close_matches(name, known, n=_CLOSEST))
    answer = answer_of(decision, kind=kind, name=name, environment=environment, near=near, rules=rules)
    return _Asked(audience, snapshot, decision, answer)


def _name_facts(question: Question, decided: _Asked, *, waiting: bool, keys: Collection[str]) -> NameFacts:
    environment, kind, name = question.environment, question.kind, canonical(question.name)
    snapshot = decided.snapshot
    # Where nothing is refused, this is the decision about existence alone.
    bare = replace(snapshot, access=_OPEN) if snapshot is not None else None
    existence = decide(Audience(environment, side=decided.audience.side), kind, name, bare)
    written, deletion, quarantined = _written(environment, kind, name, question.time)
    held = held_name(environment_key=environment, word=kind.word, name=name) if question.at is None else None
    incidents = incidents_of_name(environment_key=environment, word=kind.word, name=name)
    config: Config = settings.PARLEY
    error = None
    if snapshot is not None:
        # Without one a stream is kept silent, and then ends (decisions C4).
        error = error_of(
            decided.decision, kind=kind, name=question.name, environment=environment, public_url=config.public_url
        )
    others = [key for key in keys if key != environment]
    return NameFacts(
        decision=decided.decision,
        existence=existence,
        answer=decided.answer,
        default=snapshot.access.by_default(kind).effect if snapshot is not None else None,
        epoch=snapshot.epoch if snapshot is not None else None,
        served=_origin(environment, kind, name, existence.content) if isinstance(existence, Serve) else None,
        fallback=_fallback(environment, kind, name, decided.decision),
        written=written,
        deletion=deletion,
        quarantined=quarantined,
        waiting=waiting and question.time is None,
        findings=tuple(f"{each.code}: {each.detail}" for each in held.findings) if held is not None else (),
        elsewhere=environments_holding(kind=kind, name=name, keys=others),
        incidents=tuple(each.id for each in incidents),
        told=error.text if error is not None else "",
        # History is the stable side's (rollouts.md R13).
        staged=_staged(environment, kind, name) if question.at is None else None,
        rollout=_open_rollout(environment) if question.at is None else "",
        rehearsal=rehearsal_open_id(environment_key=environment) if question.at is None else "",
        rehearses=decided.audience.side is Side.CANDIDATE,
    )


def _staged(environment: str, kind: ResourceType, name: str) -> Staged | None:
    """How far the newest revision of a name is on its way to the stable side; None where that has it."""
    key = (kind.word, name)
    found = staged_names(environment_key=environment, keys=[key]).get(key)
    if found is None:
        return None
    return Staged(found.state, found.from_revision, found.revision, found.deleted)


def _open_rollout(environment: str) -> str:
    side = candidate_side(environment)
    return side.rollout if side is not None else ""


def _written(
    environment: str, kind: ResourceType, name: str, time: datetime | None
) -> tuple[Origin | None, bool, bool]:
    """The newest revision of a name (None if it was never written), whether that is a deletion, and whether it is
    quarantined. With `time`, the newest one of then; whether that was quarantined then is not kept.
    """
    try:
        rows = revision_list(environment_key=environment, kind=kind, name=name)
        row = rows.first() if time is None else rows.filter(at__lte=time).first()
    except NotFound:
        row = None
    if row is None:
        return None, False, False
    origin = Origin(row.number, row.change.author, str(row.change.public_id), row.at)
    return origin, row.blob_id is None, time is None and bool(getattr(row, "quarantined", False))


def _fallback(environment: str, kind: ResourceType, name: str, decision: Decision) -> Origin | None:
    """The revision that is sent to a client which refused the served one; None where there is no such revision."""
    if not isinstance(decision, Serve) or decision.fallback is None or decision.fallback == decision.content:
        return None
    return _origin(environment, kind, name, decision.fallback)


def _origin(environment: str, kind: ResourceType, name: str, content: Content) -> Origin | None:
    """The revision of the name that has this content; None where the catalogue does not know it."""
    found = revision_origin(environment_key=environment, word=kind.word, name=name, version=content.version)
    return Origin(found.number, found.author, found.change_id, found.at) if found is not None else None
