"""Gathers what Parley believes that a client has, name by name, to hold the client's own word against it.

The belief is what the pages say: what is published and acknowledged, refused, or denied (`delivery`). Where that may
still be on its way, nothing is believed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from controlplane.catalog.choices import BlobKind
from controlplane.catalog.selectors import blobs_read, resource_names, written_at
from controlplane.clients.asks import names_covered
from controlplane.clients.clock import database_now
from controlplane.clients.comparing import Belief, Believed
from controlplane.clients.facts import SubscriptionState
from controlplane.clients.selectors import (
    ClientSummary,
    NackView,
    SubscriptionView,
    client_nacks,
    client_subscriptions,
    client_subscriptions_last,
)
from controlplane.common.remembered import Remembered
from controlplane.explain.selectors import refusal_of
from controlplane.snapshots.selectors import snapshot_of_names
from xdscore.access import Audience
from xdscore.decision import Decision, Denied, Missing, Serve, decide
from xdscore.environment_choice import ClientFacts
from xdscore.names import canonical
from xdscore.resource_types import ENDPOINT, by_word
from xdscore.schema.dumped import endpoints_digest
from xdscore.snapshot import Content, EntryKey, Snapshot

SETTLED_AFTER: Final = timedelta(seconds=10)
"""How long after a write a client can be expected to have it: a build waits up to 2 s for a quiet moment, sending takes
a moment, and facts about it up to 2 s more.
"""
_MAX_NACKS: Final = 50
_UNSURE: Final = Believed(Belief.UNSURE)
# Of the endpoints that clients of one or two environments have; 16 bytes each.
_digests: Final = Remembered[bytes, str](50_000)


def beliefs_of(
    *, client: ClientSummary, types: Collection[str], said: Collection[EntryKey], limit: int
) -> Mapping[EntryKey, Believed]:
    """What Parley believes that the client has, for each name of these types that it asks for. Where it asks by
    wildcard, at most `limit` names are looked at, those in its own report (`said`) among them. For a client without an
    open stream: for what its last stream asked for.

    A dozen queries, two for each wildcard, and one for each few hundred names.
    """
    open_ones = client_subscriptions(public_id=client.id)
    subscriptions = [each for each in open_ones or client_subscriptions_last(public_id=client.id) if each.type in types]
    asked: dict[EntryKey, list[SubscriptionView]] = {}
    for each in subscriptions:
        for name in _names(client.environment, each, said, limit):
            asked.setdefault((each.type, name), []).append(each)
    snapshot = snapshot_of_names(environment_key=client.environment, keys=asked.keys())
    if snapshot is None:
        return dict.fromkeys(asked, _UNSURE)
    nacks = client_nacks(public_id=client.id, limit=_MAX_NACKS) if open_ones else ()
    judge = _Judge(client, snapshot, nacks, settled=database_now() - SETTLED_AFTER)
    written = written_at(environment_key=client.environment, keys=asked.keys())
    found = {key: judge.belief(key, asking, written.get(key), away=not open_ones) for key, asking in asked.items()}
    by_name = {(each.type, canonical(name)) for each in subscriptions for name in each.names}
    # Of everything it is no part what it may not read and does not have: nothing is said to it of that.
    found = {
        key: each for key, each in found.items() if each.belief is not Belief.LACKS or key in said or key in by_name
    }
    digests = _digests_of({each.blob for key, each in judge.contents.items() if key[0] == ENDPOINT.word})
    return {
        key: replace(each, endpoints=digests.get(judge.contents[key].blob, "")) if key in judge.contents else each
        for key, each in found.items()
    }


def _names(environment: str, subscription: SubscriptionView, said: Collection[EntryKey], limit: int) -> Iterable[str]:
    """The canonical names that a subscription asks for. For a wildcard: at most `limit` names that exist, and those
    that the client's report has (`said`).
    """
    word = subscription.type
    candidates = {canonical(name) for name in subscription.names}
    if subscription.wildcard or any(name.endswith("*") for name in candidates):
        candidates |= {canonical(name) for each, name in said if each == word}
        candidates |= set(resource_names(environment_key=environment, kind=by_word[word], limit=limit))
    covered = names_covered(subscription.names, wildcard=subscription.wildcard, wanted=candidates)
    return sorted(name for name in covered if not name.endswith("/*"))


class _Judge:
    """Works out what Parley believes that one client has, name by name. `contents`: the contents that this came to so
    far.
    """

    def __init__(
        self, client: ClientSummary, snapshot: Snapshot, nacks: Collection[NackView], *, settled: datetime
    ) -> None:
        facts = ClientFacts(client.identity, client.node_id, client.node_cluster)
        self._snapshot = snapshot
        self._nacks = nacks
        self._settled = settled
        self._audience: Audience = snapshot.access.audience(client.environment, facts)
        doubtful = {group.key for group in snapshot.access.groups if group.may_have(facts)}
        self._doubted = frozenset(
            rule.number for rule in snapshot.access.rules if not doubtful.isdisjoint(rule.client_groups)
        )
        self.contents: dict[EntryKey, Content] = {}

    def belief(
        self, key: EntryKey, asking: Collection[SubscriptionView], written: datetime | None, *, away: bool
    ) -> Believed:
        """What Parley believes that the client has of a name. `asking`: its subscriptions that ask for the name;
        `written`: when the name was last written, None where it never was; `away`: whether no stream of the client is
        open.
        """
        kind, name = by_word[key[0]], key[1]
        if written is not None and written > self._settled:
            return _UNSURE
        if self._doubted and not self._doubted.isdisjoint(self._snapshot.access.row(kind, name)):
            # Metadata, which is not kept, decides what this client may read.
            return _UNSURE
        decision = decide(self._audience, kind, name, self._snapshot)
        match decision:
            case Serve(content=content):
                belief = Belief.HAS if away else self._of_served(key, decision, asking, written)
                if belief is not Belief.UNSURE:
                    self.contents[key] = content
                return Believed(belief, content.version, away=away)
            case Denied() | Missing() if not away:
                return Believed(Belief.LACKS) if all(map(self._was_told, asking)) else _UNSURE
            case _:
                # Withheld: clients go on with what they have (xRFC TP3, INTERNAL), and that may be anything.
                return _UNSURE

    def _of_served(
        self, key: EntryKey, decision: Decision, asking: Collection[SubscriptionView], written: datetime | None
    ) -> Belief:
        refusal = refusal_of(*key, decision, self._nacks)
        if refusal is not None:
            return Belief.REFUSED if refusal.sure else Belief.UNSURE
        return Belief.HAS if all(_acknowledged(each, written) for each in asking) else Belief.UNSURE

    def _was_told(self, subscription: SubscriptionView) -> bool:
        """Whether the client had its last response long enough ago that it knows what it cannot have. Access rules may
        have changed though the name was not written.
        """
        answered = subscription.state in {SubscriptionState.ACKED, SubscriptionState.NACKED}
        return answered and subscription.sent_at is not None and subscription.sent_at <= self._settled


def _acknowledged(subscription: SubscriptionView, written: datetime | None) -> bool:
    """Whether the client acknowledged what was written at `written`. Even if its last response is not answered, or was
    refused for another resource, it has what it acknowledged before that.
    """
    if subscription.state is SubscriptionState.ACKED:
        return True
    before = subscription.acked_at
    return before is not None and written is not None and before > written + SETTLED_AFTER


def _digests_of(addresses: Collection[bytes]) -> Mapping[bytes, str]:
    """A digest of the hosts in each of these endpoint resources, by content hash, which is what `addresses` are."""

    def read(missing: Collection[bytes]) -> Mapping[bytes, str]:
        blobs = blobs_read(addresses=[address.hex() for address in missing])
        return {
            bytes.fromhex(address): endpoints_digest(data) for address, kind, data in blobs if kind is BlobKind.RESOURCE
        }

    return _digests.those_of(addresses, read) if addresses else {}
