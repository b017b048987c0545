"""What one client has of one name it asks for: one of the seven states of texts.md section 3, and its sentence. Pure.

The states are named as A88 and CSDS name them, so that a dump of the client and the page can be compared word by word.
Facts are kept per type and stream, not per name: what they cannot tell is said, never guessed.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from controlplane.explain.values import Asked, Refusal, Reply
from xdscore.decision import Decision, Denied, Missing, Serve, Undecided, Withheld


class DeliveryState(StrEnum):
    """How far a client has come with one name; the state that needs attention most comes first."""

    NACKED = "NACKED"
    ERROR_SENT = "ERROR_SENT"
    SENT = "SENT"
    REQUESTED = "REQUESTED"
    ACKED = "ACKED"
    NOT_SUBSCRIBED = "NOT_SUBSCRIBED"
    DISCONNECTED = "DISCONNECTED"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The state of a name at a client. `since`: from when on; None where that is not kept. `told` is the text it was
    sent in place of the resource, if any; `denied`: because it may not have it, and not because there is none.
    """

    type: str
    name: str
    state: DeliveryState
    sentence: str
    since: datetime | None = None
    told: str = ""
    denied: bool = False


@dataclass(frozen=True, slots=True)
class NameKnown:
    """The facts about a name, for one client, from which its delivery is derived.

    `revision` is the number of the revision that is served, 0 where the catalogue does not know it any more; `told` the
    text clients get in its place, if any; `refusal` a NACK of exactly this content.
    """

    type: str
    name: str
    decision: Decision
    revision: int = 0
    told: str = ""
    refusal: Refusal | None = None


def delivery_of(known: NameKnown, asked: Asked | None) -> Delivery:
    """The state of a name at a connected client; `asked` is its subscription, None where it does not ask for the
    name.
    """
    if asked is None:
        return Delivery(known.type, known.name, DeliveryState.NOT_SUBSCRIBED, "This client never asked for this name.")
    match known.decision:
        case Serve():
            return _served(known, asked)
        case Undecided(reason=reason):
            return _delivery(known, DeliveryState.REQUESTED, f"Asked for it; nothing can be sent yet: {reason}.", None)
        case Denied() | Missing() | Withheld():
            denied, sentence = isinstance(known.decision, Denied), _told(known.decision)
            return Delivery(
                known.type, known.name, DeliveryState.ERROR_SENT, sentence, asked.sent_at, known.told, denied
            )


def _served(known: NameKnown, asked: Asked) -> Delivery:
    what = f"r{known.revision}" if known.revision else "this version"
    if known.refusal is not None:
        return _delivery(known, DeliveryState.NACKED, _refused(known, what), known.refusal.at)
    match asked.reply:
        case Reply.ACKED:
            return _delivery(known, DeliveryState.ACKED, f"Runs {what}.", asked.acked_at)
        case Reply.SENT:
            return _delivery(known, DeliveryState.SENT, f"{what} was sent; no answer yet.", asked.sent_at)
        case Reply.NACKED:
            text = f"{what} was sent again in a response that it refused over another resource."
            return _delivery(known, DeliveryState.SENT, text, asked.sent_at)
        case Reply.REQUESTED:
            return _delivery(known, DeliveryState.REQUESTED, f"Asked for it; {what} is about to be sent.", None)


def _refused(known: NameKnown, what: str) -> str:
    if known.refusal is not None and not known.refusal.sure:
        return f"Refused a response with {what} in it, and others; it may still run what it had before."
    if known.refusal is not None and known.refusal.now is not None:
        return f"Refused {what}; it {known.refusal.now}."
    if isinstance(known.decision, Serve) and known.decision.fallback is not None:
        return f"Refused {what}; it is served the last revision that clients acknowledged."
    return f"Refused {what}; it keeps what it had before, or has nothing."


def _told(decision: Decision) -> str:
    match decision:
        case Denied(rule=rule):
            by = f"by rule {rule}" if rule else "by the environment's default"
            return f"Told PERMISSION_DENIED, {by}; still in force."
        case Missing(hidden=True, rule=rule):
            by = f"rule {rule}" if rule else "the environment's default"
            return f"Told NOT_FOUND, because {by} hides it; still in force."
        case Missing(removed=True):
            return "Told NOT_FOUND: it was removed."
        case Missing():
            return "Told NOT_FOUND: nobody has published it."
        case _:
            return "Told INTERNAL: it is withheld until somebody edits it."


def _delivery(known: NameKnown, state: DeliveryState, sentence: str, since: datetime | None) -> Delivery:
    return Delivery(known.type, known.name, state, sentence, since)
