"""Comments, and the words in them that lead to tickets."""

from typing import Any, Final

from rest_framework import serializers

from controlplane.api.fields import Paragraphs, StrictSerializer, Text
from controlplane.discussion.linking import MAX_PREFIX_CHARS, MAX_URL_CHARS
from controlplane.discussion.values import MAX_TEXT_CHARS, About

_MAX_RESOURCE: Final = 1_100
_MENTIONS: Final = (
    "Plain text of one or more lines. `@` and a login tells that person, if they may see what it is about."
)


class CommentOut(serializers.Serializer[Any]):
    """A comment on a change, an incident or a resource."""

    id = serializers.UUIDField()
    about = serializers.ChoiceField(choices=[each.value for each in About])
    environment = serializers.CharField()
    subject = serializers.CharField(help_text="The id of the change or incident; of a resource `TYPE/NAME`.")
    author = serializers.CharField()
    author_id = serializers.CharField(help_text="The id of the person or token that wrote it.")
    text = serializers.CharField()
    at = serializers.DateTimeField()
    edited_at = serializers.DateTimeField(allow_null=True, help_text="Null where it is as it was written.")


class NewCommentIn(StrictSerializer):
    """A comment to add: what it is about, which is one of the three, and its text."""

    change = serializers.UUIDField(required=False, help_text="The id of a change.")
    incident = serializers.UUIDField(required=False, help_text="The id of an incident.")
    environment = Text(required=False, max_length=63, help_text="With `resource`: where it is.")
    resource = Text(required=False, max_length=_MAX_RESOURCE, help_text="`TYPE/NAME`, such as `cluster/pay`.")
    text = Paragraphs(max_length=MAX_TEXT_CHARS, help_text=_MENTIONS)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The fields, unchanged. Raises ValidationError unless exactly one subject is there."""
        if len({"change", "incident", "resource"} & attrs.keys()) != 1:
            raise serializers.ValidationError("Say what it is about: `change`, `incident`, or `resource`; one of them.")
        if ("resource" in attrs) != ("environment" in attrs):
            raise serializers.ValidationError("A `resource` is of an `environment`: give both, or neither.")
        return attrs


class CommentTextIn(StrictSerializer):
    """The new text of a comment."""

    text = Paragraphs(max_length=MAX_TEXT_CHARS, help_text=_MENTIONS)


class TicketLinkOut(serializers.Serializer[Any]):
    """Words that lead to the tickets of a tracker."""

    id = serializers.IntegerField()
    form = serializers.CharField(help_text="What a text has: `PAY-{number}`.")
    url = serializers.CharField(help_text="Where it leads, with `{number}` in place of the ticket's number.")
    environment = serializers.CharField(allow_null=True, help_text="Null where it holds in all.")


class TicketLinkIn(StrictSerializer):
    """Words that are to lead to the tickets of a tracker."""

    form = Text(
        max_length=MAX_PREFIX_CHARS + 20, help_text="Some signs and then `{number}`: `PAY-{number}`, `#{number}`."
    )
    url = Text(max_length=MAX_URL_CHARS, help_text="An address with https and `{number}` once, behind the host.")
    environment = Text(required=False, allow_null=True, max_length=63, help_text="Null, or left out: in all.")
