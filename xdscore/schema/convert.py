"""A JSON tree to a message, with everything that is wrong with it. The heart of parsing; called by `parse`.

The walk follows the descriptor and goes on after an error, so that one pass finds all of them; what could be read is in
the message afterwards. It encodes by itself rather than through `json_format`, because that serialises a nested `Any`
in an order that changes from run to run (reliability P6), edits the tree it reads, and stops at its first error.
`json_format` is the oracle of its tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import EncodeError

from xdscore.codes import Code
from xdscore.findings import Finding, Severity, has_errors
from xdscore.limits import Limits
from xdscore.schema.codes import (
    CONVERSION_FAILED,
    FIELD_UNKNOWN,
    GIVEN_TWICE,
    OPAQUE,
    SPELLED_FORM,
    SPELLED_LIST,
    SPELLED_MORE,
    SPELLED_NESTED,
    SPELLED_NULL,
    TOO_DEEP,
    TYPE_MISSING,
    TYPE_UNKNOWN,
    TYPE_URL_FORM,
    WRONG_TYPE,
)
from xdscore.schema.content_policy import DEFAULT_POLICY, ContentPolicy, Stance
from xdscore.schema.json_kinds import kind_of
from xdscore.schema.leniency import duration_respelled
from xdscore.schema.positions import Path, label_of
from xdscore.schema.scalars import RefusedError, Scalar, to_bytes, to_map_key, wrong_type
from xdscore.schema.shapes import (
    ANY,
    DURATION,
    SPECIAL,
    UNFLATTENED,
    VALUE,
    WITH_SHORT_FORM,
    WRAPPERS,
    FieldShape,
    shape_of,
)
from xdscore.schema.types_registry import class_of, descriptor_of, message_name, nearest, nearest_types
from xdscore.schema.walk import AnyMessage
from xdscore.schema.well_known import READERS, short_form

# A manifest with more errors than this is of another kind than its writer thinks; the rest is counted.
MAX_FINDINGS = 100
MAX_SPELLINGS = 50

_OBJECT_HINTS = {
    "envoy.config.core.v3.DataSource": "Write an object with inline_string, inline_bytes, filename or another source.",
    "envoy.config.core.v3.Address": 'Write {"socket_address": {"address": "…", "port_value": …}}.',
    "envoy.type.matcher.v3.StringMatcher": 'Write {"exact": "…"}, or prefix, suffix, contains or safe_regex.',
    "envoy.config.core.v3.ConfigSource": 'Write {"ads": {}, "resource_api_version": "V3"}.',
}


_DEFAULTS = Limits()


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Bounds on one resource (reliability.md (e)): its bytes, its ttl, and how deep messages and Anys may nest.
    protobuf itself reads at most 100 levels.
    """

    max_bytes: int = _DEFAULTS.resource_bytes
    max_message_depth: int = _DEFAULTS.message_depth
    max_any_depth: int = _DEFAULTS.any_depth
    min_ttl_ms: int = _DEFAULTS.ttl_min_ms
    max_ttl_ms: int = _DEFAULTS.ttl_max_s * 1000


@dataclass(frozen=True, slots=True)
class Depth:
    """How deep a walk through a message is: levels of messages below the innermost Any, and Anys around it."""

    messages: int = 1
    anys: int = 0


@dataclass(slots=True)
class Conversion:
    """One conversion of a JSON tree into a message.

    findings: what is wrong, in the order of the tree, each with its path.
    unshown: the number of findings beyond `MAX_FINDINGS`, which are only counted.
    policy: whether unknown fields and bytes of unknown types are errors, or notes for `content_policy.graded`.
    spellings: warnings about values that are not in their canonical form, each with its path; at most
      `MAX_SPELLINGS`, of `spelled` such values.
    blamed: paths that are missing in the message and already explained by a finding, e.g. the field that an unknown
      field was probably meant to be.
    """

    limits: ResourceLimits = ResourceLimits()
    policy: ContentPolicy = DEFAULT_POLICY
    findings: list[tuple[Path, Finding]] = field(default_factory=list)
    blamed: set[Path] = field(default_factory=set)
    unshown: int = 0
    spellings: list[tuple[Path, Finding]] = field(default_factory=list)
    spelled: int = 0

    def fill(
        self, message: AnyMessage, tree: Mapping[str, object], path: Path, depth: Depth, *, in_any: bool = False
    ) -> None:
        """Set every field of `message` that `tree` gives, and add findings where that is impossible. `in_any`: the key
        `@type` is no field.
        """
        fields = shape_of(message.DESCRIPTOR).fields
        given: dict[str, str] = {}
        for key, value in tree.items():
            if in_any and key == "@type":
                continue
            shape = fields.get(key)
            if shape is None:
                self._say_unknown(message.DESCRIPTOR, str(key), path)
                continue
            # A field may be written in two spellings, and a oneof has several members; their names never clash.
            other = given.setdefault(shape.name, key)
            if value is None and not shape.takes_null and other == key:
                continue
            if shape.choice and other == key:
                other = given.setdefault(shape.choice, key)
            if other != key:
                self.say(GIVEN_TWICE, (*path, key), field=key, other=other)
                continue
            self._field(message, shape, value, (*path, key), depth)

    def pack(self, message: AnyMessage, tree: Mapping[str, object], path: Path, depth: Depth) -> None:
        """Set the Any `message` from its JSON. The message inside is serialised with its maps in the order of their
        keys.
        """
        if not tree:
            return
        url = tree.get("@type")
        if self._opaque(message, tree, path):
            return
        descriptor = self._any_type(url, tree, path)
        if descriptor is None:
            return
        if depth.anys >= self.limits.max_any_depth:
            self.say(TOO_DEEP, path, what="Messages of google.protobuf.Any", limit=self.limits.max_any_depth)
            return
        inner: AnyMessage = class_of(descriptor)()
        inside = Depth(1, depth.anys + 1)
        if descriptor.full_name in SPECIAL:
            self._special_in_any(inner, tree, path, inside)
        else:
            self.fill(inner, tree, path, inside, in_any=True)
        try:
            message.value = inner.SerializeToString(deterministic=True)
        except EncodeError as error:
            self.say(CONVERSION_FAILED, path, problem=str(error).partition("\n")[0])
            return
        message.type_url = url

    @property
    def complete(self) -> bool:
        """Whether everything that the tree says is in the message, but for unknown fields that the policy takes."""
        return not self.unshown and not has_errors(tuple(finding for _, finding in self.findings))

    def say(self, code: Code, path: Path, *, hint: str = "", **values: object) -> None:
        """Add a finding of this code at `path`, with `values` put into its texts."""
        self._note(code, path, values, hint)

    def warnings(self, path: Path) -> list[tuple[Path, Finding]]:
        """What is to be said of spellings in what stands at `path`, the last of it how many more there are."""
        more = self.spelled - len(self.spellings)
        return [*self.spellings, (path, SPELLED_MORE.finding("", count=more))] if more else self.spellings

    def _warn(self, code: Code, path: Path, **values: object) -> None:
        self.spelled += 1
        if len(self.spellings) < MAX_SPELLINGS:
            self.spellings.append((path, code.filled({"field": label_of(path), **values})))

    def _note(self, code: Code, path: Path, values: Mapping[str, object], hint: str) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append((path, code.filled(values, hint=hint)))
        else:
            self.unshown += 1
        self.blamed.add(path)

    def _remark(self, code: Code, path: Path, *, hint: str = "", **values: object) -> None:
        """Add a note that is for the policy of the environment to grade. It explains nothing that is missing."""
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append((path, replace(code.filled(values, hint=hint), severity=Severity.NOTE)))

    def _opaque(self, message: AnyMessage, tree: Mapping[str, object], path: Path) -> bool:
        """Set the Any `message` to the bytes of a message of an unknown type, `{"@type": …, "value": "base64"}`, where
        the policy takes them; returns whether it is such an Any.
        """
        url = tree.get("@type")
        if self.policy.opaque is Stance.REFUSE or tree.keys() != {"@type", "value"} or not isinstance(url, str):
            return False
        if "/" not in url or descriptor_of(message_name(url)) is not None:
            return False
        try:
            message.value = to_bytes(tree["value"])
        except RefusedError as refused:
            self._say_refused(refused, (*path, "value"))
            return True
        message.type_url = url
        self._remark(OPAQUE, path, name=message_name(url))
        return True

    def _any_type(self, url: object, tree: Mapping[str, object], path: Path) -> Descriptor | None:
        if "@type" not in tree:
            self.say(TYPE_MISSING, path)
            return None
        place = (*path, "@type")
        if not isinstance(url, str):
            self.say(WRONG_TYPE, place, field="@type", wanted="a type URL", given=kind_of(url))
            return None
        descriptor = descriptor_of(message_name(url))
        if "/" not in url:
            self.say(TYPE_URL_FORM, place, hint=f"Write type.googleapis.com/{url}." if descriptor else "", name=url)
            return None
        if descriptor is None:
            close = nearest_types(url)
            self.say(
                TYPE_UNKNOWN, place, hint=f"Did you mean {' or '.join(close)}?" if close else "", name=message_name(url)
            )
        return descriptor

    def _special_in_any(self, message: AnyMessage, tree: Mapping[str, object], path: Path, depth: Depth) -> None:
        """Set the message inside an Any whose type has a JSON form of its own, such as Duration; that form stands under
        the key `value`.
        """
        for key in tree:
            if key not in ("@type", "value"):
                self._say_unknown(message.DESCRIPTOR, str(key), path)
        if "value" not in tree:
            self.say(
                WRONG_TYPE, path, hint='Write {"@type": …, "value": …}.', field="value", wanted="given", given="missing"
            )
            return
        place = (*path, "value")
        try:
            self._message(message, tree["value"], place, depth)
        except RefusedError as refused:
            self._say_refused(refused, place)

    def _field(self, message: AnyMessage, shape: FieldShape, value: object, path: Path, depth: Depth) -> None:
        try:
            if shape.is_map:
                self._map(getattr(message, shape.name), shape, value, path, depth)
            elif shape.repeated:
                self._list(getattr(message, shape.name), shape, value, path, depth)
            elif shape.convert is not None:
                setattr(message, shape.name, self._scalar(shape, value, path))
            else:
                child = getattr(message, shape.name)
                child.SetInParent()
                self._message(child, value, path, _deeper(depth, 1))
        except RefusedError as refused:
            self._say_refused(refused, path)

    def _scalar(self, shape: FieldShape, value: object, path: Path) -> Scalar:
        """The scalar of a field from its JSON, in its strict form or in one that means the same."""
        if shape.convert is None or shape.respell is None:
            raise AssertionError(shape.name)  # asked for scalars only
        try:
            return shape.convert(value)
        except RefusedError:
            meant = shape.respell(value)
            if meant is None:
                raise
            scalar = shape.convert(meant.value)
        self._warn(meant.code, path, canonical=meant.canonical)
        return scalar

    def _list(self, container: AnyMessage, shape: FieldShape, value: object, path: Path, depth: Depth) -> None:
        inside = _deeper(depth, 1)
        if isinstance(value, list):
            self._items(container, shape, value, path, inside)
            return
        if _is_plain_message(shape) and not isinstance(value, dict):
            raise wrong_type("a list", value)
        self._warn(SPELLED_LIST, path)
        self._item(container, shape, value, path, inside)

    def _items(self, container: AnyMessage, shape: FieldShape, items: list[object], path: Path, depth: Depth) -> None:
        flattened = shape.message is None or shape.message.full_name not in UNFLATTENED
        for index, item in enumerate(items):
            place = (*path, index)
            if flattened and isinstance(item, list):
                self._warn(SPELLED_NESTED, place)
                self._items(container, shape, item, place, depth)
                continue
            try:
                self._item(container, shape, item, place, depth)
            except RefusedError as refused:
                self._say_refused(refused, place)

    def _item(self, container: AnyMessage, shape: FieldShape, item: object, path: Path, depth: Depth) -> None:
        if shape.convert is not None:
            container.append(self._scalar(shape, item, path))
        elif item is None and shape.message is not None and shape.message.full_name != VALUE:
            container.add()
            self._warn(SPELLED_NULL, path)
        else:
            self._message(container.add(), item, path, depth)

    def _map(self, container: AnyMessage, shape: FieldShape, value: object, path: Path, depth: Depth) -> None:
        if not isinstance(value, dict):
            raise wrong_type("an object", value)
        if shape.map_key is None or shape.map_value is None:
            raise AssertionError(shape.name)  # a map has both
        inside = _deeper(depth, 2)
        for key, item in value.items():
            place = (*path, key)
            try:
                name = to_map_key(shape.map_key, key)
                if shape.map_value.convert is not None:
                    container[name] = self._scalar(shape.map_value, item, place)
                elif item is None and not shape.map_value.takes_null:
                    container[name].SetInParent()
                    self._warn(SPELLED_NULL, place)
                else:
                    self._message(container[name], item, place, inside)
            except RefusedError as refused:
                self._say_refused(refused, place)

    def _message(self, message: AnyMessage, value: object, path: Path, depth: Depth) -> None:
        """Set a message from its JSON: an object of fields, or the form that its type has for itself, such as
        Duration.
        """
        descriptor = message.DESCRIPTOR
        room = self.limits.max_message_depth - depth.messages
        if room < 0:
            raise RefusedError(TOO_DEEP, what="Messages")
        if descriptor.full_name in SPECIAL and descriptor.full_name != ANY:
            self._special(message, value, path, depth, room)
        elif not isinstance(value, dict):
            raise wrong_type("an object", value, _OBJECT_HINTS.get(descriptor.full_name, ""))
        elif descriptor.full_name == ANY:
            self.pack(message, value, path, depth)
        else:
            self.fill(message, value, path, depth)

    def _special(self, message: AnyMessage, value: object, path: Path, depth: Depth, room: int) -> None:
        """Set a message that has a JSON form of its own; from its fields, too, where Envoy takes those."""
        descriptor = message.DESCRIPTOR
        name = descriptor.full_name
        if isinstance(value, dict) and name in WITH_SHORT_FORM:
            self.fill(message, value, path, depth)
            message.SetInParent()
            self._warn(SPELLED_FORM, path, message=name, canonical=short_form(message))
        elif name in WRAPPERS:
            message.value = self._scalar(shape_of(descriptor).fields["value"], value, path)
            message.SetInParent()
        else:
            meant = duration_respelled(value) if name == DURATION else None
            READERS[name](message, meant.value if meant is not None else value, room)
            if meant is not None:
                self._warn(meant.code, path, canonical=meant.canonical)

    def _say_refused(self, refused: RefusedError, path: Path) -> None:
        values = {"field": label_of(path + refused.path), "limit": self.limits.max_message_depth, **refused.values}
        self._note(refused.code, path + refused.path, values, refused.hint)

    def _say_unknown(self, descriptor: Descriptor, key: str, path: Path) -> None:
        names = [field.name for field in descriptor.fields]
        close = nearest(key, names) if len(self.findings) < MAX_FINDINGS else []
        if self.policy.unknown_fields is not Stance.REFUSE:
            meant = f" Did you mean '{close[0]}'?" if close else ""
            hint = f"It is left out.{meant}"
            self._remark(FIELD_UNKNOWN, (*path, key), hint=hint, message=descriptor.full_name, field=key)
            return
        if close:
            hint = f"Did you mean '{close[0]}'?"
            self.blamed.update((*path, name) for name in close)
        elif names:
            more = len(names) - 12
            hint = f"Its fields are {', '.join(names[:12])}{f' and {more} more' if more > 0 else ''}."
        else:
            hint = "It has no fields."
        self.say(FIELD_UNKNOWN, (*path, key), hint=hint, message=descriptor.full_name, field=key)


def _is_plain_message(shape: FieldShape) -> bool:
    """Whether a field holds messages that are objects in JSON."""
    return shape.message is not None and (shape.message.full_name == ANY or shape.message.full_name not in SPECIAL)


def _deeper(depth: Depth, levels: int) -> Depth:
    return Depth(depth.messages + levels, depth.anys)
