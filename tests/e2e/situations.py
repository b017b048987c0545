"""The table of situations: what real clients do, what each has then, and what Explain says of it. Data alone.

Clients are named by what they do and how they speak: `edge-sotw` and `edge-delta` do the same in both variants.
"""

from dataclasses import dataclass, replace
from typing import Final

from xdscore.holdings import HoldingState

ACKED, SENT, NACKED = HoldingState.ACKED, HoldingState.SENT, HoldingState.NACKED
ERROR_SENT, SILENT, UNKNOWN = HoldingState.ERROR_SENT, HoldingState.SILENT, HoldingState.UNKNOWN

SAYS: Final = "refused by a drill, with these words"
ENVOY_SAYS: Final = "Invalid path: /no/such/ca.pem"
GRPC_SAYS: Final = "LB policy is not supported"
VARIANTS: Final = ("sotw", "delta")


@dataclass(frozen=True)
class Situation:
    """What a client has of a name.

    `wire`: what the client itself has: `acked`, `nacked`, `received_error`, or nothing.
    `state`: what Parley says of it; None where the client does not ask for the name. `revision`: of what it was sent,
        refused or acknowledged; `runs`: of what it goes on with; `code`: of the error that it was told.
    `words`: some of those that the client was told, or that it said itself.
    `answer`, `sentence`: Explain's, and words of its sentence, asked in environment `default`.
    """

    client: str
    type: str
    name: str
    wire: str
    state: HoldingState | None
    revision: int | None = None
    runs: int | None = None
    code: str = ""
    words: str = ""
    answer: str = "no"
    sentence: str = ""

    @property
    def environment(self) -> str:
        return "prod" if self.client.startswith("prod-") else "default"

    def __str__(self) -> str:
        return f"{self.client}: {self.type} {self.name}"


def has(client: str, word: str, name: str, revision: int = 1, sentence: str = "") -> Situation:
    """A client that acknowledged what it is to have."""
    return Situation(client, word, name, "acked", ACKED, revision, revision, answer="yes", sentence=sentence)


def told(client: str, name: str, code: str, words: str, sentence: str = "", word: str = "cluster") -> Situation:
    """A client that was told an error and has nothing."""
    return Situation(
        client, word, name, "received_error", ERROR_SENT, None, None, code, f"{words}[{code}] ", sentence=sentence
    )


def refuses(client: str, name: str, revision: int, runs: int | None, says: str = SAYS) -> Situation:
    """A client that refused what it is to have, and goes on with `runs`."""
    return Situation(client, "cluster", name, "nacked", NACKED, revision, runs, "", says, sentence=says)


def both(*situations: Situation) -> tuple[Situation, ...]:
    """These situations in both variants."""
    return tuple(replace(each, client=f"{each.client}-{variant}") for each in situations for variant in VARIANTS)


_DENIED = "PERMISSION_DENIED "
_MISSING = "NOT_FOUND "
_WITHHELD = "INTERNAL "
_NEAR = "Nobody has published Cluster 'servd' in 'default'. Closest: 'served'"
_REMOVED = "Cluster 'deleted' was removed from 'default' by token:admin.token at "
_FOUND = "RouteConfiguration 'withheld' is withheld: XDS2002: "

SITUATIONS: Final = (
    *both(
        has("edge", "cluster", "served", sentence="Cluster 'served' is served in 'default', version "),
        has("edge", "cluster", "changed", 2),
        has("edge", "cluster", "for-some"),
        has("edge", "cluster", "pay"),
        has("edge", "endpoint", "pay"),
        has("edge", "route", "r"),
        has("edge", "listener", "api"),
        told("edge", "denied", "XDS2103", _DENIED, " denies Cluster 'denied'."),
        told("edge", "hidden", "XDS2101", _MISSING, " hides Cluster 'hidden' from these clients"),
        told("edge", "servd", "XDS2101", _MISSING, _NEAR),
        told("edge", "deleted", "XDS2102", _MISSING, _REMOVED),
        told("edge", "withheld", "XDS2106", _WITHHELD, _FOUND, "route"),
        told("edge", "locked", "XDS2103", _DENIED, word="secret"),
        has("edge", "secret", "shared"),
        # It had it, and a rule forbids it since.
        told("edge", "revoked", "XDS2103", _DENIED, " denies Cluster 'revoked'."),
        Situation("edge", "cluster", "left", "", None, sentence="it does not ask for cluster 'left'."),
        has("edge", "cluster", "back"),
        Situation("edge", "cluster", "refused", "", None, sentence="it does not ask for cluster 'refused'."),
        # Of a refused response, what was in it besides is taken (truth.md H2).
        refuses("refuser", "refused", 1, None),
        has("refuser", "cluster", "served"),
        # It was given back what it goes on with, and acknowledged that.
        replace(refuses("turner", "changed", 2, 1), wire="acked"),
        has("turner", "cluster", "served"),
        # It refused the second, which is in quarantine: the last good one is published, which it was given back before.
        has("keeper", "cluster", "lapse"),
        has("keeper", "cluster", "served"),
        # Envoy took it, so that it is withheld from clients that are like those who refused it, and from no others.
        told("late", "rejected", "XDS2106", _WITHHELD, " is withheld: rejected by clients of this kind"),
        has("envoy", "cluster", "rejected"),
        told("late", "quarantined", "XDS2106", _WITHHELD, "Cluster 'quarantined' is withheld: XDS5001"),
        Situation(
            "late", "cluster", "served", "", None,
            sentence="Connected, but it does not ask for cluster 'served'. Closest that it asks for: 'serve'.",
        ),
        # Of two streams of a client that differ, the one that needs attention counts.
        replace(refuses("twin", "refused", 1, None), sentence=""),
        Situation(
            "gone", "cluster", "served", "acked", UNKNOWN, 1, 1,
            words="It went away at ", answer="unknown", sentence="It has no open stream since ",
        ),
        replace(
            told("prod", "served", "XDS2101", _MISSING, "This client belongs to 'prod', not to 'default'."),
            words="Cluster 'served' is not published in 'prod'.",
        ),
        replace(
            told("canary", "for-some", "XDS2103", _DENIED),
            sentence=" speaks of 'canaries', which look at metadata that is not kept of this client.",
        ),
        # Who does not want to be told why is told at most that it is not there.
        Situation("old", "cluster", "denied", "", SILENT, None, None, "XDS2103", _DENIED),
        Situation("old", "cluster", "servd", "", SILENT, None, None, "XDS2101", _MISSING),
        has("old", "cluster", "served"),
        Situation("old", "cluster", "deleted", "", SILENT, None, None, "XDS2102", _MISSING),
        Situation("mute", "cluster", "served", "sent", SENT, 1, None),
        # It runs the first, and was sent the second, to which it has not said a word.
        Situation("slow", "cluster", "changed", "sent", SENT, 2, 1),
        # Envoy asks for every cluster and listener.
        has("envoy", "cluster", "served"),
        has("envoy", "cluster", "changed", 2),
        has("envoy", "cluster", "pay"),
        has("envoy", "endpoint", "pay"),
        has("envoy", "listener", "inbound"),
        has("envoy", "route", "r"),
        replace(refuses("envoy", "bad-ca", 1, None, ENVOY_SAYS), wire=""),  # its dump has no word of what it never had
        # Of what it had it goes on with the older.
        replace(refuses("envoy", "slips", 2, 1, ENVOY_SAYS), wire="acked"),
    ),
    has("grpc", "listener", "api"),
    has("grpc", "route", "r"),
    has("grpc", "cluster", "pay"),
    has("grpc", "endpoint", "pay"),
    told("grpc", "nobody", "XDS2101", _MISSING, word="listener"),
    told("grpc", "vault", "XDS2103", _DENIED, word="listener"),
    refuses("grpc", "odd", 1, None, GRPC_SAYS),
    replace(refuses("grpc", "turns", 2, 1, GRPC_SAYS), wire="acked"),
    has("grpc", "endpoint", "turns"),
)  # fmt: skip


# Held, not in use yet (truth.md H5): it takes 30 s until these are so, and they stand apart for that.


def idle(client: str, word: str, name: str, lacks: str) -> Situation:
    """A client that acknowledged what it is to have and did not ask for what that needs."""
    says = f"Held, not in use yet: it has not asked for {lacks}."
    return replace(has(client, word, name), words=says)


NOT_IN_USE: Final = (
    *both(
        idle("idle", "cluster", "pay", "endpoint 'pay'"),
        idle("idle", "listener", "api", "route 'r'"),
        # Envoy acknowledges a listener for gRPC and leaves it alone.
        idle("envoy", "listener", "odd-api", "route 'odd-route'"),
    ),
)
