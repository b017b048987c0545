"""What the API itself says about fields beyond their rules: deprecated, refused by default, work in progress.

The same annotations by which Envoy warns (`deprecated`, `envoy.annotations.disallowed_by_default`,
`xds.annotations.v3` status). A field is said where it stands; a whole message or file is said where the message stands.
"""

from collections.abc import Iterator
from typing import Any

from envoy.annotations import deprecation_pb2
from google.protobuf.descriptor import Descriptor, EnumValueDescriptor, FieldDescriptor
from xds.annotations.v3 import status_pb2

from xdscore.findings import Finding
from xdscore.schema.codes import DEPRECATED, DISALLOWED, HIDDEN
from xdscore.schema.positions import Path
from xdscore.schema.types_registry import kept
from xdscore.schema.walk import AnyMessage

# Files of xds/ are all marked as work in progress, those that every client has read for years as well.
_MARKED_FILES = "envoy/"


def notices_of(message: AnyMessage, path: Path) -> Iterator[tuple[Path, Finding]]:
    """Findings that `message`, or a field set in it, is deprecated, refused by default or work in progress; not about
    the messages inside it.
    """
    descriptor = message.DESCRIPTOR
    yield from ((path, finding) for finding in _of_type(descriptor))
    said, watched = _of_fields(descriptor)
    if not said and not watched:
        return
    for field, value in message.ListFields():
        place = (*path, field.name)
        yield from ((place, finding) for finding in said.get(field.number, ()))
        if field.number in watched:
            numbers = enumerate(value) if field.is_repeated else ((None, value),)
            for index, number in numbers:
                finding = watched[field.number].get(number)
                if finding is not None:
                    yield place if index is None else (*place, index), finding


@kept
def _of_type(descriptor: Descriptor) -> tuple[Finding, ...]:
    options, name = descriptor.GetOptions(), descriptor.full_name
    found = []
    if options.deprecated:
        found.append(DEPRECATED.finding("", field=descriptor.name, message=descriptor.file.package, since=""))
    hidden = options.Extensions[status_pb2.message_status].work_in_progress
    file_options = descriptor.file.GetOptions()
    if hidden or (
        descriptor.file.name.startswith(_MARKED_FILES)
        and descriptor.containing_type is None
        and file_options.Extensions[status_pb2.file_status].work_in_progress
    ):
        found.append(HIDDEN.finding("", field=name))
    return tuple(found)


_Fields = tuple[dict[int, tuple[Finding, ...]], dict[int, dict[int, Finding]]]


@kept
def _of_fields(descriptor: Descriptor) -> _Fields:
    """The notices about the fields of a message by field number, and those about enum values by field number and
    value.
    """
    said: dict[int, tuple[Finding, ...]] = {}
    watched: dict[int, dict[int, Finding]] = {}
    for field in descriptor.fields:
        found = tuple(_of_field(field))
        if found:
            said[field.number] = found
        if field.enum_type is not None:
            values = {value.number: _of_value(value, field) for value in field.enum_type.values}
            marked = {number: finding for number, finding in values.items() if finding is not None}
            if marked:
                watched[field.number] = marked
    return said, watched


def _of_field(field: FieldDescriptor) -> Iterator[Finding]:
    options: Any = field.GetOptions()
    disallowed = options.Extensions[deprecation_pb2.disallowed_by_default]
    if options.deprecated or disallowed:
        code = DISALLOWED if disallowed else DEPRECATED
        message = field.containing_type.full_name if field.containing_type is not None else ""
        since = options.Extensions[deprecation_pb2.deprecated_at_minor_version]
        yield code.finding("", field=field.name, message=message, since=_since(since))
    if options.Extensions[status_pb2.field_status].work_in_progress:
        yield HIDDEN.finding("", field=field.name)


def _of_value(value: EnumValueDescriptor, field: FieldDescriptor) -> Finding | None:
    options: Any = value.GetOptions()
    disallowed = options.Extensions[deprecation_pb2.disallowed_by_default_enum]
    if not options.deprecated and not disallowed:
        return None
    since = options.Extensions[deprecation_pb2.deprecated_at_minor_version_enum]
    code = DISALLOWED if disallowed else DEPRECATED
    return code.finding("", field=value.name, message=field.full_name, since=_since(since))


def _since(version: str) -> str:
    return f" since version {version} of the API" if version else ""
