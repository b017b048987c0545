"""Resources and their revisions."""

from typing import Any

from rest_framework import serializers

from controlplane.api.shapes.changes import HeldOut
from controlplane.api.shapes.common import FindingOut


class ResourceRowOut(serializers.Serializer[Any]):
    """One line of a list of resources."""

    type = serializers.CharField()
    name = serializers.CharField()
    revision = serializers.IntegerField(help_text="`r` and this number is the ETag.")
    version = serializers.CharField(help_text="The version on the wire.")
    owner = serializers.CharField(allow_blank=True)
    updated_at = serializers.DateTimeField()
    proven = serializers.BooleanField(help_text="Whether a client acknowledged this revision.")
    quarantined = serializers.BooleanField()
    findings = serializers.IntegerField(help_text="How many warnings and notes its revision has.")
    held = HeldOut(allow_null=True, help_text="Why the newest build does not serve it as written; null where it does.")
    manifest = serializers.DictField(required=False, help_text="With `manifests=true`.")


class RevisionOut(serializers.Serializer[Any]):
    """What a resource was from one change on."""

    revision = serializers.IntegerField()
    content_hash = serializers.CharField(allow_null=True, help_text="Null for a deletion. Keyed for secrets.")
    deleted = serializers.BooleanField()
    change = serializers.UUIDField()
    author = serializers.CharField()
    message = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    findings = FindingOut(many=True)
    proven = serializers.BooleanField()
    quarantined = serializers.BooleanField()
