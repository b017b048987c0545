"""Parts of several answers."""

from typing import Any

from rest_framework import serializers

from controlplane.api.shapes.freezes import FrozenOut


class ResourceRefOut(serializers.Serializer[Any]):
    """The type and name of the resource that a finding is about."""

    type = serializers.CharField(help_text="The type's short word, e.g. `cluster`.")
    name = serializers.CharField()


class FindingOut(serializers.Serializer[Any]):
    """One problem or note about something that was written."""

    code = serializers.CharField(help_text="`XDSnnnn`; `/api/v1/errors/{code}` explains it.")
    severity = serializers.ChoiceField(choices=["note", "warning", "error"])
    pointer = serializers.CharField(allow_blank=True, help_text="RFC 6901 pointer into the body that was sent.")
    line = serializers.IntegerField(required=False, help_text="Line of the body, from 1.")
    column = serializers.IntegerField(required=False)
    resource = ResourceRefOut(required=False)
    detail = serializers.CharField(help_text="What is wrong.")
    hint = serializers.CharField(required=False, help_text="What to do.")


class NotJudgedOut(serializers.Serializer[Any]):
    """Resources that were not judged by somebody who may refuse them later, for one reason. It is no error."""

    by = serializers.ChoiceField(choices=["envoy"], help_text="Who has not judged them.")
    why = serializers.CharField(help_text="A clause, to go behind a colon.")
    hint = serializers.CharField(required=False, help_text="How to have it; without one it is not to be had.")
    count = serializers.IntegerField(help_text="How many resources.")
    resources = ResourceRefOut(many=True, help_text="The first 100.")


class LostNameOut(serializers.Serializer[Any]):
    """A name that connected clients would lose, and how many of them."""

    type = serializers.CharField()
    name = serializers.CharField()
    clients = serializers.IntegerField()


class LoserOut(serializers.Serializer[Any]):
    """A client that would lose a resource."""

    client = serializers.CharField(help_text="Its id.")
    node_id = serializers.CharField()
    kind = serializers.CharField(help_text="Family and version of its software, such as `envoy 1.40`.")


class LossOut(serializers.Serializer[Any]):
    """The resources that connected clients lose by a write, and how many clients lose any."""

    clients = serializers.IntegerField(help_text="How many of them lose something.")
    connected = serializers.IntegerField(help_text="How many there are.")
    kinds = serializers.DictField(child=serializers.IntegerField(), help_text="How many of each kind of software.")
    names = LostNameOut(many=True, help_text="The first 100, those that most clients lose first.")
    truncated = serializers.BooleanField(help_text="Whether there are more names.")
    doubtful = serializers.IntegerField(
        help_text="Of how many of the clients it cannot be known whether they lose anything; they are counted."
    )
    who = LoserOut(many=True, help_text="The first 20 by node id.")
    asks = serializers.BooleanField(help_text="Whether the write is refused without `accept_loss`.")


class DryRunOut(serializers.Serializer[Any]):
    """The answer to a dry run: what the write would do. Nothing was changed."""

    dry_run = serializers.BooleanField()
    loss = LossOut()
    findings = FindingOut(many=True)


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
    loss = LossOut(required=False, help_text="Of XDS3013: what connected clients would lose.")
    broken = serializers.IntegerField(
        required=False, help_text="Of XDS3090: how many blocking route cases would break."
    )
    freeze = FrozenOut(required=False, help_text="Of XDS3030: the freeze that holds.")


class EditOut(serializers.Serializer[Any]):
    """A resource that was, or would be, created, updated or deleted."""

    type = serializers.CharField()
    name = serializers.CharField()
    action = serializers.ChoiceField(choices=["created", "updated", "deleted"])
    revision = serializers.IntegerField()
