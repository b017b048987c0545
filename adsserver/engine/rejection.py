"""What a NACK blames, and how the suspects are told apart (reliability N2, resolutions C8).

First comes what changed since this client's last ACK; the text only narrows it. A name that was not in the response is
never blamed.
"""

from adsserver.engine.events import Nack, NamedContent
from adsserver.engine.ledger import Entry
from xdscore.evidence import Evidence
from xdscore.nacktext import attribute
from xdscore.resource_types import ResourceType

# reliability N3: re-sends of suspects for one NACK.
MAX_RESENDS = 16

Group = tuple[str, ...]


def evidence_of(entry: Entry, changed: tuple[NamedContent, ...]) -> Evidence:
    """On which ground `changed`, what was new to the client in a response it refused, is suspected."""
    if len(changed) != 1:
        return Evidence.TEXT
    return Evidence.ISOLATED if entry.isolating else Evidence.ONLY_CHANGE


def blamed(kind: ResourceType, entry: Entry, changed: tuple[NamedContent, ...], nack: Nack) -> tuple[NamedContent, ...]:
    """Of `changed`, what this NACK may be about: those its text names, or all of them when it names none of them."""
    if len(changed) <= 1:
        return changed
    return named_by(kind, entry, changed, nack) or changed


def named_by(
    kind: ResourceType, entry: Entry, changed: tuple[NamedContent, ...], nack: Nack
) -> tuple[NamedContent, ...]:
    """Of `changed`, those that the text names; none when it names nobody."""
    names = [member.name for member in entry.resources]
    attribution = attribute(nack.message, type_url=kind.url, names=names)
    named = {*attribution.names, *(names[index] for index in attribution.indexes if 0 <= index < len(names))}
    return tuple(member for member in changed if member.name in named)


def groups_to_resend(changed: tuple[NamedContent, ...], suspects: tuple[NamedContent, ...]) -> list[Group]:
    """Which names to send apart, so that the good ones come into use and the bad ones are proven.

    After a NACK nobody knows what of the response was used (B12): what the text clears is sent once more, together.
    Where it clears nothing, the suspects go in halves. A single suspect is not sent again: it is the culprit (B7).
    """
    guilty = {member.name for member in suspects}
    cleared = tuple(member.name for member in changed if member.name not in guilty)
    if cleared:
        return [cleared]
    return halves(suspects)


def halves(suspects: tuple[NamedContent, ...]) -> list[Group]:
    """The suspects in two groups; none where there is only one, for it is the culprit."""
    if len(suspects) < 2:
        return []
    names = tuple(member.name for member in suspects)
    middle = len(names) // 2
    return [names[:middle], names[middle:]]
