"""The channels that notifications go out on, and what was sent there.

The shapes describe; `notify.channel_rules` finds everything that is wrong with a channel at once.
"""

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers

from controlplane.api.fields import StrictSerializer, Text
from controlplane.notify.catalogue import OF_CHANNELS
from controlplane.notify.channel_kinds import FACTS, ChannelKind, Key, Manner
from controlplane.notify.channel_rules import MAX_ENVIRONMENT_CHARS, MAX_ENVIRONMENTS, MAX_KEY_CHARS, MAX_NAME_CHARS
from controlplane.notify.models import DeliveryState
from controlplane.notify.schedules import MAX_ZONE_CHARS, Every
from controlplane.outside.targets import MAX_URL_CHARS

_GIVEN: Final = " and ".join(kind.value for kind, facts in FACTS.items() if facts.key is Key.GIVEN)
_APIS: Final = ", ".join(f"`{facts.api}` for {kind.value}" for kind, facts in FACTS.items() if facts.api)
_DIGESTS: Final = " and ".join(kind.value for kind, facts in FACTS.items() if facts.manner is Manner.DIGEST)
_TARGET_HELP: Final = f"A URL, or a mail address. Of {_GIVEN} the URL at which the API begins; without one: {_APIS}."
_KINDS_HELP: Final = f"Empty: all of {', '.join(OF_CHANNELS)}."
_SECRET_HELP: Final = (
    f"The key that the service gave, of {_GIVEN}. It is never read back; with another target it has to be sent again."
)


DELIVERY_FILTERS: Final = [
    OpenApiParameter(name, OpenApiTypes.STR, OpenApiParameter.QUERY, description=text, enum=choices)
    for name, text, choices in (
        ("state", "Only deliveries that stand so.", [each.value for each in DeliveryState]),
        ("kind", "Only deliveries of notifications of this kind.", list(OF_CHANNELS)),
    )
]


class ScheduleOut(serializers.Serializer[Any]):
    """When digests are due."""

    every = serializers.ChoiceField(choices=[each.value for each in Every], required=False, help_text="Default: `day`.")
    hour = serializers.IntegerField(
        min_value=0, max_value=23, required=False, help_text="The hour of the day, in `zone`. Default: 8."
    )
    zone = serializers.CharField(
        max_length=MAX_ZONE_CHARS,
        required=False,
        help_text="A time zone's IANA name, such as `Europe/Berlin`. Default: `UTC`.",
    )


@extend_schema_field(ScheduleOut)
class ScheduleField(serializers.JSONField):
    """A field for when digests are due, which is read later: the findings are more exact then."""


class _Settings(StrictSerializer):
    """What may be said of a channel when it is made and later."""

    target = Text(max_length=MAX_URL_CHARS, required=False, help_text=_TARGET_HELP)
    environments = serializers.ListField(
        child=Text(max_length=MAX_ENVIRONMENT_CHARS),
        required=False,
        max_length=MAX_ENVIRONMENTS,
        help_text="Empty: all.",
    )
    kinds = serializers.ListField(
        child=Text(max_length=64), required=False, max_length=len(OF_CHANNELS), help_text=_KINDS_HELP
    )
    secret = Text(max_length=MAX_KEY_CHARS, required=False, help_text=_SECRET_HELP)
    digest = ScheduleField(required=False, help_text=f"When digests are due, of {_DIGESTS}.")


class ChannelIn(_Settings):
    """A channel to create, to which notifications will be sent."""

    name = Text(max_length=MAX_NAME_CHARS)
    kind = serializers.ChoiceField(choices=[kind.value for kind in ChannelKind])


class ChannelPatchIn(_Settings):
    """What is to change of a channel; what is left out stays. Its kind stays in any case."""

    name = Text(max_length=MAX_NAME_CHARS, required=False)


class LastDeliveryOut(serializers.Serializer[Any]):
    """The newest delivery to a channel that was tried."""

    at = serializers.DateTimeField()
    state = serializers.ChoiceField(choices=[each.value for each in DeliveryState])
    answer = serializers.CharField(allow_blank=True)


class ChannelOut(serializers.Serializer[Any]):
    """A notification channel. The path of its URL is not shown: it may be all that keeps others from using the
    channel.
    """

    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=[kind.value for kind in ChannelKind])
    target = serializers.CharField()
    environments = serializers.ListField(child=serializers.CharField())
    kinds = serializers.ListField(child=serializers.CharField())
    digest = ScheduleOut(allow_null=True, help_text="Null for a kind without digests.")
    key_set = serializers.BooleanField(help_text="Whether a key is stored: that which signs, or which a service gave.")
    failures = serializers.IntegerField(help_text="Tries in a row that failed.")
    failing_since = serializers.DateTimeField(allow_null=True, help_text="When the first of them did.")
    paused_at = serializers.DateTimeField(allow_null=True)
    paused_reason = serializers.CharField(allow_blank=True)
    last_delivery = LastDeliveryOut(allow_null=True, help_text="Null where nothing was tried yet.")


class ChannelMadeOut(ChannelOut):
    """A new channel, with the secret that signs its messages: shown only now, and empty where messages are not
    signed.
    """

    secret = serializers.CharField(allow_blank=True)


class DeliveryOut(serializers.Serializer[Any]):
    """The delivery of one notification to a channel, or of a digest, and the attempts at it."""

    id = serializers.UUIDField()
    title = serializers.CharField()
    kind = serializers.CharField(allow_blank=True, help_text="Of the notification; empty for a digest.")
    environment = serializers.CharField(allow_blank=True)
    until = serializers.DateTimeField(allow_null=True, help_text="The end of a digest's hour or day, else null.")
    entries = serializers.IntegerField(help_text="How many notifications a digest has.")
    state = serializers.ChoiceField(choices=[each.value for each in DeliveryState])
    attempts = serializers.IntegerField()
    tried_at = serializers.DateTimeField(allow_null=True)
    next_at = serializers.DateTimeField(allow_null=True, help_text="When it is tried next; null when it is not.")
    answer = serializers.CharField(allow_blank=True)


class ChannelsOut(serializers.Serializer[Any]):
    """All notification channels."""

    results = ChannelOut(many=True)


class ChannelTestOut(serializers.Serializer[Any]):
    """Whether a channel took a sample, and what it answered."""

    ok = serializers.BooleanField()
    answer = serializers.CharField(allow_blank=True)
