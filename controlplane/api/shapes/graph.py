"""The graph: resources, and who refers to whom."""

from typing import Any

from rest_framework import serializers

from controlplane.graph.model import NodeState, Sight


class GraphNodeOut(serializers.Serializer[Any]):
    """A resource in the graph, or a name that something refers to."""

    type = serializers.CharField()
    name = serializers.CharField()
    state = serializers.ChoiceField(
        choices=[each.value for each in NodeState],
        help_text="The resource's status, or `missing` (no such resource), `elsewhere` (another control plane has it, "
        "by the authority in its name), `unused` (published; no resource refers to it and no client asks for it).",
    )
    revision = serializers.IntegerField(allow_null=True, help_text="Of the newest revision; null: no such resource.")
    asked_by = serializers.IntegerField(help_text="How many connected clients ask for it.")
    uses = serializers.IntegerField(help_text="To how many names it refers, in this graph or not.")
    used_by = serializers.IntegerField(help_text="How many resources refer to it, in this graph or not.")
    more = serializers.IntegerField(help_text="How many of these references lead out of this graph.")
    sight = serializers.ChoiceField(
        choices=[each.value for each in Sight],
        allow_null=True,
        help_text="With `client`: what that client gets for the name.",
    )


class GraphEndOut(serializers.Serializer[Any]):
    """A node, by its type and name."""

    type = serializers.CharField()
    name = serializers.CharField()


class GraphEdgeOut(serializers.Serializer[Any]):
    """A reference: the resource `source` refers to `target`."""

    source = GraphEndOut()  # type: ignore[assignment]  # the metaclass takes fields out of the class
    target = GraphEndOut()
    pointer = serializers.CharField(help_text="The JSON Pointer of the field, in the source's manifest, that names it.")


class GraphOut(serializers.Serializer[Any]):
    """The resources of an environment, or a part of it, and the references between them."""

    environment = serializers.CharField()
    nodes = GraphNodeOut(many=True, help_text="By type and name.")
    edges = GraphEdgeOut(many=True, help_text="By source and target.")
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="How many nodes, by state.")
    left_out = serializers.IntegerField(help_text="How many nodes belong to it beyond `limit`.")
    more_left_out = serializers.BooleanField(help_text="Whether `left_out` is only the least number.")
