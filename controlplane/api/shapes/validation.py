"""What is wrong with manifests, and what error codes mean."""

from typing import Any

from rest_framework import serializers

from controlplane.api.fields import StrictSerializer
from controlplane.api.shapes.changes import ManifestField
from controlplane.api.shapes.common import FindingOut, NotJudgedOut


class ValidateIn(StrictSerializer):
    """Manifests to check."""

    resources = ManifestField()


class ValidateOut(serializers.Serializer[Any]):
    """The findings about the manifests that were checked."""

    valid = serializers.BooleanField(help_text="Whether apply would take them.")
    findings = FindingOut(many=True)
    not_judged = NotJudgedOut(many=True, help_text="Which of them no Envoy has read, and why.")


class ErrorCodeOut(serializers.Serializer[Any]):
    """The meaning of an error code."""

    code = serializers.CharField()
    title = serializers.CharField()
    detail = serializers.CharField(allow_blank=True, help_text="When it is said, and what to do.")
    hint = serializers.CharField(allow_blank=True)
