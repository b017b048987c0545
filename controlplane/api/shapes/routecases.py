"""Route cases: requests with the end that is expected of each, and the end that they have."""

from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from controlplane.api.fields import Flag, StrictSerializer, Text, Whole
from controlplane.api.shapes.common import FindingOut
from controlplane.api.shapes.routing import AskedIn
from controlplane.routecases.checks import MAX_FACT_CHARS, expect_problems, metadata_problem
from controlplane.routecases.services import Written
from controlplane.routecases.values import ANSWERS, MAX_CASES, NAME_CHARS, NOTE_CHARS, expected_from_json
from xdscore.routing.values import Answer

_ANSWERS: Final = [each.value for each in ANSWERS]
_MAX_CHARS: Final = 1_024
_MAX_LOCATION_CHARS: Final = 8_192
_MAX_CLUSTERS: Final = 100
_MAX_ID: Final = 2**63 - 1  # the largest that a database gives


class Percent(serializers.FloatField):
    """A field for numbers alone, and not for booleans or numbers in strings."""

    def to_internal_value(self, data: object) -> float:
        """The number, unchanged. Raises ValidationError for anything else."""
        if not isinstance(data, int | float) or isinstance(data, bool):
            raise ValidationError("This must be a number.", code="wrong_type")
        return float(data)


class ShareIn(StrictSerializer):
    """A cluster, and what share of requests it is expected to get."""

    cluster = Text(max_length=_MAX_CHARS)
    percent = Percent(min_value=0, max_value=100)


class ExpectIn(StrictSerializer):
    """The end that is expected of a request. What is absent may be anything."""

    answer = serializers.ChoiceField(choices=_ANSWERS, required=False, help_text="Absent: anything but `refused`.")
    cluster = Text(required=False, max_length=_MAX_CHARS, help_text="To which all such requests go.")
    weighted = serializers.ListField(
        child=ShareIn(), required=False, max_length=_MAX_CLUSTERS, help_text="All clusters, each with its share."
    )
    route = Text(required=False, max_length=_MAX_CHARS, help_text="The name of the route configuration.")
    virtual_host = Text(required=False, max_length=_MAX_CHARS)
    route_name = Text(required=False, max_length=_MAX_CHARS, help_text="Of the route in its virtual host.")
    status = Whole(required=False, min_value=100, max_value=599)
    location = Text(required=False, max_length=_MAX_LOCATION_CHARS, help_text="Where a redirect leads.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Check that the members can be together. Raises ValidationError with every problem."""
        if problems := expect_problems(expected_from_json(attrs)):
            raise ValidationError(dict(problems))
        return attrs


class CaseClientIn(StrictSerializer):
    """Facts about the client whose rights count. Without any, the case is judged whoever may read what."""

    identity = Text(required=False, max_length=MAX_FACT_CHARS, help_text="A verified SPIFFE ID or token subject.")
    node_id = Text(required=False, max_length=MAX_FACT_CHARS)
    node_cluster = Text(required=False, max_length=MAX_FACT_CHARS)
    metadata = serializers.DictField(child=Text(allow_blank=True, max_length=MAX_FACT_CHARS), required=False)

    def validate_metadata(self, value: dict[str, str]) -> dict[str, str]:
        """The metadata. Raises ValidationError for more keys than clients may send."""
        if problem := metadata_problem(value):
            raise ValidationError(problem)
        return value


class RouteCaseIn(AskedIn):
    """A route case: a request, and the end that is expected of it."""

    name = Text(max_length=NAME_CHARS, help_text="Stands for this case in its environment, and in what is refused.")
    client = CaseClientIn(required=False)
    expect = ExpectIn()
    blocking = Flag(required=False, default=True, help_text="A change that breaks it is refused.")
    note = Text(required=False, default="", allow_blank=True, max_length=NOTE_CHARS, help_text="Why it is kept.")


class CasesApplyIn(StrictSerializer):
    """Cases to keep together, all or none: each is created, or replaces the case with its name."""

    cases = serializers.ListField(child=RouteCaseIn(), max_length=MAX_CASES)


class CasesRunIn(StrictSerializer):
    """Cases to judge by what is written now: the kept ones with these ids, or those that are given; without both, all
    that are kept.
    """

    ids = serializers.ListField(child=Whole(min_value=1, max_value=_MAX_ID), required=False, max_length=MAX_CASES)
    cases = serializers.ListField(child=RouteCaseIn(), required=False, max_length=MAX_CASES)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Check that one of both is given at most. Raises ValidationError."""
        if "ids" in attrs and "cases" in attrs:
            raise ValidationError({"cases": "Give 'ids' or 'cases', not both."})
        return attrs


class ShareOut(serializers.Serializer[Any]):
    """A cluster, and what share of requests like this it gets, in percent."""

    cluster = serializers.CharField()
    percent = serializers.FloatField()


class ExpectOut(serializers.Serializer[Any]):
    """The end that is expected; what is absent may be anything."""

    answer = serializers.ChoiceField(choices=_ANSWERS, required=False)
    cluster = serializers.CharField(required=False)
    weighted = ShareOut(many=True, required=False)
    route = serializers.CharField(required=False)
    virtual_host = serializers.CharField(required=False)
    route_name = serializers.CharField(required=False)
    status = serializers.IntegerField(required=False)
    location = serializers.CharField(required=False)


class EndOut(serializers.Serializer[Any]):
    """The end that a request has. Members are null where the way ended before."""

    answer = serializers.ChoiceField(choices=[each.value for each in Answer])
    listener = serializers.CharField(allow_null=True)
    route = serializers.CharField(allow_null=True)
    virtual_host = serializers.CharField(allow_null=True)
    route_name = serializers.CharField(allow_null=True)
    weighted = ShareOut(many=True, help_text="The clusters that it goes to, one or more.")
    status = serializers.IntegerField(allow_null=True)
    location = serializers.CharField(allow_null=True)
    text = serializers.CharField(help_text="As the end of a sentence that begins with the request.")


class RouteCaseOut(serializers.Serializer[Any]):
    """A route case, and how it stands by what is written now."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    scheme = serializers.CharField()
    method = serializers.CharField()
    authority = serializers.CharField()
    path = serializers.CharField()
    headers = serializers.DictField(child=serializers.CharField())
    listener = serializers.CharField(allow_blank=True)
    client = serializers.DictField(required=False)
    expect = ExpectOut()
    blocking = serializers.BooleanField()
    note = serializers.CharField(allow_blank=True)
    revision = serializers.IntegerField(help_text="Counts its writes; the ETag.")
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    author = serializers.CharField(help_text="Who wrote it last.")
    updated_at = serializers.DateTimeField()
    holds = serializers.BooleanField()
    since = serializers.UUIDField(
        allow_null=True, help_text="The change by which it came to hold, or to fail; null: since it was written."
    )
    end = EndOut()


class CaseRunOut(serializers.Serializer[Any]):
    """What judging a case found."""

    id = serializers.IntegerField(allow_null=True, help_text="Null: it is not kept.")
    name = serializers.CharField()
    holds = serializers.BooleanField()
    end = EndOut()


class CasesRunOut(serializers.Serializer[Any]):
    """What judging several cases found, in order."""

    results = CaseRunOut(many=True)
    fails = serializers.IntegerField(help_text="How many do not hold.")


class CaseAppliedOut(serializers.Serializer[Any]):
    """What became of one case, and the end that it has."""

    name = serializers.CharField()
    written = serializers.ChoiceField(choices=[each.value for each in Written if each is not Written.DELETED])
    holds = serializers.BooleanField()
    end = EndOut()


class CasesAppliedOut(serializers.Serializer[Any]):
    """What became of several cases that were kept together, in order."""

    dry_run = serializers.BooleanField()
    results = CaseAppliedOut(many=True)
    fails = serializers.IntegerField(help_text="How many do not hold.")
    findings = FindingOut(many=True, help_text="Of an import: what of the tests no case can say.")
