"""Field rules: every violation of the `validate.rules` options in a message, through nested Anys, all at once.

Envoy checks the same options and stops at the first. A plan per message type is compiled once from its descriptor; a
walk then looks only at what is set, and at absences that a plan knows to be wrong (dependencies.md fact 1). Called by
`parse`; pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from validate import validate_pb2

from xdscore.findings import Finding
from xdscore.schema.codes import CHOICE_REQUIRED, REQUIRED
from xdscore.schema.positions import Path, label_of
from xdscore.schema.rule_checks import Check, Complaint, list_checks, regex_check, scalar_checks
from xdscore.schema.shapes import ANY, SPECIAL, WRAPPERS, choice_of
from xdscore.schema.types_registry import kept
from xdscore.schema.walk import AnyMessage, unpack

# Fields whose text is an RE2 expression that the proxy compiles.
_EXPRESSIONS = frozenset({"envoy.type.matcher.v3.RegexMatcher.regex", "xds.type.matcher.v3.RegexMatcher.regex"})
# Absences that nobody minds in the message inside a field. API listeners are gRPC's, which keeps no statistics by that
# name; stock Envoy takes none of them.
_NOT_DEMANDED = {"envoy.config.listener.v3.ApiListener.api_listener": frozenset({"stat_prefix"})}


@dataclass(frozen=True, slots=True, eq=False)
class _FieldPlan:
    """The checks of one field when it is set: of its value (or the list or map as a whole), of its items and of its
    keys.

    wraps: whether the value is a wrapper such as UInt32Value, inside which the checked value is.
    holds: the full name of the message type inside; empty for scalars.
    skip: whether messages in the field are left unchecked.
    lacks: fields that the message inside may lack, whatever its type says.
    """

    name: str
    checks: tuple[Check, ...]
    item_checks: tuple[Check, ...]
    key_checks: tuple[Check, ...]
    is_map: bool
    repeated: bool
    wraps: bool
    holds: str  # full name of the message inside, empty for scalars
    skip: bool
    lacks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """The checks of a message type.

    required: fields that must be set.
    absent: the complaints about fields of which proto3 does not say whether they are set, when they are not.
    choices: oneofs of which a member must be set.
    """

    fields: dict[int, _FieldPlan]
    required: tuple[str, ...]
    absent: tuple[tuple[str, int, Complaint], ...]
    choices: tuple[tuple[str, str], ...]


def violations_of(
    message: AnyMessage, path: Path = (), lacks: frozenset[str] = frozenset()
) -> Iterator[tuple[Path, Finding]]:
    """Every violated field rule in `message`, as its path (in the API's field names) and a finding. In the path, fields
    inside an Any follow the Any's own directly. `lacks`: fields that the message may lack, whatever its type says.
    """
    plan = _plan_of(message.DESCRIPTOR)
    for choice, names in plan.choices:
        if message.WhichOneof(choice) is None:
            yield path, CHOICE_REQUIRED.finding("", choices=names)
    for name in plan.required:
        if not message.HasField(name):
            yield (*path, name), REQUIRED.finding("", field=name)
    present = message.ListFields()
    if plan.absent:
        numbers = {field.number for field, _ in present}
        for name, number, complaint in plan.absent:
            if number not in numbers and name not in lacks:
                yield (*path, name), _finding(complaint, name)
    for field, value in present:
        yield from _field(plan.fields[field.number], value, path)


def _field(plan: _FieldPlan, value: Any, path: Path) -> Iterator[tuple[Path, Finding]]:
    place = (*path, plan.name)
    if plan.checks:
        checked = value.value if plan.wraps else value
        yield from _complaints(plan.checks, checked, place)
    if plan.is_map:
        # The order of a map in memory changes from run to run; findings must not (reliability P6).
        for key in sorted(value):
            yield from _complaints(plan.key_checks, key, (*place, str(key)))
            yield from _item(plan, value[key], (*place, str(key)))
    elif plan.repeated:
        if plan.item_checks or plan.holds:
            for index, item in enumerate(value):
                yield from _item(plan, item, (*place, index))
    elif plan.holds:
        yield from _inside(plan, value, place)


def _item(plan: _FieldPlan, value: Any, path: Path) -> Iterator[tuple[Path, Finding]]:
    if plan.item_checks:
        yield from _complaints(plan.item_checks, value.value if plan.wraps else value, path)
    if plan.holds:
        yield from _inside(plan, value, path)


def _inside(plan: _FieldPlan, value: Any, path: Path) -> Iterator[tuple[Path, Finding]]:
    if plan.skip:
        return
    if plan.holds == ANY:
        yield from _any_inside(value, path, plan.lacks)
    elif plan.holds not in SPECIAL:
        yield from violations_of(value, path)


def _any_inside(packed: AnyMessage, path: Path, lacks: frozenset[str]) -> Iterator[tuple[Path, Finding]]:
    inner = unpack(packed)
    if inner is None:
        return
    if inner.DESCRIPTOR.full_name == ANY:
        yield from _any_inside(inner, (*path, "value"), lacks)
    elif inner.DESCRIPTOR.full_name not in SPECIAL:
        yield from violations_of(inner, path, lacks)


def _complaints(checks: tuple[Check, ...], value: Any, path: Path) -> Iterator[tuple[Path, Finding]]:
    for check in checks:
        complaint = check(value)
        if complaint is not None:
            yield path, _finding(complaint, label_of(path))


def _finding(complaint: Complaint, name: str) -> Finding:
    code, values = complaint
    return code.filled({"field": name, **values})


@kept
def _plan_of(descriptor: Descriptor) -> _Plan:
    required: list[str] = []
    absent: list[tuple[str, int, Complaint]] = []
    fields: dict[int, _FieldPlan] = {}
    for field in descriptor.fields:
        rules = field.GetOptions().Extensions[validate_pb2.rules]
        kind = rules.WhichOneof("type") or ""
        plan = _field_plan(field, kind, rules)
        fields[field.number] = plan
        if field.has_presence:
            # A member of a oneof is required only once its case is chosen, and then it is there.
            if choice_of(field) is None and _is_required(rules, kind):
                required.append(field.name)
        else:
            empty: object = () if field.is_repeated else field.default_value
            complaints = (check(empty) for check in plan.checks)
            absent.extend((field.name, field.number, complaint) for complaint in complaints if complaint is not None)
    choices = tuple(
        (choice.name, ", ".join(member.name for member in choice.fields))
        for choice in descriptor.oneofs
        if choice.GetOptions().Extensions[validate_pb2.required]
    )
    return _Plan(fields, tuple(required), tuple(absent), choices)


def _is_required(rules: Any, kind: str) -> bool:
    return bool(rules.message.required or (kind in ("any", "duration", "timestamp") and getattr(rules, kind).required))


def _field_plan(field: FieldDescriptor, kind: str, rules: Any) -> _FieldPlan:
    message = field.message_type
    is_map = field.is_repeated and message is not None and message.GetOptions().map_entry
    inside = message.fields_by_name["value"] if is_map and message is not None else field
    holds = inside.message_type.full_name if inside.message_type is not None else ""
    checks: list[Check] = []
    item_checks: list[Check] = []
    key_checks: list[Check] = []
    skip = bool(rules.message.skip)
    if kind == "repeated":
        checks = list_checks(rules.repeated, "item")
        item_checks, skip = _nested_checks(field, rules.repeated.items)
    elif kind == "map" and message is not None:
        checks = list_checks(rules.map, "entry")
        key_checks, _ = _nested_checks(message.fields_by_name["key"], rules.map.keys)
        item_checks, skip = _nested_checks(inside, rules.map.values)
    elif kind:
        checks = scalar_checks(field, kind, getattr(rules, kind))
    if field.full_name in _EXPRESSIONS:
        checks.append(regex_check)
    return _FieldPlan(
        name=field.name,
        checks=tuple(checks),
        item_checks=tuple(item_checks),
        key_checks=tuple(key_checks),
        is_map=is_map,
        repeated=field.is_repeated,
        wraps=holds in WRAPPERS,
        holds=holds,
        skip=skip,
        lacks=_NOT_DEMANDED.get(field.full_name, frozenset()),
    )


def _nested_checks(field: FieldDescriptor, rules: Any) -> tuple[list[Check], bool]:
    kind = rules.WhichOneof("type") or ""
    checks = scalar_checks(field, kind, getattr(rules, kind)) if kind else []
    return checks, bool(rules.message.skip)
