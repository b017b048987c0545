"""Runs the routing core over plain manifests, as a client that has all of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from google.protobuf import json_format

from xdscore.resource_types import by_url
from xdscore.routing.tracing import traced
from xdscore.routing.values import Given, Key, Request, Traced
from xdscore.schema.types_registry import new_message, schema
from xdscore.schema.walk import AnyMessage

Manifest = Mapping[str, Any]
NONE = Given(None, "no such resource was published.")


def held(*manifests: Manifest) -> dict[Key, Given]:
    """What a client has that holds these manifests."""
    found: dict[Key, Given] = {}
    for manifest in manifests:
        kind = by_url[manifest["@type"]]
        fields = {name: value for name, value in manifest.items() if name != "@type"}
        message = json_format.ParseDict(fields, new_message(kind.message), descriptor_pool=schema().pool)
        found[kind.word, getattr(message, kind.name_field)] = Given(message)
    return found


def message_of(manifest: Manifest) -> AnyMessage:
    """The message that a manifest says."""
    (found,) = held(manifest).values()
    return found.message


def answer(request: Request, has: Mapping[Key, Given], listener: str = "") -> Traced:
    """Where the request goes for who has this."""
    names = sorted(name for word, name in has if word == "listener")
    walk = traced(request, listener=listener, listeners=names)
    wanted: Sequence[Key] = next(walk)
    while True:
        try:
            wanted = walk.send({key: has.get(key, NONE) for key in wanted})
        except StopIteration as end:
            found: Traced = end.value
            return found


def losers(found: Traced) -> Iterable[str]:
    """The last field name in the place of each candidate that lost, for what decided."""
    for rung in found.rungs:
        for lost in rung.lost:
            yield from (part for part in lost.place.path if isinstance(part, str))
