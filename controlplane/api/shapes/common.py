"""Parts of several answers."""

from typing import Any

from rest_framework import serializers


class ResourceRefOut(serializers.Serializer[Any]):
    """Which resource something is about."""

    type = serializers.CharField(help_text="The type's short word, e.g. `cluster`.")
    name = serializers.CharField()


class FindingOut(serializers.Serializer[Any]):
    """One thing found in something that was written."""

    code = serializers.CharField(help_text="`XDSnnnn`; `/api/v1/errors/{code}` explains it.")
    severity = serializers.ChoiceField(choices=["note", "warning", "error"])
    pointer = serializers.CharField(allow_blank=True, help_text="RFC 6901 pointer into the body that was sent.")
    line = serializers.IntegerField(required=False, help_text="Line of the body, from 1.")
    column = serializers.IntegerField(required=False)
    resource = ResourceRefOut(required=False)
    detail = serializers.CharField(help_text="What is wrong.")
    hint = serializers.CharField(required=False, help_text="What to do.")


class ProblemOut(serializers.Serializer[Any]):
    """An RFC 9457 problem document."""

    type = serializers.CharField(help_text="Where the code is explained.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    instance = serializers.CharField(help_text="`/requests/` and the request's id.")
    code = serializers.CharField(help_text="`XDSnnnn`")
    # A declared field hides no attribute: the metaclass takes it out of the class.
    errors = FindingOut(many=True, help_text="Every problem found, at most 200.")  # type: ignore[assignment]  # see above
    errors_omitted = serializers.IntegerField(required=False, help_text="How many more there are.")


class EditOut(serializers.Serializer[Any]):
    """What became, or would become, of one resource."""

    type = serializers.CharField()
    name = serializers.CharField()
    action = serializers.ChoiceField(choices=["created", "updated", "deleted"])
    revision = serializers.IntegerField()
