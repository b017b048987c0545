"""Resources and their revisions."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from controlplane.api.shapes.changes import HELD_HELP, HeldBackOut
from controlplane.api.shapes.common import FindingOut
from controlplane.status.values import ConditionType, Reason, Status, Truth


class RefusedOut(serializers.Serializer[Any]):
    """How many clients refuse a resource, and the incident about it."""

    clients = serializers.IntegerField(help_text="How many clients refuse it, whether or not they are connected.")
    sent = serializers.IntegerField(help_text="Of how many that were sent it.")
    incident = serializers.UUIDField()


class ConditionOut(serializers.Serializer[Any]):
    """One condition of a resource's newest revision, such as `Accepted`, in the form that Kubernetes uses."""

    type = serializers.ChoiceField(
        choices=[each.value for each in ConditionType],
        help_text="`Accepted`: what clients say to it; `Published`: whether it is served as written.",
    )
    status = serializers.ChoiceField(choices=[each.value for each in Truth])
    reason = serializers.ChoiceField(choices=[each.value for each in Reason])
    message = serializers.CharField()
    since = serializers.DateTimeField(help_text="From when on, as far as it is kept.")
    revision = serializers.IntegerField(help_text="The revision that it speaks of.")


class StatusOut(serializers.Serializer[Any]):
    """The status of a resource: one word, with its reason and conditions."""

    status = serializers.ChoiceField(
        choices=[each.value for each in Status],
        help_text="`published`: served as written. `waiting`: no build has covered it yet. `stalled`: a reference, a "
        "conflict or a check keeps it from being served. `refused`: an incident is open, whoever is connected. "
        "`quarantined`: out of service, and an earlier revision is served. `withheld`: out of service, and nothing is "
        "served, or only to some kinds of clients.",
    )
    reason = serializers.CharField(allow_blank=True, help_text="A sentence; empty where it is published.")
    refused = RefusedOut(allow_null=True, help_text="Null where no open incident is about this content.")
    conditions = ConditionOut(many=True)


@extend_schema_serializer(deprecate_fields=("held",))
class ResourceRowOut(StatusOut):
    """One resource in a list, with its status."""

    type = serializers.CharField()
    name = serializers.CharField()
    revision = serializers.IntegerField(help_text="`r` and this number is the ETag.")
    version = serializers.CharField(help_text="The version on the wire.")
    owner = serializers.CharField(allow_blank=True)
    labels = serializers.DictField(child=serializers.CharField(allow_blank=True))
    updated_at = serializers.DateTimeField()
    proven = serializers.BooleanField(help_text="Whether a client acknowledged this revision.")
    quarantined = serializers.BooleanField()
    findings = serializers.IntegerField(help_text="How many warnings and notes its revision has.")
    held_back = HeldBackOut(
        allow_null=True, help_text="Why the newest build does not serve it as written; null where it does."
    )
    held = HeldBackOut(allow_null=True, help_text=HELD_HELP)
    manifest = serializers.DictField(
        required=False, help_text="In a list with `manifests=true`, of one resource with `status=true`."
    )


class RevisionOut(serializers.Serializer[Any]):
    """One revision of a resource: the content that it had from one change on."""

    revision = serializers.IntegerField()
    content_hash = serializers.CharField(allow_null=True, help_text="Null for a deletion. Keyed for secrets.")
    deleted = serializers.BooleanField()
    change = serializers.UUIDField()
    author = serializers.CharField()
    author_id = serializers.CharField(allow_null=True, help_text="Who it was, for good. Null: older than ids.")
    message = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    findings = FindingOut(many=True)
    proven = serializers.BooleanField()
    quarantined = serializers.BooleanField()
