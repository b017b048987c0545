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


class StepOut(serializers.Serializer[Any]):
    """How many clients had taken a change at a time."""

    second = serializers.FloatField(help_text="Seconds after the change was published.")
    clients = serializers.IntegerField(help_text="How many clients had taken all of it by then.")


class ConvergenceOut(serializers.Serializer[Any]):
    """How fast a change came to the clients that were connected when it was published."""

    known = serializers.BooleanField(
        help_text="false: it is not published, or what clients had at that time is not kept any more."
    )
    took = serializers.IntegerField(help_text="How many clients took all of it that is for them.")
    of = serializers.IntegerField(help_text="How many should.")
    waiting = serializers.IntegerField(help_text="How many have not; they may have refused it.")
    p50_s = serializers.FloatField(
        allow_null=True, help_text="After how many seconds half of those that should had it; null: not yet."
    )
    p99_s = serializers.FloatField(allow_null=True, help_text="The same of 99 % of them.")
    last_s = serializers.FloatField(
        allow_null=True, help_text="After how many seconds the last of those that took it did; null: nobody did."
    )
    steps = StepOut(many=True, help_text="In growing order, at most some 360.")
