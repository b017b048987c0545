"""Notifications, and the channels they go out on."""

from typing import Any

from rest_framework import serializers

from controlplane.api.fields import StrictSerializer, Text
from controlplane.notify.catalogue import KINDS, Severity
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.models import DeliveryState
from controlplane.outside.targets import MAX_URL_CHARS


class NotificationOut(serializers.Serializer[Any]):
    """One notification in the inbox."""

    id = serializers.UUIDField()
    at = serializers.DateTimeField()
    kind = serializers.ChoiceField(choices=list(KINDS))
    environment = serializers.CharField(allow_blank=True)
    subject = serializers.CharField(allow_blank=True)
    severity = serializers.ChoiceField(choices=[each.value for each in Severity])
    title = serializers.CharField()
    text = serializers.CharField()
    link = serializers.CharField(allow_blank=True)


class ChannelIn(StrictSerializer):
    """A channel to create, to which notifications will be sent."""

    name = Text(max_length=100)
    kind = serializers.ChoiceField(choices=[kind.value for kind in ChannelKind])
    target = Text(max_length=MAX_URL_CHARS, help_text="A URL, or a mail address.")
    environments = serializers.ListField(child=Text(max_length=63), required=False, help_text="Empty: all.")
    kinds = serializers.ListField(
        child=Text(max_length=64), required=False, help_text=f"Empty: all of {', '.join(KINDS)}."
    )


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
    failures = serializers.IntegerField(help_text="Tries in a row that failed.")
    paused_at = serializers.DateTimeField(allow_null=True)
    paused_reason = serializers.CharField(allow_blank=True)


class ChannelMadeOut(ChannelOut):
    """A new channel, with the secret that signs its messages: shown only now, and empty where messages are not
    signed.
    """

    secret = serializers.CharField(allow_blank=True)


class DeliveryOut(serializers.Serializer[Any]):
    """The delivery of one notification to a channel, or the attempts at it."""

    id = serializers.UUIDField()
    title = serializers.CharField()
    state = serializers.ChoiceField(choices=[each.value for each in DeliveryState])
    attempts = serializers.IntegerField()
    tried_at = serializers.DateTimeField(allow_null=True)
    next_at = serializers.DateTimeField(allow_null=True, help_text="When it is tried next; null when it is not.")
    answer = serializers.CharField(allow_blank=True)


class DeliveriesOut(serializers.Serializer[Any]):
    """The last hundred deliveries of a channel."""

    results = DeliveryOut(many=True)


class ChannelsOut(serializers.Serializer[Any]):
    """All notification channels."""

    results = ChannelOut(many=True)


class ChannelTestOut(serializers.Serializer[Any]):
    """Whether a channel took a sample, and what it answered."""

    ok = serializers.BooleanField()
    answer = serializers.CharField(allow_blank=True)
