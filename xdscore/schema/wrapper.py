"""The Resource wrapper: an xDS name that differs from the message's own, and a ttl (interfaces.md 3).

Only what Parley keeps is accepted. The wrapper is opened here by hand, so that the resource inside is read like any
other and its findings point to where it stands.
"""

from dataclasses import dataclass, field

from xdscore.findings import Finding
from xdscore.resource_types import TYPE_URL_PREFIX, ResourceType
from xdscore.schema.codes import (
    FIELD_UNKNOWN,
    IGNORED_FIELD,
    TTL_NOT_FOR_ALL,
    TTL_RANGE,
    TTL_REFUSED,
    TYPE_MISSING,
    VALUE_REFUSED,
    WRAPPER_FIELD,
    WRONG_TYPE,
)
from xdscore.schema.containers import WRAPPER
from xdscore.schema.json_kinds import kind_of
from xdscore.schema.positions import Path
from xdscore.schema.scalars import RefusedError
from xdscore.schema.text import Tree
from xdscore.schema.well_known import duration_of
from xdscore.snapshot import ttl_text

WRAPPER_URL = TYPE_URL_PREFIX + WRAPPER
_NOT_SERVED = ("is not served", "Remove it.")
_REFUSED = {
    "aliases": ("is not served in this release", "Publish the resource under each of its names."),
    **dict.fromkeys(("cache_control", "cacheControl", "metadata", "resource_name", "resourceName"), _NOT_SERVED),
}


@dataclass(slots=True)
class Envelope:
    """A manifest taken out of its Resource wrapper: the resource's tree, its path in the manifest, the wrapper's name
    and ttl (empty and 0 without one), and findings about the wrapper.
    """

    tree: dict[str, Tree]
    path: Path = ()
    name: str = ""
    ttl_ms: int = 0
    found: list[tuple[Path, Finding]] = field(default_factory=list)

    @property
    def wrapped(self) -> bool:
        """Whether the manifest had a Resource wrapper."""
        return self.path != ()


def open_wrapper(tree: dict[str, Tree]) -> Envelope:
    """The resource of a manifest, taken out of its Resource wrapper if it has one. When the wrapper holds no resource,
    the tree is empty and there is a finding.
    """
    if tree.get("@type") != WRAPPER_URL:
        return Envelope(tree)
    envelope = Envelope({}, ("resource",))
    for key, value in tree.items():
        if key != "@type" and value is not None:
            _field(envelope, key, value)
    if tree.get("resource") is None:
        hint = 'Add "resource": {"@type": …}.'
        found = WRONG_TYPE.finding("", hint=hint, field="resource", wanted="given", given="missing")
        envelope.found.append((("resource",), found))
    return envelope


def _field(envelope: Envelope, key: str, value: Tree) -> None:
    match key:
        case "name":
            _name(envelope, value)
        case "ttl":
            _ttl(envelope, value)
        case "resource":
            _resource(envelope, value)
        case "version":
            reason = "Parley derives versions from content"
            envelope.found.append(((key,), IGNORED_FIELD.finding("", field=key, reason=reason)))
        case _ if key in _REFUSED:
            problem, remedy = _REFUSED[key]
            if value != []:
                envelope.found.append(((key,), WRAPPER_FIELD.finding("", field=key, problem=problem, remedy=remedy)))
        case _:
            hint = "Its fields are name, ttl and resource."
            envelope.found.append(((key,), FIELD_UNKNOWN.finding("", hint=hint, message=WRAPPER, field=key)))


def _name(envelope: Envelope, value: Tree) -> None:
    if isinstance(value, str):
        envelope.name = value
    else:
        envelope.found.append(
            (("name",), WRONG_TYPE.finding("", field="name", wanted="a string", given=kind_of(value)))
        )


def _ttl(envelope: Envelope, value: Tree) -> None:
    try:
        envelope.ttl_ms = _milliseconds(value)
    except RefusedError as refused:
        envelope.found.append((("ttl",), refused.code.filled({"field": "ttl", **refused.values}, hint=refused.hint)))
        return


def ttl_finding(kind: ResourceType, ttl_ms: int, least_ms: int, most_ms: int) -> Finding:
    """What is to be said of a ttl of a resource of this type: that it is refused, or who is told of it."""
    if kind.no_ttl:
        return TTL_REFUSED.finding("", title=kind.title, reason=kind.no_ttl)
    if not least_ms <= ttl_ms <= most_ms:
        given, least, most = map(ttl_text, (ttl_ms, least_ms, most_ms))
        return TTL_RANGE.finding("", given=given, least=least, most=most)
    besides = ", and in SotW where they say that they read it" if kind.full_state else ""
    return TTL_NOT_FOR_ALL.finding("", besides=besides, title=kind.title)


def _milliseconds(value: Tree) -> int:
    seconds, nanos = duration_of(value)
    milliseconds = seconds * 1000 + nanos // 1_000_000
    if milliseconds <= 0:
        raise RefusedError(VALUE_REFUSED, 'Write it as "30s".', problem="must be at least one millisecond")
    return milliseconds


def _resource(envelope: Envelope, value: Tree) -> None:
    if not isinstance(value, dict):
        found = WRONG_TYPE.finding("", field="resource", wanted="an object with '@type'", given=kind_of(value))
        envelope.found.append((("resource",), found))
    elif "@type" not in value:
        envelope.found.append((("resource",), TYPE_MISSING.finding("")))
    else:
        envelope.tree = value
