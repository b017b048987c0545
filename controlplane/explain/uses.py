"""Finds what a client acknowledged and does not use yet (truth.md H5): its page, the API and Explain say it."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from controlplane.catalog.links import references_of
from controlplane.clients.clock import database_now
from controlplane.clients.held_rows import HeldResource
from controlplane.clients.selectors import ClientSummary, SubscriptionView
from controlplane.explain.unused import ANSWER_WITHIN, USERS, not_asked_for, unused_sentence
from controlplane.explain.values import Asked
from xdscore.holdings import HoldingState


def with_uses(
    *, client: ClientSummary, rows: Collection[HeldResource], subscriptions: Collection[SubscriptionView]
) -> tuple[HeldResource, ...]:
    """The rows of one client, each with a message that says so where the client has the resource and does not use it.
    `subscriptions`: those of its open streams. One query, where there is anything to find out.
    """
    before = database_now() - ANSWER_WITHIN
    taken = {
        (row.type, row.name): row.revision
        for row in rows
        if row.state is HoldingState.ACKED and row.type in USERS and row.revision is not None
        if row.since is not None and row.since <= before
    }
    if not taken:
        return tuple(rows)
    asked: dict[str, list[Asked]] = {}
    for each in subscriptions:
        asked.setdefault(each.type, []).append(Asked(each.names, each.wildcard))
    needed = references_of(environment_key=client.environment, revisions=taken)
    missing = not_asked_for(needed, asked, client.family)
    return tuple(_with(row, missing) for row in rows)


def _with(row: HeldResource, missing: Mapping[tuple[str, str], Collection[tuple[str, str]]]) -> HeldResource:
    found = missing.get((row.type, row.name))
    if not found or row.state is not HoldingState.ACKED:
        return row
    return replace(row, message=" ".join(filter(None, (unused_sentence(found), row.message))))
