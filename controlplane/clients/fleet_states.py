"""Counts the clients of each environment by state, once a minute, for the pictures over time (truth.md H6)."""

import time
from collections.abc import Callable, Mapping
from typing import Final

from django.db import connection
from django.db.models import Count

from controlplane.catalog.models import Environment
from controlplane.clients.clock import database_now
from controlplane.clients.facts import SubscriptionState
from controlplane.clients.models import Client
from controlplane.history.services import fleet_sample_add, fleet_sampled
from controlplane.history.values import MINUTE_S, FleetStates

# A client is in the first of these states that one of its subscriptions is in.
_ORDER: Final = (
    SubscriptionState.NACKED,
    SubscriptionState.SENT,
    SubscriptionState.REQUESTED,
    SubscriptionState.ACKED,
)
_PLACE: Final = " ".join(f"WHEN '{state.value}' THEN {place}" for place, state in enumerate(_ORDER))
# Who has a stream and asked for nothing yet waits like who asked and was sent nothing.
_NOTHING_YET: Final = _ORDER.index(SubscriptionState.REQUESTED)
_STATES: Final = f"""
    SELECT environment_id, place, COUNT(*) FROM (
        SELECT client.environment_id AS environment_id,
            COALESCE(MIN(CASE sub.state {_PLACE} END), {_NOTHING_YET}) AS place
        FROM clients_stream stream
        JOIN clients_client client ON client.id = stream.client_id
        LEFT JOIN clients_subscription sub ON sub.stream_id = stream.id
        WHERE stream.closed_at IS NULL
        GROUP BY client.id, client.environment_id
    ) AS each GROUP BY environment_id, place
"""  # noqa: S608 - words and numbers of this code


def fleet_states() -> Mapping[int, FleetStates]:
    """How many clients stand in each state now, by environment id; every environment is there. One statement for all
    clients that are connected.
    """
    known = dict(Client.objects.order_by().values_list("environment_id").annotate(Count("pk")))
    counts: dict[int, dict[str, int]] = {pk: {} for pk in Environment.objects.values_list("pk", flat=True)}
    with connection.cursor() as cursor:
        cursor.execute(_STATES)
        for environment, place, clients in cursor.fetchall():
            counts.setdefault(environment, {})[_ORDER[place].value] = clients
    return {
        environment: FleetStates(**each, disconnected=max(known.get(environment, 0) - sum(each.values()), 0))
        for environment, each in counts.items()
    }


class Sampling:
    """Counts the clients right after each minute has begun, by the database's clock; other calls do nothing. Where
    several processes do so, the first of them counts. `clock` is monotonic, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = 0.0

    def __call__(self) -> None:
        """Count the clients if this minute's turn has come. A minute in which nobody calls stays a gap."""
        if self._clock() < self._due:
            return
        now = database_now()
        self._due = self._clock() + MINUTE_S + 1 - now.timestamp() % MINUTE_S
        if not fleet_sampled(now=now):
            fleet_sample_add(states=fleet_states(), now=now)
