"""Series: what happened over time."""

from typing import Any

from rest_framework import serializers

from controlplane.history.values import What


class OneSeriesOut(serializers.Serializer[Any]):
    """One series: what it is of, and a number for each step."""

    label = serializers.CharField(  # type: ignore[assignment]  # the metaclass takes fields out of the class
        help_text="A state of clients, a type, a kind of client or a code; `other` is all that is not told apart."
    )
    values = serializers.ListField(
        child=serializers.FloatField(allow_null=True), help_text="One for each step; null: nobody knows."
    )


class SeriesOut(serializers.Serializer[Any]):
    """What happened in an environment, in steps of equal length."""

    what = serializers.ChoiceField(choices=[what.value for what in What])
    by = serializers.ChoiceField(choices=["state", "type", "kind", "code"])
    since = serializers.DateTimeField(help_text="When the first step begins.")
    until = serializers.DateTimeField(help_text="When the last step ends.")
    step_s = serializers.IntegerField(help_text="The length of each step in seconds.")
    points = serializers.IntegerField(help_text="How many steps there are.")
    series = OneSeriesOut(many=True)
