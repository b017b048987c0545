"""What a search finds, as the API answers it."""

from typing import Any

from rest_framework import serializers

from controlplane.search.values import Kind

KINDS = [kind.value for kind in Kind]


class HitOut(serializers.Serializer[Any]):
    """One thing that was found."""

    kind = serializers.ChoiceField(choices=KINDS)
    id = serializers.CharField(
        help_text="By which it is addressed: an id, a key, the number of a snapshot; of a resource its name."
    )
    environment = serializers.CharField(allow_null=True, help_text="Null where it is of none.")
    type = serializers.CharField(
        allow_blank=True,
        help_text="The type's word of a resource or an incident; of a comment, what it is about: `change`, `incident` "
        "or a type's word. Else empty.",
    )
    name = serializers.CharField(help_text="What it is called.")
    text = serializers.CharField(allow_blank=True, help_text="What else tells it apart; others may have written it.")
    state = serializers.CharField(allow_blank=True, help_text="Of an incident, a change set or a rollout; else empty.")
    at = serializers.DateTimeField(allow_null=True, help_text="When it was made, or was seen last.")
    pointer = serializers.CharField(
        allow_blank=True,
        help_text="Of a resource that was found by its content: where in its manifest a word stands. Else empty.",
    )
    excerpt = serializers.CharField(allow_blank=True, help_text="The value that stands there, cut.")
    about = serializers.CharField(allow_blank=True, help_text="Of a comment: the id or name of what it is about.")


class UnsearchedOut(serializers.Serializer[Any]):
    """How many resources' contents were not looked into."""

    older = serializers.IntegerField(help_text="Written before those that were.")
    sealed = serializers.IntegerField(help_text="They hold secrets.")


class SearchOut(serializers.Serializer[Any]):
    """What was found, the best of each kind first."""

    results = HitOut(many=True)
    more = serializers.ListField(
        child=serializers.ChoiceField(choices=KINDS), help_text="Kinds of which there is more than is listed."
    )
    unsearched = UnsearchedOut(allow_null=True, help_text="Null where no content was to be searched.")
