"""A form of the common fields of manifests, over their text: what it shows of a text, and what it changes there. Pure.

The text is the truth. A field that nobody touched changes nothing; one whose value somebody changed in the text
meanwhile is left alone and says so.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from zlib import crc32

from controlplane.console.form_fields import Common, Holds, Section, sections_of
from xdscore.findings import Finding
from xdscore.resource_types import ResourceType, by_url
from xdscore.schema import Media, manifests_of, read_text
from xdscore.schema.positions import Path, PathPart, pointer_of
from xdscore.schema.text import Tree
from xdscore.schema.text_edit import NotEditableError, value_at, value_put, value_removed
from xdscore.schema.wrapper import open_wrapper

MAX_CHARS: Final = 60_000
"""A longer text has no form: nobody fills in a thousand rows."""
MAX_FIELDS: Final = 200
MAX_CHANGES: Final = 40
_WHOLE: Final = re.compile(r"0|[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class Field:
    """A field as it is shown. `name`: that of its input; `findings`: what is wrong with its value; `problem`: why what
    was written into it did not come into the text, with `typed`, which is what was written.
    """

    common: Common
    name: str
    value: str
    pointer: str
    findings: tuple[Finding, ...] = ()
    problem: str = ""
    typed: str = ""

    @property
    def id(self) -> str:
        """The id of the input on its page."""
        return "field" + self.name.replace("/", "-")

    @property
    def shown(self) -> str:
        """What stands in the input."""
        return self.typed if self.problem else self.value


@dataclass(frozen=True, slots=True)
class Part:
    """A section as it is shown. `removes`, `adds`: the values of its buttons; empty without one."""

    title: str
    fields: tuple[Field, ...]
    removes: str = ""
    adds: str = ""
    added: str = ""


@dataclass(frozen=True, slots=True)
class ManifestForm:
    """The form of one manifest of a text."""

    kind: ResourceType
    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Filled:
    """What somebody filled in: the values of inputs, those that the same inputs had before, and the button of a row
    that was pressed, if any.
    """

    values: Mapping[str, str]
    before: Mapping[str, str]
    row: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """The text with what was filled in, and why the rest is not in it, by the names of inputs; under the empty name,
    what is about none of them.
    """

    text: str
    problems: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _At:
    """A manifest in a text: the number of its document, the path in that, and the same path in findings."""

    document: int
    path: Path
    found_at: Path
    kind: ResourceType
    tree: dict[str, Tree]

    def path_of(self, path: Path) -> Path:
        return self.path + _spelled(self.tree, path)

    def name_of(self, path: Path) -> str:
        return pointer_of((self.document, *self.path, *path))


def forms_of(
    text: str, *, findings: Sequence[Finding] = (), filled: Filled | None = None, applied: Applied | None = None
) -> tuple[ManifestForm, ...]:
    """The forms of the manifests in a text for which there is one; none where it cannot be read, or is too long.

    `findings`: about this text. `filled`, `applied`: what was filled in before, and what came of it.
    """
    forms: list[ManifestForm] = []
    count = 0
    problems = applied.problems if applied is not None else {}
    typed = filled.values if filled is not None else {}
    for at in _manifests(text):
        parts = tuple(_part(at, section) for section in sections_of(at.kind, at.tree))
        count += sum(len(part.fields) for part in parts)
        if count > MAX_FIELDS:
            return ()
        said = tuple(
            replace(part, fields=tuple(_said(each, findings, problems, typed) for each in part.fields))
            for part in parts
        )
        if parts:
            forms.append(ManifestForm(at.kind, str(at.tree.get(at.kind.name_field, "")), said))
    return tuple(forms)


def fields_apply(text: str, filled: Filled) -> Applied:
    """The text with the values that were changed in the form, and with the row that was added or removed."""
    applied = Applied(text)
    fields = dict(_fields(text))
    changed = {name: value for name, value in filled.values.items() if value != filled.before.get(name, "")}
    if len(changed) > MAX_CHANGES:
        return Applied(text, {"": f"The form takes {MAX_CHANGES} changes at once; nothing was changed."})
    row = _row_of(text, filled.row)
    if isinstance(row, str):
        return Applied(text, {"": row})
    # What is emptied last: a mapping that loses one member and gets another is never empty between.
    for name, value in sorted(changed.items(), key=lambda each: not each[1]):
        known = fields.get(name)
        if known is None:
            applied.problems[""] = "A field of the form is not in the text any more; nothing was changed for it."
            continue
        try:
            applied = replace(applied, text=_changed(applied.text, *known, value, filled.before.get(name, "")))
        except NotEditableError as error:
            applied.problems[name] = str(error)
    if row is not None:
        at, path, content = row
        try:
            applied = replace(applied, text=_rowed(applied.text, at.document, at.path_of(path), content))
        except NotEditableError as error:
            applied.problems[""] = str(error)
    return applied


def _manifests(text: str) -> Iterator[_At]:
    if len(text) > MAX_CHARS:
        return
    media = Media.JSON if text.lstrip()[:1] in ("{", "[") else Media.YAML
    read = read_text(text.encode("utf-8", "replace"), media)
    several = len(read.documents) > 1
    for document in read.documents:
        for manifest in manifests_of(document)[0]:
            envelope = open_wrapper(manifest.tree)
            kind = by_url.get(str(envelope.tree.get("@type")))
            path = manifest.path + envelope.path
            if kind is not None:
                found_at = (document.number, *path) if several else path
                yield _At(document.number, path, found_at, kind, envelope.tree)


def _spelled(tree: Tree, path: Path) -> Path:
    """The path as this tree spells it: JSON has a second name for each field, such as `connectTimeout`."""
    spelled: list[PathPart] = []
    for part in path:
        other = _camel(part) if isinstance(part, str) else part
        is_other = isinstance(tree, dict) and part not in tree and other in tree
        spelled.append(other if is_other else part)
        tree = value_at(tree, (spelled[-1],))
    return tuple(spelled)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _words(value: Tree) -> str | None:
    """How a value is shown in an input; None where no input can show it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if value.isprintable() else None
    if isinstance(value, int | float):
        return str(value)
    texts = [each for each in value if isinstance(each, str)]
    if isinstance(value, list) and len(texts) == len(value) and not any("," in each for each in texts):
        return ", ".join(texts)
    return None


def _part(at: _At, section: Section) -> Part:
    fields = []
    for common in section.fields:
        path = _spelled(at.tree, common.path)
        value = _words(value_at(at.tree, path))
        if value is not None:
            fields.append(Field(common, at.name_of(common.path), value, pointer_of(at.found_at + path)))
    removes = f"-{_print(at, section.removes)}{at.name_of(section.removes)}" if section.removes is not None else ""
    if section.adds is None:
        return Part(section.title, tuple(fields), removes)
    called, path, _content = section.adds
    return Part(section.title, tuple(fields), removes, f"+{_print(at, path[:-1])}{at.name_of(path)}", called)


def _print(at: _At, path: Path) -> str:
    """What a row, or the list that gets one, held when the form was shown: another row is never removed instead."""
    held = json.dumps(value_at(at.tree, _spelled(at.tree, path)))
    return f"{crc32(held.encode()):08x}"


def _said(each: Field, findings: Sequence[Finding], problems: Mapping[str, str], typed: Mapping[str, str]) -> Field:
    found = tuple(
        finding
        for finding in findings
        if finding.pointer == each.pointer or (each.value and finding.pointer.startswith(each.pointer + "/"))
    )
    return replace(each, findings=found, problem=problems.get(each.name, ""), typed=typed.get(each.name, ""))


def _fields(text: str) -> Iterator[tuple[str, tuple[_At, Common]]]:
    for at in _manifests(text):
        for section in sections_of(at.kind, at.tree):
            for common in section.fields:
                yield at.name_of(common.path), (at, common)


def _changed(text: str, at: _At, common: Common, value: str, before: str) -> str:
    now = next((each for each in _manifests(text) if (each.document, each.path) == (at.document, at.path)), at)
    path = _spelled(now.tree, common.path)
    held = value_at(now.tree, path)
    if _words(value_at(at.tree, _spelled(at.tree, common.path))) != before:
        raise NotEditableError("The text says something else here by now; what you wrote here was not taken over.")
    if not value:
        return text if held is None else value_removed(text, at.document, at.path + path)
    for needed, content in common.needs if common.if_value in ("", value) else ():
        spelled = _spelled(now.tree, needed)
        if value_at(now.tree, spelled) is None:
            text = value_put(text, at.document, at.path + spelled, content)
    if common.holds is Holds.LIST:
        return _listed(text, at.document, at.path + path, held if isinstance(held, list) else [], value)
    number = int(value) if common.holds is Holds.NUMBER and _WHOLE.fullmatch(value) else value
    return value_put(text, at.document, at.path + path, number)


def _listed(text: str, document: int, path: Path, held: list[Tree], value: str) -> str:
    """The text with these items in a list, each changed by itself, so that comments beside the others stay."""
    wanted = [each for each in map(str.strip, value.split(",")) if each]
    for place, item in enumerate(wanted):
        if place >= len(held) or held[place] != item:
            text = value_put(text, document, (*path, place), item)
    for place in range(len(held) - 1, len(wanted) - 1, -1):
        text = value_removed(text, document, (*path, place))
    return text


def _row_of(text: str, row: str) -> tuple[_At, Path, Tree] | str | None:
    """The manifest, the path and the content (None: it is removed) of the row for which a button stands; None for no
    button, a sentence where what it stood for is not there any more.
    """
    if not row:
        return None
    for at in _manifests(text):
        for section in sections_of(at.kind, at.tree):
            part = _part(at, section)
            if section.removes is not None and part.removes == row:
                return at, section.removes, None
            if section.adds is not None and part.adds == row:
                return at, section.adds[1], section.adds[2]
    return "The text has other rows by now; nothing was changed. Try it once more."


def _rowed(text: str, document: int, path: Path, content: Tree) -> str:
    if content is None:
        return value_removed(text, document, path)
    return value_put(text, document, path, content)
