"""Answers what is wrong with the processes that run. Values only."""

from dataclasses import dataclass

from controlplane.clients.clock import database_now
from controlplane.fitness.models import ProcessState
from controlplane.fitness.watch import GONE_AFTER


@dataclass(frozen=True, slots=True)
class Unfit:
    """A finding about a running process; `where` is its host and process id."""

    role: str
    where: str
    check: str
    text: str


def processes_unfit() -> tuple[Unfit, ...]:
    """The findings about all processes that reported lately, in a fixed order."""
    rows = ProcessState.objects.filter(seen_at__gte=database_now() - GONE_AFTER).exclude(wrong=[])
    return tuple(
        Unfit(row.role, f"{row.host}/{row.pid}", str(check), str(text))
        for row in rows.order_by("role", "host", "pid")
        for check, text, *_ in row.wrong
    )
