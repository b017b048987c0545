"""Answers what a client's word on a type as a whole says of one content, where nobody says what it has of each name.

A subscription has no set of what its client has (`Subscription.holding_set`) while an ADS process of the version before
this one wrote it, and for the moment until its stream said so for the first time. Here alone it is decided what stands
in for that; all else reads what is stored of each name (truth.md H4). Pure.
"""

from datetime import datetime

from controlplane.clients.facts import SubscriptionState


def answer_to_type(state: str, sent_at: datetime | None, *, since: datetime | None = None) -> SubscriptionState:
    """How far a client has come with any content of a type. `state`, `sent_at`: of its subscription; `since`: from when
    on the content is served, None where that does not matter. What it was sent before that was something else.
    """
    said = SubscriptionState(state)
    if since is not None and (sent_at is None or sent_at < since):
        return SubscriptionState.REQUESTED
    return said
