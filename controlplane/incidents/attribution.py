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
    """The ground on which resources are blamed (texts.md 9.4), from sure to unsure."""

    ISOLATED = "isolated"
    ONLY_CHANGE = "only_change"
    NAMED_IN_TEXT = "named_in_text"
    ONE_OF = "one_of"
    UNKNOWN = "unknown"

    @property
    def proven(self) -> bool:
        """Whether the server knows the culprit by itself, whatever the text says."""
        return self in (Confidence.ISOLATED, Confidence.ONLY_CHANGE)

    def or_surer(self, other: "Confidence") -> "Confidence":
        """The surer of the two: what was proven once stays proven."""
        order = tuple(Confidence)
        return min(self, other, key=order.index)


NamedVersion = tuple[str, str]
"""The name and version of a resource as it was sent."""


@dataclass(frozen=True, slots=True)
class Blame:
    """The result of attributing a NACK. `culprits`: each of these is to blame by itself.

    `suspects`: where nobody is the culprit, one of these is, or nobody knows (empty).
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
    """The resources that a NACK with this text blames.

    `resources` is what the response held, in order; `suspects` are those that changed since the client's last ACK, and
    `evidence` says how they were found. A text that names only resources the client has acknowledged before names
    nobody: it may be made up (reliability threat 14).
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
