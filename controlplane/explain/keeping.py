"""Finds which access rule keeps a resource from a client that was told so: for operators, whom its error does not tell.

What the client has is not decided here (truth.md H4): where the rules say another thing by now, no rule is named.
"""

from collections.abc import Collection, Mapping
from typing import Final

from controlplane.clients.held_rows import HeldResource
from controlplane.clients.selectors import ClientSummary
from xdscore.decision import Decision, Denied, Missing, decide
from xdscore.holdings import HoldingState
from xdscore.names import canonical
from xdscore.resource_types import by_word
from xdscore.snapshot import EntryKey, Snapshot

_NEVER_PUBLISHED: Final = "XDS2101"
_DENIED: Final = "XDS2103"


def rules_keeping(
    *, client: ClientSummary, rows: Collection[HeldResource], snapshot: Snapshot | None
) -> Mapping[EntryKey, int]:
    """The number of the rule that denies or hides a resource from this client, by (type, name) as the rows have it;
    without those that no rule keeps from it. `snapshot`: the newest one, with these names; None where there is none.
    """
    if snapshot is None:
        return {}
    audience = snapshot.audience(client.facts)
    found = {}
    for row in rows:
        if row.state is HoldingState.ERROR_SENT and row.code in (_NEVER_PUBLISHED, _DENIED):
            rule = _rule(decide(audience, by_word[row.type], canonical(row.name), snapshot), row.code)
            if rule:
                found[row.type, row.name] = rule
    return found


def _rule(decision: Decision, code: str) -> int:
    """The rule by which a client is told this code; 0 where none is the reason."""
    match decision:
        case Denied(rule=rule) if code == _DENIED:
            return rule
        case Missing(hidden=True, rule=rule) if code == _NEVER_PUBLISHED:
            return rule
        case _:
            return 0
