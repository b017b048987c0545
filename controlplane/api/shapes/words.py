"""What data planes say of themselves: as a collector sends it, and as it compares with what Parley believes."""

from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from controlplane.api.fields import Flag, StrictSerializer, Text
from controlplane.api.shapes.access import TypeField
from controlplane.clients.comparing import DifferenceKind
from xdscore.names import MAX_NAME_BYTES
from xdscore.resource_types import RESOURCE_TYPES
from xdscore.said import SaidSource, SaidState

_MAX_ERROR_CHARS: Final = 4_096
_MAX_VERSION_CHARS: Final = 64
_SOURCES: Final = [source.value for source in SaidSource]


class ForeignText(Text):
    """A field for any text that a data plane wrote. Characters that must not stand on a page or in a log are escaped
    before it is stored.
    """

    def to_internal_value(self, data: object) -> str:
        """The text, unchanged. Raises ValidationError for anything but a string."""
        if not isinstance(data, str):
            raise ValidationError("This must be a string.", code="wrong_type")
        return data


class SaidIn(StrictSerializer):
    """One name as the data plane reports it. A name may be reported twice, such as the content in use and the one that
    is warming.
    """

    type = TypeField()
    name = ForeignText(max_length=MAX_NAME_BYTES)
    state = serializers.ChoiceField(choices=[state.value for state in SaidState])
    held = Flag(help_text="Whether it has content under this name.")
    version = Text(
        required=False,
        allow_blank=True,
        default="",
        max_length=_MAX_VERSION_CHARS,
        help_text="The version Parley gives the content it shows: the first 16 hexadecimal digits of BLAKE2b-128 of "
        "its canonical Any. Empty where it shows none, or one with secrets.",
    )
    version_info = ForeignText(
        required=False, allow_blank=True, default="", max_length=256, help_text="The version in its own words."
    )
    endpoints = Text(
        required=False,
        allow_blank=True,
        default="",
        max_length=16,
        help_text="A digest of its hosts, where the content is put together anew; `none` without any.",
    )
    error = ForeignText(required=False, allow_blank=True, default="", max_length=_MAX_ERROR_CHARS)


class WordIn(StrictSerializer):
    """A report, sent by `xdsctl inspect --report`: the names, versions and errors that it read from one data plane. It
    has no content of resources.
    """

    source = serializers.ChoiceField(choices=_SOURCES)  # type: ignore[assignment]  # the metaclass takes fields out
    types = serializers.ListField(
        child=TypeField(),
        max_length=len(RESOURCE_TYPES),
        help_text="The types of which every name stands below: a name of these that does not is not there.",
    )
    names = serializers.ListField(child=SaidIn(), help_text="At most 5,000 (PARLEY_LIMIT_SAID_NAMES).")


class ReportOut(serializers.Serializer[Any]):
    """Whether a report agrees with what Parley believes that the client has."""

    at = serializers.DateTimeField()
    source = serializers.ChoiceField(choices=_SOURCES)  # type: ignore[assignment]  # the metaclass takes fields out
    by = serializers.CharField(help_text="Who brought it.")
    compared = serializers.IntegerField()
    agreeing = serializers.IntegerField()
    differing = serializers.IntegerField()
    by_presence = serializers.IntegerField(
        help_text="Of those that agree, how many could be compared by their presence only, as secrets."
    )
    unsure = serializers.IntegerField(
        help_text="Names that were not compared: of these Parley itself was not sure, for they had just moved or were "
        "not answered yet."
    )


class SaidDifferenceOut(serializers.Serializer[Any]):
    """A name on which the client's report and what Parley believes differ."""

    type = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=[kind.value for kind in DifferenceKind])
    sentence = serializers.CharField(help_text="How they differ, in words.")
    state = serializers.CharField(
        allow_blank=True, help_text="The state it says; empty where it does not have the name."
    )
    said_version = serializers.CharField(allow_blank=True)
    said_revision = serializers.IntegerField(allow_null=True)
    believed_version = serializers.CharField(allow_blank=True)
    believed_revision = serializers.IntegerField(allow_null=True)
    error = serializers.CharField(allow_blank=True, help_text="In its own words, redacted and cut.")
    since = serializers.DateTimeField(help_text="When the name was first seen to differ.")
    seen_at = serializers.DateTimeField(help_text="When it was last.")


class ClientWordOut(serializers.Serializer[Any]):
    """A client's newest report, compared with what Parley believes that the client has."""

    report = ReportOut(allow_null=True, help_text="The newest; null where none is kept.")
    differences = SaidDifferenceOut(many=True, help_text="By type and name, at most 200.")
    earlier = ReportOut(many=True, help_text="The reports before, newest first.")
