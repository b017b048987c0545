"""Notices what nobody does but time brings about: clients that fall silent or go away, tokens that end, and messages
that were left out.

What is noticed becomes a domain event like any other. It is noticed again at the next look, so that a crash loses
nothing; the catalogue's cooldowns see to it that people are told once.
"""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from django.conf import settings

from controlplane.accounts.selectors import tokens_ending
from controlplane.clients.clock import database_now
from controlplane.clients.drops import WINDOW, fleets_dropped
from controlplane.clients.foreign_text import one_line
from controlplane.clients.silence import clients_silent
from controlplane.journal.services import event_append
from controlplane.notify.catalogue import DAYS_LEFT, KINDS
from controlplane.notify.services.summing import held_notice

# Of a minute in which clients left, each look sees at least half.
_CLIENTS_EVERY_S = 30.0
_ENDS_EVERY_S = 3_600.0
_NAME_CHARS = 200


class Watch:
    """Looks at intervals for what only time brings about. `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = dict.fromkeys((silence_notice, drop_notice, ends_notice, held_notice), 0.0)

    def look(self) -> None:
        """Append the events that are due by their intervals, mostly none. Every sweep calls it."""
        for notice, due in self._due.items():
            if self._clock() >= due:
                notice()
                self._due[notice] = self._clock() + (_ENDS_EVERY_S if notice is ends_notice else _CLIENTS_EVERY_S)


def silence_notice() -> None:
    """Append an event for each environment in which clients fell silent of late.

    A silence is news for as long as the cooldown: later it was told, and whoever is stuck stays on the clients' page.
    """
    longer_than = timedelta(seconds=settings.PARLEY.limits.unacknowledged_alarm_s)
    news = KINDS["client.silent"].cooldown
    found = clients_silent(longer_than=longer_than, shorter_than=longer_than + news)
    for environment, silence in found.items():
        event_append(
            kind="client.silent",
            environment=environment,
            subject=f"clients/{environment}",
            payload={
                "clients": silence.clients,
                "names": _listed(silence.node_ids, silence.clients),
                "seconds": int(longer_than.total_seconds()),
            },
        )


def drop_notice() -> None:
    """Append an event for each environment that lost a large share of its connected clients within a minute."""
    for environment, drop in fleets_dropped(percent=settings.PARLEY.limits.fleet_drop_percent).items():
        event_append(
            kind="fleet.dropped",
            environment=environment,
            subject=f"fleet/{environment}",
            payload={
                "clients": drop.clients,
                "of": drop.of,
                "names": _listed(drop.node_ids, drop.clients),
                "seconds": int(WINDOW.total_seconds()),
                "cause": drop.cause,
            },
        )


def _listed(node_ids: Sequence[str], clients: int) -> str:
    names = [one_line(node_id, max_chars=_NAME_CHARS) for node_id in node_ids]
    return ", ".join((*names, *(("…",) if clients > len(names) else ())))


def ends_notice() -> None:
    """Append an event for each token that expires within the longest time of notice."""
    now = database_now()
    for token in tokens_ending(before=now + timedelta(days=max(DAYS_LEFT))):
        at = token.expires_at
        days = next(days for days in DAYS_LEFT if at < now + timedelta(days=days))
        event_append(
            kind="token.expiring",
            environment=token.environment,
            subject=f"{token.key}/{days}",
            payload={
                "name": one_line(token.name, max_chars=_NAME_CHARS),
                "kind": "client" if token.plane else "api",
                "at": at.isoformat(timespec="minutes"),
                "days": days,
            },
        )
