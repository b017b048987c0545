"""The kinds of channels on which people are told. Pure.

This table and the function that speaks to a receiver (`SENDERS` in `controlplane.notify.services.sending`) are all that
is particular to one kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum


class Addressed(Enum):
    """What the target of a channel is."""

    URL = "url"  # all of it, as the receiver gave it
    API = "api"  # the URL at which a service's API begins
    MAIL = "mail"


class Key(Enum):
    """Which secret a channel has."""

    NONE = "none"
    MADE = "made"  # by Parley, shown once: what is sent is signed with it
    GIVEN = "given"  # by the receiver's service: what is sent is let in by it


class Manner(Enum):
    """When a channel is told what."""

    EACH = "each"  # every notification, at once
    ALERTS = "alerts"  # what somebody has to do something about; the alert is closed when that is over
    DIGEST = "digest"  # all of an hour or a day together


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFacts:
    """What follows from the kind of a channel.

    `title`: its name in a sentence for people; `says`: how it is told, as a sentence.
    `key_title`: what the receiver's service calls the key that it gives.
    `api`: the URL of the service's API, unless a channel names another.
    """

    title: str
    says: str
    addressed: Addressed
    key: Key = Key.NONE
    key_title: str = ""
    api: str = ""
    manner: Manner = Manner.EACH


class ChannelKind(StrEnum):
    """The form in which notifications are sent to a channel."""

    WEBHOOK = "webhook"
    SLACK = "slack"
    PAGERDUTY = "pagerduty"
    OPSGENIE = "opsgenie"
    MAIL = "mail"
    DIGEST = "digest"

    @property
    def facts(self) -> KindFacts:
        """What follows from this kind."""
        return FACTS[self]


FACTS: Mapping[ChannelKind, KindFacts] = {
    ChannelKind.WEBHOOK: KindFacts(
        title="webhook",
        says="Each message as JSON to a URL of yours, signed.",
        addressed=Addressed.URL,
        key=Key.MADE,
    ),
    ChannelKind.SLACK: KindFacts(
        title="Slack",
        says="Each message with a button that leads to its page. Services that take Slack's form show its text.",
        addressed=Addressed.URL,
    ),
    # PagerDuty, "Events API V2 Overview": the region decides about the host.
    ChannelKind.PAGERDUTY: KindFacts(
        title="PagerDuty",
        says="An alert of what somebody has to look at, resolved when Parley says that it is over.",
        addressed=Addressed.API,
        key=Key.GIVEN,
        key_title="integration key",
        api="https://events.pagerduty.com",
        manner=Manner.ALERTS,
    ),
    # Opsgenie, "Alert API": accounts in the EU have another host.
    ChannelKind.OPSGENIE: KindFacts(
        title="Opsgenie",
        says="An alert of what somebody has to look at, closed when Parley says that it is over.",
        addressed=Addressed.API,
        key=Key.GIVEN,
        key_title="integration key",
        api="https://api.opsgenie.com",
        manner=Manner.ALERTS,
    ),
    ChannelKind.MAIL: KindFacts(title="mail", says="Each message as a mail.", addressed=Addressed.MAIL),
    ChannelKind.DIGEST: KindFacts(
        title="digest mail",
        says="One mail with all messages of an hour or a day; none where nothing happened.",
        addressed=Addressed.MAIL,
        manner=Manner.DIGEST,
    ),
}
"""The table: a row for each kind."""

ALERTING = tuple(kind.value for kind, facts in FACTS.items() if facts.manner is Manner.ALERTS)
"""The kinds, as they are stored, whose alerts are closed when what they tell is over."""
