"""Gathers what Parley believes that a client has, name by name, to hold the client's own word against it.

The belief about a connected client is what it has by its streams (truth.md H4). Where that may still be on its way,
nothing is believed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from controlplane.catalog.choices import BlobKind
from controlplane.catalog.selectors import blobs_read, resource_names, written_at
from controlplane.clients.asks import names_covered
from controlplane.clients.clock import database_now
from controlplane.clients.comparing import Belief, Believed
from controlplane.clients.holdings import HeldNow, client_has
from controlplane.clients.selectors import (
    ClientSummary,
    SubscriptionView,
    client_subscriptions,
    client_subscriptions_last,
)
from controlplane.common.remembered import Remembered
from controlplane.snapshots.selectors import published_at, snapshot_of_names
from xdscore.access import Audience
from xdscore.decision import Decision, Serve, Undecided, decide
from xdscore.environment_choice import ClientFacts
from xdscore.holdings import Holding, HoldingState
from xdscore.names import canonical
from xdscore.resource_types import ENDPOINT, by_word
from xdscore.schema.dumped import endpoints_digest
from xdscore.snapshot import EntryKey, Snapshot

SETTLED_AFTER: Final = timedelta(seconds=10)
"""How long after a write a client can be expected to have it: a build waits up to 2 s for a quiet moment, sending takes
a moment, and facts about it up to 2 s more.
"""
_UNSURE: Final = Believed(Belief.UNSURE)
_TOLD: Final = (HoldingState.ERROR_SENT, HoldingState.SILENT)
# Clients that are told so go on with what they have (xRFC TP3, INTERNAL), and that may be anything.
_MAY_KEEP: Final = frozenset({"XDS2105", "XDS2106"})
# Of the endpoints that clients of one or two environments have; 16 bytes each.
_digests: Final = Remembered[bytes, str](50_000)


def beliefs_of(
    *, client: ClientSummary, types: Collection[str], said: Collection[EntryKey], limit: int
) -> Mapping[EntryKey, Believed]:
    """What Parley believes that the client has, for each name of these types that it asks for. Where it asks by
    wildcard, at most `limit` names are looked at, those in its own report (`said`) among them. For a client without an
    open stream: what is published of what its last stream asked for, which is what it should have taken.

    Some fifteen queries, two for each wildcard, and one for each few hundred names.
    """
    settled = database_now() - SETTLED_AFTER
    open_ones = client_subscriptions(public_id=client.id)
    subscriptions = [each for each in open_ones or client_subscriptions_last(public_id=client.id) if each.type in types]
    has = client_has(public_id=client.id, types=types, settled=settled) if open_ones else None
    known = {*said, *has.names} if has is not None else said
    names = [_names(client.environment, each, known, limit) for each in subscriptions]
    asked = {(each.type, name) for each, some in zip(subscriptions, names, strict=True) for name in some}
    snapshot = snapshot_of_names(environment_key=client.environment, keys=asked)
    published = published_at(environment_key=client.environment)
    if snapshot is None or published is None:
        return dict.fromkeys(asked, _UNSURE)
    written = written_at(environment_key=client.environment, keys=asked)
    lately = {key for key, at in written.items() if at > settled}
    decider = _Decider(client, snapshot)
    moving = decider if published > settled else None
    found = dict.fromkeys(lately, _UNSURE)
    for key in asked - lately:
        found[key] = _of_away(decider, key) if has is None else _of_connected(has, key, moving)
    by_name = {(each.type, canonical(name)) for each in subscriptions for name in each.names}
    return _with_endpoints(snapshot, _that_are_part(found, by_name | set(said)))


def _that_are_part(found: Mapping[EntryKey, Believed], named: Collection[EntryKey]) -> Mapping[EntryKey, Believed]:
    """The beliefs without those about what the client does not have of everything, of which nothing is said to it.
    `named`: what it asks for by name, or speaks of.
    """
    return {key: each for key, each in found.items() if each.belief is not Belief.LACKS or key in named}


def _with_endpoints(snapshot: Snapshot, found: Mapping[EntryKey, Believed]) -> Mapping[EntryKey, Believed]:
    """The beliefs, with a digest of the hosts in each endpoint resource that is as published."""
    blobs = {key: blob for key, each in found.items() if (blob := _endpoints(snapshot, key, each))}
    digests = _digests_of(set(blobs.values()))
    return {
        key: replace(each, endpoints=digests.get(blobs[key], "")) if key in blobs else each
        for key, each in found.items()
    }


def _names(environment: str, subscription: SubscriptionView, said: Collection[EntryKey], limit: int) -> Iterable[str]:
    """The canonical names that a subscription asks for. For a wildcard: at most `limit` names that exist, and those
    in `said`.
    """
    word = subscription.type
    candidates = {canonical(name) for name in subscription.names}
    if subscription.wildcard or any(name.endswith("*") for name in candidates):
        candidates |= {canonical(name) for each, name in said if each == word}
        candidates |= set(resource_names(environment_key=environment, kind=by_word[word], limit=limit))
    covered = names_covered(subscription.names, wildcard=subscription.wildcard, wanted=candidates)
    return sorted(name for name in covered if not name.endswith("/*"))


class _Decider:
    """Decides, by the newest snapshot, what a client is to have. `doubted`: the rules for groups that it may belong to
    by its metadata, which is not kept.
    """

    def __init__(self, client: ClientSummary, snapshot: Snapshot) -> None:
        facts = ClientFacts(client.identity, client.node_id, client.node_cluster)
        self._snapshot = snapshot
        # By the snapshot, not its table alone: kind and side decide what is served, too (rollouts.md R3).
        self._audience: Audience = snapshot.audience(client.facts)
        doubtful = {group.key for group in snapshot.access.groups if group.may_have(facts)}
        self._doubted = frozenset(
            rule.number for rule in snapshot.access.rules if not doubtful.isdisjoint(rule.client_groups)
        )

    def decision(self, key: EntryKey) -> Decision | None:
        """What the client is to have of a name; None where its metadata decides."""
        kind, name = by_word[key[0]], key[1]
        if not self._doubted.isdisjoint(self._snapshot.access.row(kind, name)):
            return None
        return decide(self._audience, kind, name, self._snapshot)


def _of_away(decider: _Decider, key: EntryKey) -> Believed:
    """What a client without an open stream should have."""
    decision = decider.decision(key)
    return Believed(Belief.HAS, decision.content.version, away=True) if isinstance(decision, Serve) else _UNSURE


def _of_connected(has: HeldNow, key: EntryKey, moving: _Decider | None) -> Believed:
    """What a connected client has of a name that was not written lately. `moving`: decides by a snapshot that was
    published a moment ago; None where the newest one is older.
    """
    held = has.names.get(key)
    if key in has.lately or key[0] in has.unsaid:
        return _UNSURE
    # A build may serve something else of a name that nobody wrote, and it takes a moment to arrive and to be stored.
    if moving is not None and not _agree(held, moving.decision(key)):
        return _UNSURE
    return Believed(Belief.LACKS) if held is None else _by_state(held)


def _by_state(held: Holding) -> Believed:
    match held.state:
        case HoldingState.ACKED:
            return Believed(Belief.HAS, held.version)
        case HoldingState.NACKED:
            return Believed(Belief.REFUSED, held.version)
        case HoldingState.ERROR_SENT if held.code not in _MAY_KEEP:
            return Believed(Belief.LACKS)
        case HoldingState.SILENT if held.code not in _MAY_KEEP and not held.acked:
            return Believed(Belief.LACKS)
        case _:
            return _UNSURE


def _agree(held: Holding | None, decision: Decision | None) -> bool:
    """Whether what a client has is what it is to have."""
    if isinstance(decision, Serve):
        return held is not None and held.version == decision.content.version
    return decision is not None and not isinstance(decision, Undecided) and (held is None or held.state in _TOLD)


def _endpoints(snapshot: Snapshot, key: EntryKey, believed: Believed) -> bytes | None:
    """The content hash of an endpoint resource as it is published, if the client has that; else None."""
    if key[0] != ENDPOINT.word or not believed.version:
        return None
    entry = snapshot.type_state(ENDPOINT).served.get(key[1])
    return entry.content.blob if entry is not None and entry.content.version == believed.version else None


def _digests_of(addresses: Collection[bytes]) -> Mapping[bytes, str]:
    """A digest of the hosts in each of these endpoint resources, by content hash, which is what `addresses` are."""

    def read(missing: Collection[bytes]) -> Mapping[bytes, str]:
        blobs = blobs_read(addresses=[address.hex() for address in missing])
        return {
            bytes.fromhex(address): endpoints_digest(data) for address, kind, data in blobs if kind is BlobKind.RESOURCE
        }

    return _digests.those_of(addresses, read) if addresses else {}
