"""The kinds of channels on which people are told. Pure.

This table and the function that speaks to a receiver (`SENDERS` in `controlplane.notify.services.sending`) are all that
is particular to one kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum


class Addressed(Enum):
    """What the target of a channel is."""

    URL = "url"
    MAIL = "mail"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFacts:
    """What follows from the kind of a channel. `title`: its name in a sentence for people; `addressed`: what its target
    is; `signed`: Parley makes a secret for it, shown once, and signs with that what it sends.
    """

    title: str
    addressed: Addressed
    signed: bool


class ChannelKind(StrEnum):
    """The form in which notifications are sent to a channel."""

    WEBHOOK = "webhook"
    SLACK = "slack"
    MAIL = "mail"

    @property
    def facts(self) -> KindFacts:
        """What follows from this kind."""
        return FACTS[self]


FACTS: Mapping[ChannelKind, KindFacts] = {
    ChannelKind.WEBHOOK: KindFacts(title="webhook", addressed=Addressed.URL, signed=True),
    ChannelKind.SLACK: KindFacts(title="Slack", addressed=Addressed.URL, signed=False),
    ChannelKind.MAIL: KindFacts(title="mail", addressed=Addressed.MAIL, signed=False),
}
"""The table: a row for each kind."""
