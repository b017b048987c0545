"""Says which resources a NACK blames, and how sure that is. Pure; called by the digest.

What the server knows comes first, because many texts name nobody and any text may be made up: proof by isolation, then
the only change since the client's last ACK. The text only narrows what is left (reliability N2, texts.md 9.4). A name
that was not in the response is never blamed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from controlplane.clients.foreign_text import escape
from xdscore.evidence import Evidence
from xdscore.nacktext import attribute


class Confidence(StrEnum):
    """On what ground a resource is blamed for a NACK (texts.md 9.4), from the surest to the least sure."""

    ISOLATED = "isolated"
    ONLY_CHANGE = "only_change"
    NAMED_IN_TEXT = "named_in_text"
    ONE_OF = "one_of"
    UNKNOWN = "unknown"

    @property
    def proven(self) -> bool:
        """Whether the ground is that Parley itself found the culprit, whatever the client's text says."""
        return self in (Confidence.ISOLATED, Confidence.ONLY_CHANGE)

    def or_surer(self, other: "Confidence") -> "Confidence":
        """The surer of this ground and the other one, so that what was proven once stays proven."""
        order = tuple(Confidence)
        return min(self, other, key=order.index)


NamedVersion = tuple[str, str]
"""The name and version of a resource as it was sent."""


@dataclass(frozen=True, slots=True)
class Blame:
    """The resources that a NACK is, or may be, about.

    `culprits`: each of these was refused.
    `suspects`: where there is no culprit, one of these was refused; empty: nobody knows which.
    """

    confidence: Confidence
    culprits: tuple[NamedVersion, ...] = ()
    suspects: tuple[NamedVersion, ...] = ()


# What makes a single suspect the culprit, whatever the text says.
_PROOFS = {Evidence.ISOLATED: Confidence.ISOLATED, Evidence.ONLY_CHANGE: Confidence.ONLY_CHANGE}


def blame(
    *,
    type_url: str,
    text: str,
    resources: Sequence[NamedVersion],
    suspects: Sequence[NamedVersion],
    evidence: Evidence = Evidence.TEXT,
) -> Blame:
    """Find the resources that a NACK with this text is about.

    `resources`: what the response held, in order.
    `suspects`: those of them that changed since the client's last ACK; `evidence`: on what ground they are suspects.

    A text that names nothing but what is no suspect counts as naming none, because it may be made up (reliability
    threat 14). Whether what a client acknowledged before is a suspect is for the stream to say (reliability N2).
    """
    held = set(resources)
    suspected = tuple(content for content in dict.fromkeys(suspects) if content in held)
    if len(suspected) == 1 and evidence in _PROOFS:
        return Blame(_PROOFS[evidence], culprits=suspected)
    named = set(_named(type_url, text, resources))
    culprits = tuple(content for content in suspected if content in named)
    if culprits:
        return Blame(Confidence.NAMED_IN_TEXT, culprits=culprits)
    if len(suspected) == 1:
        # Several were new to this client, and of those only this one was not proven by others.
        return Blame(Confidence.ONE_OF, culprits=suspected)
    if suspected:
        return Blame(Confidence.ONE_OF, suspects=suspected)
    return Blame(Confidence.UNKNOWN)


def _named(type_url: str, text: str, resources: Sequence[NamedVersion]) -> Sequence[NamedVersion]:
    # The text was escaped before it was stored; names are escaped the same way, and the answer is read by place.
    names = [escape(name, keep="\n\t") for name, _ in resources]
    return [resources[index] for index in attribute(text, type_url=type_url, names=names).indexes]
