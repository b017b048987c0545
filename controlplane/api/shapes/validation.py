"""What is wrong with manifests, and what error codes mean."""

from typing import Any

from rest_framework import serializers

from controlplane.api.fields import StrictSerializer
from controlplane.api.shapes.changes import ManifestField
from controlplane.api.shapes.common import FindingOut


class ValidateIn(StrictSerializer):
    """Manifests to look at."""

    resources = ManifestField()


class ValidateOut(serializers.Serializer[Any]):
    """What was found."""

    valid = serializers.BooleanField(help_text="Whether apply would take them.")
    findings = FindingOut(many=True)


class ErrorCodeOut(serializers.Serializer[Any]):
    """What a code means."""

    code = serializers.CharField()
    title = serializers.CharField()
    detail = serializers.CharField(allow_blank=True, help_text="When it is said, and what to do.")
    hint = serializers.CharField(allow_blank=True)
