"""What became of contents that were published: who was sent them, and what each client said. Values only, never rows.

For the status of a change (decisions U2). A client counts when it was sent the type since the publication and asks
for one of the names; its answers to other contents of the same type come with it, which is what the wire says of them.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import IntEnum

from controlplane.clients.clock import database_now
from controlplane.clients.facts import SubscriptionState
from controlplane.clients.models import Subscription
from controlplane.clients.selectors import covering

# decisions U2: a client that says nothing for so long is silent.
SILENT_AFTER = timedelta(seconds=30)
# Sending takes a moment, and a fact about it up to two seconds more: until then, who asks for the name is expected.
EXPECTED_FOR = timedelta(seconds=5)


class Reaction(IntEnum):
    """How far a client has come with a change. Of several streams or types of a client, the highest value counts."""

    LEFT = 0  # its stream ended before it answered
    ACKED = 1
    SILENT = 2
    EXPECTED = 3  # it asks for the name and was not sent anything yet
    WAITING = 4  # it was sent it, and may still answer
    NACKED = 5


def reactions(
    *, environment_key: str, names_by_word: Mapping[str, Collection[str]], since: datetime
) -> Mapping[str, Reaction]:
    """How far each client has come with these names since they were published, by client id."""
    now = database_now()
    found: dict[str, Reaction] = {}
    for word, names in names_by_word.items():
        rows = covering(Subscription.objects.all(), environment_key, word, names)
        columns = ("stream__client_id", "stream__closed_at", "state", "sent_at")
        for client, closed_at, state, sent_at in rows.values_list(*columns):
            reaction = _reaction(SubscriptionState(state), sent_at, closed_at, since, now)
            if reaction is not None:
                found[client] = max(reaction, found.get(client, Reaction.LEFT))
    return found


def _reaction(
    state: SubscriptionState, sent_at: datetime | None, closed_at: datetime | None, since: datetime, now: datetime
) -> Reaction | None:
    if sent_at is None or sent_at < since:
        expected = closed_at is None and now - since < EXPECTED_FOR
        return Reaction.EXPECTED if expected else None
    if state is SubscriptionState.ACKED:
        return Reaction.ACKED
    if state is SubscriptionState.NACKED:
        return Reaction.NACKED
    if closed_at is not None:
        return Reaction.LEFT
    return Reaction.SILENT if now - sent_at >= SILENT_AFTER else Reaction.WAITING
