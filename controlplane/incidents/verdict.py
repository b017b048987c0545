"""Decides whether what clients refuse may be taken out of service for all of them (architecture.md decision 7). Pure.

One client must never roll back a fleet (reliability N4, threat 14), so refusals are counted over distinct clients, and
over distinct identities where several were served; and against everybody who was sent the content, because NACKs come
in milliseconds and ACKs of warming clusters in up to 15 seconds (resolutions D25).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

MIN_CLIENTS = 2
MIN_IDENTITIES = 2
MIN_SHARE = 0.10
# A client that seems to be the only one may be the first of many: after a restart they come back over some seconds, and
# what was sent is known a second later.
SOLE_CLIENT_WAIT_S = 5.0

ClientKey = tuple[str, str]
"""(identity, node id): what makes two clients distinct."""


class Outcome(Enum):
    """PASS: nobody refuses it. FAIL: take it out of service. INCONCLUSIVE: too few to say; a person may."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome and the sentence that says why."""

    outcome: Outcome
    reason: str


def judge(*, nacked: Mapping[str, ClientKey], served: Mapping[str, ClientKey], age_s: float) -> Verdict:
    """The verdict over one revision, by client id: who refuses it, and who was sent it or is about to be.

    Whoever refused it was sent it, whether or not that was recorded. `age_s` is the time since it was refused first.
    """
    everybody = set(served.values()) | set(nacked.values())
    refusing = set(nacked.values())
    counts = f"{len(refusing)} of {len(everybody)} clients refused it"
    if not refusing:
        return Verdict(Outcome.PASS, f"0 of {len(everybody)} clients refused it")
    doubt = _doubt(refusing, everybody, age_s)
    return Verdict(Outcome.INCONCLUSIVE, f"{counts}; {doubt}") if doubt else Verdict(Outcome.FAIL, counts)


def _doubt(refusing: set[ClientKey], everybody: set[ClientKey], age_s: float) -> str:
    """Why these refusals do not decide for everybody; empty when they do."""
    if len(everybody) == 1:
        return "" if age_s >= SOLE_CLIENT_WAIT_S else "others may be about to connect"
    if len(refusing) < MIN_CLIENTS:
        return f"at least {MIN_CLIENTS} must"
    if len(_identities(everybody)) > 1 and len(_identities(refusing)) < MIN_IDENTITIES:
        return f"all of them with one identity, and at least {MIN_IDENTITIES} must"
    if len(refusing) < MIN_SHARE * len(everybody):
        return f"at least {MIN_SHARE:.0%} must"
    return ""


def _identities(clients: set[ClientKey]) -> set[str]:
    return {identity for identity, _ in clients}
