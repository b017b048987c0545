"""What one data plane can cause, and what bounds it: one row for each kind of thing, so that none is forgotten.

A budget counts for the verified identity of who causes it, else for its address (`callers`), never for anything it says
of itself. The numbers are rows of `limits`; docs/reference/budgets.md is this table for people, and
tests/faults/test_noisy_neighbour.py has an attack on each row.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """One budget that every caller has.

    causes: what a caller can cause.
    limits: the fields of `limits.Limits` that bound it.
    beyond: what happens to a caller that asks for more.
    enforced: the dotted name of the code that counts.
    """

    causes: str
    limits: tuple[str, ...]
    beyond: str
    enforced: str


BUDGETS: Final = (
    BudgetRow(
        "places",
        (
            "streams_per_identity",
            "streams_per_address",
            "streams_per_node",
            "caller_openings_per_s",
            "first_request_ms",
            "streams_admitted_per_s",
            "admission_wait_ms",
        ),
        "The call is refused before any response; one without a request ends. Callers are let in by turns.",
        "adsserver.limits.budgets.Budgets.enter",
    ),
    BudgetRow(
        "requests",
        ("caller_work_ms_per_s", "caller_work_burst_ms", "requests_per_s", "request_burst", "names_per_step"),
        "Its requests are read later, while others are there.",
        "adsserver.limits.budgets.Budget.turn",
    ),
    BudgetRow(
        "bytes",
        ("caller_bytes_per_s", "caller_bytes_burst", "request_bytes", "memory_mib"),
        "Its requests are read later, while others are there; a larger request ends its stream.",
        "adsserver.limits.budgets.Budget.received",
    ),
    BudgetRow(
        "names",
        ("name_bytes_per_stream", "name_bytes_per_identity", "names_per_type", "names_per_request", "name_bytes"),
        "The stream that asks for more ends.",
        "adsserver.limits.budgets.Budget.hold_names",
    ),
    BudgetRow(
        "guesses",
        ("denied_names_per_h",),
        "An alarm names it.",
        "adsserver.limits.admission.DeniedNames",
    ),
    BudgetRow(
        "polls",
        ("polled_per_identity", "polled_per_node", "polled_subscriptions", "poll_silence_s"),
        "The poll that would begin another subscription is turned down (429).",
        "adsserver.servicers.polls.Polls.answer",
    ),
    BudgetRow(
        "connections of polls",
        ("rest_connections", "poll_waits_per_identity", "poll_wait_s", "rest_request_bytes"),
        "Whoever has most loses the one idle for longest; a poll beyond those that may wait is answered at once.",
        "adsserver.rest.server.RestServer",
    ),
    BudgetRow(
        "status",
        ("status_calls", "status_entries", "status_bytes"),
        "Counted for each API token; who has none is turned away before anything else.",
        "adsserver.servicers.csds.StatusServicer",
    ),
    BudgetRow(
        "facts",
        (
            "nacks_waiting",
            "nacks_per_type",
            "nacks_per_environment",
            "nack_writes_per_s",
            "clients_per_environment",
            "closed_streams_per_environment",
            "holding_moves_per_environment",
        ),
        "Whoever has most loses its own oldest, and waits behind the others.",
        "adsserver.store.waiting_nacks.WaitingNacks",
    ),
    BudgetRow(
        "incidents",
        (
            "incidents_per_identity",
            "incidents_per_environment",
            "incident_clients_per_identity",
            "resolved_incidents_per_environment",
        ),
        "What is beyond is one incident that names its resources; whoever has most makes room for others.",
        "controlplane.incidents.shares.admissions",
    ),
    BudgetRow(
        "messages",
        ("messages_per_identity_h", "messages_per_h"),
        "What is beyond is told in one summary.",
        "controlplane.notify.services.expanding.notifications_expand",
    ),
)
