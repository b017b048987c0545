"""Gathers what an explanation needs and asks the one decision."""

import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from django.conf import settings

from controlplane.access.review import RuleFinding, rules_for_nobody, rules_shadowed
from controlplane.access.selectors import access_table
from controlplane.builder.selectors import held_name
from controlplane.catalog.selectors import (
    environment_get,
    environments_holding,
    resource_names,
    revision_list,
    revision_origin,
)
from controlplane.catalog.staging import candidate_side, staged_names
from controlplane.clients.holdings import client_holding, client_said
from controlplane.clients.selectors import (
    ClientSummary,
    NackView,
    SubscriptionView,
    client_facts,
    client_get,
    client_list,
    client_nacks,
    client_subscriptions,
)
from controlplane.common.errors import NotFound
from controlplane.config.loading import Config
from controlplane.explain.answers import Answer, answer_of
from controlplane.explain.ladder import ladder_of
from controlplane.explain.uses import with_uses
from controlplane.explain.values import (
    Asked,
    ClientSide,
    Held,
    Ladder,
    NameFacts,
    OnSide,
    Origin,
    Question,
    Refusal,
    Reply,
    Staged,
)
from controlplane.incidents.afterwards import now_of
from controlplane.incidents.attribution import blame
from controlplane.incidents.selectors import incidents_of_name
from controlplane.rollouts.selectors import client_side
from controlplane.snapshots.history import snapshot_of_name_at
from controlplane.snapshots.selectors import snapshot_of_name
from xdscore.access import AccessTable, Audience, Effect
from xdscore.codes import shown
from xdscore.decision import Decision, Missing, Serve, decide
from xdscore.environment_choice import ClientFacts
from xdscore.errors import error_of
from xdscore.holdings import HoldingState
from xdscore.names import canonical
from xdscore.resource_types import ResourceType, by_word
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
    known = _client(question.environment, client, environment_keys) if client else None
    facts = known.facts if known else NOBODY_IN_PARTICULAR
    decided = _decided(question, facts)
    name = _name_facts(question, decided, waiting=state.generation > state.built_generation, keys=environment_keys)
    return ladder_of(question, name, _side(question, known, facts, decided) if known else None)


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
    written, deletion, quarantined = _written(environment, kind, name)
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
        waiting=waiting,
        findings=tuple(f"{each.code}: {each.detail}" for each in held.findings) if held is not None else (),
        elsewhere=environments_holding(kind=kind, name=name, keys=others),
        incidents=tuple(each.id for each in incidents),
        told=error.text if error is not None else "",
        # History is the stable side's (rollouts.md R13).
        staged=_staged(environment, kind, name) if question.at is None else None,
        rollout=_open_rollout(environment) if question.at is None else "",
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


def _on_side(question: Question, client: ClientSummary) -> OnSide | None:
    """On which side of the open rollout the client is; None where none is open, and for the past."""
    if question.at is not None or client.environment != question.environment:
        return None
    found = client_side(environment_key=client.environment, client_id=client.id)
    return OnSide(found.side is Side.CANDIDATE, found.rollout, found.because) if found is not None else None


def _written(environment: str, kind: ResourceType, name: str) -> tuple[Origin | None, bool, bool]:
    """The newest revision of a name (None if it was never written), whether that is a deletion, and whether it is
    quarantined.
    """
    try:
        row = revision_list(environment_key=environment, kind=kind, name=name).first()
    except NotFound:
        row = None
    if row is None:
        return None, False, False
    origin = Origin(row.number, row.change.author, str(row.change.public_id), row.at)
    return origin, row.blob_id is None, bool(getattr(row, "quarantined", False))


def _fallback(environment: str, kind: ResourceType, name: str, decision: Decision) -> Origin | None:
    """The revision that is sent to a client which refused the served one; None where there is no such revision."""
    if not isinstance(decision, Serve) or decision.fallback is None or decision.fallback == decision.content:
        return None
    return _origin(environment, kind, name, decision.fallback)


def _origin(environment: str, kind: ResourceType, name: str, content: Content) -> Origin | None:
    """The revision of the name that has this content; None where the catalogue does not know it."""
    found = revision_origin(environment_key=environment, word=kind.word, name=name, version=content.version)
    return Origin(found.number, found.author, found.change_id, found.at) if found is not None else None


def _client(environment: str, client: str, keys: Collection[str]) -> ClientSummary:
    """The client with this id or node id: of `environment` if it has one, else of another of the environments `keys`.
    Raises NotFound with the same words whether there is none or the caller may not see it.
    """
    try:
        found = client_get(public_id=client)
    except NotFound:
        found = None
    if found is not None and found.environment in keys:
        return found
    # Several identities may declare one node id; the one that was seen last is the one that is meant.
    for where in ((environment,), keys):
        named = client_list(environment_keys=where, node_id=client)
        if named:
            return max(named, key=lambda each: each.last_seen)
    known = sorted({each.node_id for each in client_facts(environment_key=environment)[:_MAX_COMPARED]})
    near = difflib.get_close_matches(client, known, n=_CLOSEST)
    similar = " Similar: " + ", ".join(f"'{shown(each)}'" for each in near) + "." if near else ""
    raise NotFound(f"'{environment}' never saw a client '{shown(client)}', or not within a day.{similar}")


def _side(question: Question, client: ClientSummary, facts: ClientFacts, decided: _Asked) -> ClientSide:
    kind, name = question.kind, canonical(question.name)
    subscriptions = client_subscriptions(public_id=client.id)
    asked = tuple(asked_of(each) for each in subscriptions if each.type == kind.word)
    wanted = sorted({each for one in asked for each in one.names})[:_MAX_COMPARED]
    served = isinstance(decided.decision, Serve)
    nacks = client_nacks(public_id=client.id, word=kind.word) if served else ()
    groups = decided.snapshot.access.groups if decided.snapshot is not None else ()
    return ClientSide(
        id=client.id,
        environment=client.environment,
        identity=client.identity,
        node_id=client.node_id,
        family=client.family.value,
        connected=client.connected,
        last_seen=client.last_seen,
        groups=tuple(group.key for group in groups if group.has(facts)),
        doubtful=frozenset(group.key for group in groups if group.may_have(facts)),
        asked=asked,
        near=tuple(difflib.get_close_matches(question.name, wanted, n=_CLOSEST)),
        refusal=refusal_of(kind.word, name, decided.decision, nacks),
        held=_held(client, kind, name, subscriptions) if any(each.covers(name) for each in asked) else None,
        side=_on_side(question, client),
    )


def _held(
    client: ClientSummary, kind: ResourceType, name: str, subscriptions: Collection[SubscriptionView]
) -> Held | None:
    """What the client has of a name; None where its streams did not say yet."""
    found = client_holding(public_id=client.id, word=kind.word, name=name)
    if found is None:
        said = client_said(public_id=client.id, word=kind.word)
        return Held(HoldingState.REQUESTED, others=True) if said else None
    (row,) = with_uses(client=client, rows=[found], subscriptions=subscriptions)
    return Held(
        found.state,
        found.version,
        found.revision,
        found.acked_version,
        found.acked_revision,
        found.message,
        found.since,
        found.code,
        unused=row.message if row is not found else "",
    )


def asked_of(subscription: SubscriptionView) -> Asked:
    """A stored subscription as the value that explanations read."""
    return Asked(
        subscription.names,
        subscription.wildcard,
        Reply(subscription.state.value),
        subscription.sent,
        subscription.sent_at,
        subscription.acked,
        subscription.acked_at,
    )


def refusal_of(word: str, name: str, decision: Decision, nacks: Iterable[NackView]) -> Refusal | None:
    """The newest NACK of exactly the content that is served; None where there is none. `nacks`: newest first.

    The result is `sure` where the NACK blames this content alone, or names it as one of several culprits.
    """
    if not isinstance(decision, Serve):
        return None
    served = (name, decision.content.version)
    found = next((nack for nack in nacks if nack.type == word and served in nack.suspects), None)
    if found is None:
        return None
    blamed = blame(
        type_url=by_word[word].url,
        text=found.text,
        resources=found.resources,
        suspects=found.suspects,
        evidence=found.evidence,
    )
    return Refusal(found.text, found.at, served in blamed.culprits, now_of(found, name))
