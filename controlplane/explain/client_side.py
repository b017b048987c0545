"""Gathers what an explanation needs to know of the client: who it is, what it asks for and what it has."""

import difflib
from collections.abc import Collection
from datetime import datetime
from typing import Final

from django.conf import settings

from controlplane.clients.filtering import ClientFilter
from controlplane.clients.held_rows import HeldResource
from controlplane.clients.holding_words import FORGOTTEN
from controlplane.clients.holdings import client_had, client_holding, client_said
from controlplane.clients.in_use import unused_sentence
from controlplane.clients.selectors import (
    ClientSummary,
    client_facts,
    client_get,
    client_list,
    client_nacks,
    client_subscriptions,
)
from controlplane.common.errors import NotFound
from controlplane.explain.values import Asked, ClientSide, Held, OnSide, Question, Refusal
from controlplane.incidents.afterwards import now_of
from controlplane.rollouts.selectors import client_side as side_of_client
from xdscore.codes import shown
from xdscore.holdings import HoldingState
from xdscore.names import canonical
from xdscore.resource_types import ResourceType
from xdscore.sides import Side
from xdscore.snapshot import Snapshot
from xdscore.xdstp import glob_of

_CLOSEST: Final = 3
# Names that are compared with a misspelt one.
_MAX_COMPARED: Final = 1_000
_REFUSED: Final = (HoldingState.NACKED, HoldingState.UNKNOWN)


def client_named(*, environment: str, client: str, keys: Collection[str]) -> ClientSummary:
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
        named = client_list(environment_keys=where, wanted=ClientFilter(node_id=client))
        if named:
            return max(named, key=lambda each: each.last_seen)
    known = sorted({each.node_id for each in client_facts(environment_key=environment)[:_MAX_COMPARED]})
    near = difflib.get_close_matches(client, known, n=_CLOSEST)
    similar = " Similar: " + ", ".join(f"'{shown(each)}'" for each in near) + "." if near else ""
    raise NotFound(f"'{environment}' never saw a client '{shown(client)}', or not within a day.{similar}")


def client_side(*, question: Question, client: ClientSummary, snapshot: Snapshot | None) -> ClientSide:
    """What the explanation goes by of this client. `snapshot`: the one that the question is about; None before the
    first build.
    """
    kind, name = question.kind, canonical(question.name)
    facts, groups = client.facts, snapshot.access.groups if snapshot is not None else ()
    subscriptions = client_subscriptions(public_id=client.id, at=question.time)
    asked = tuple(Asked(each.names, each.wildcard) for each in subscriptions if each.type == kind.word)
    connected, unknown, held = client.connected, "", None
    if question.time is not None:
        connected, unknown, asked, held = _had(client, kind, name, question.time, asked)
    elif any(each.covers(name) for each in asked):
        held = _has(client, kind, name)
    wanted = sorted({each for one in asked for each in one.names})[:_MAX_COMPARED]
    return ClientSide(
        id=client.id,
        environment=client.environment,
        identity=client.identity,
        node_id=client.node_id,
        family=client.family.value,
        connected=connected,
        last_seen=client.last_seen,
        groups=tuple(group.key for group in groups if group.has(facts)),
        doubtful=frozenset(group.key for group in groups if group.may_have(facts)),
        asked=asked,
        near=tuple(difflib.get_close_matches(question.name, wanted, n=_CLOSEST)),
        refusal=_refusal(client, kind, name, held, question.time),
        held=held,
        unknown=unknown,
        side=_on_side(question, client),
    )


def _on_side(question: Question, client: ClientSummary) -> OnSide | None:
    """On which side of the open rollout the client is; None where none is open, and for the past."""
    if question.at is not None or client.environment != question.environment:
        return None
    found = side_of_client(environment_key=client.environment, client_id=client.id)
    return OnSide(found.side is Side.CANDIDATE, found.rollout, found.because) if found is not None else None


def _has(client: ClientSummary, kind: ResourceType, name: str) -> Held | None:
    """What the client has of a name that it asks for; None where its streams did not say yet."""
    found = client_holding(public_id=client.id, word=kind.word, name=name)
    if found is None:
        said = client_said(public_id=client.id, word=kind.word)
        return Held(HoldingState.REQUESTED, others=True) if said else None
    return _held(found)


def _had(
    client: ClientSummary, kind: ResourceType, name: str, at: datetime, asked: Collection[Asked]
) -> tuple[bool, str, tuple[Asked, ...], Held | None]:
    """Whether the client was connected at a time, why nobody knows what it had (empty: it is known), what it asked for
    of this name, and what it had of it. `asked`: what its streams of then asked for last.
    """
    had = client_had(public_id=client.id, word=kind.word, name=name, at=at)
    hours = settings.PARLEY.limits.holding_history_h
    if not had.known:
        return had.connected, FORGOTTEN.format(hours=hours), (), None
    if had.row is not None:
        return had.connected, "", (Asked((name,), wildcard=False),), _held(had.row)
    # What it asks for by name it had something of; names that were added to a subscription since were not asked for.
    whole = tuple(Asked(tuple(name for name in each.names if glob_of(name)), each.wildcard) for each in asked)
    covered = any(each.covers(name) for each in whole)
    return had.connected, "", whole, Held(HoldingState.REQUESTED, others=True) if covered else None


def _held(row: HeldResource) -> Held:
    return Held(
        row.state,
        row.version,
        row.revision,
        row.acked_version,
        row.acked_revision,
        row.message,
        row.since,
        row.code,
        unused=unused_sentence(row.missing) if row.missing else "",
    )


def _refusal(
    client: ClientSummary, kind: ResourceType, name: str, held: Held | None, at: datetime | None
) -> Refusal | None:
    """The newest NACK of the content that the client refused, by what it has of the name; None where there is none."""
    if held is None or held.state not in _REFUSED:
        return None
    nacks = client_nacks(public_id=client.id, word=kind.word, at=at)
    found = next((nack for nack in nacks if (name, held.version) in nack.suspects), None)
    return Refusal(found.text, found.at, now_of(found, name)) if found is not None else None
