"""Notifications in the inbox."""

from typing import Any

from rest_framework import serializers

from controlplane.notify.catalogue import KINDS, Severity


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
