"""Manifests from files, folders and standard input; and findings of the server led back to the line of a file.

Read by `xdscore.schema`, so a file is understood here exactly as the server would understand it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from xdscore.findings import Finding
from xdscore.lazily import Lazily
from xdsctl.api import remark_of
from xdsctl.exits import CommandError, Exit, JsonObject, Remark, UsageError

if TYPE_CHECKING:
    from xdscore import schema
    from xdscore.schema import leniency
    from xdscore.schema import positions as places
    from xdscore.schema.text import Document
else:
    schema = Lazily("xdscore.schema")
    leniency, places = Lazily("xdscore.schema.leniency"), Lazily("xdscore.schema.positions")

StrictForm = Annotated[bool, typer.Option("--strict", help="Refuse what is not in its canonical form.")]

STDIN: Final = "-"
STDIN_NAME: Final = "<stdin>"
_JSON: Final = ".json"
_SUFFIXES: Final = (".yaml", ".yml", _JSON)


@dataclass(frozen=True, slots=True)
class Item:
    """One manifest and the file that it was read from."""

    file: str
    manifest: schema.Manifest


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests in the files that a command was given, in the order in which they are sent. `notes`: findings that
    do not stop it.
    """

    items: tuple[Item, ...]
    notes: tuple[Remark, ...] = ()

    @property
    def trees(self) -> list[dict[str, schema.Tree]]:
        """The manifests as the `resources` of a request's body."""
        return [item.manifest.tree for item in self.items]

    def remark(self, finding: JsonObject) -> Remark:
        """The remark for a finding whose pointer is `/resources/N/…` in a request's body made of `trees`, with its
        place in the file of that manifest.
        """
        remark = remark_of(finding)
        parts = finding.get("pointer", "").split("/", 3)
        if len(parts) < 3 or parts[1] != "resources" or not parts[2].isdecimal() or int(parts[2]) >= len(self.items):
            return remark
        item = self.items[int(parts[2])]
        rest = f"/{parts[3]}" if len(parts) > 3 else ""
        manifest = item.manifest
        inside = manifest.path + places.path_of(rest, manifest.tree)
        line, column = manifest.positions.at(inside[manifest.skip :])
        return replace(remark, file=item.file, line=line, column=column)

    def spellings(self, findings: Iterable[JsonObject]) -> list[Remark]:
        """The remarks for those of the findings about a request's body made of `trees` that are about how the files are
        written.
        """
        return [self.remark(each) for each in findings if each["code"] in leniency.SPELLINGS]

    def located(self, error: CommandError) -> CommandError:
        """A copy of the error in which each finding has its place in one of the files."""
        found: Sequence[Any] = (error.document or {}).get("errors", ())
        remarks = [self.remark(each) for each in found]
        return CommandError(error.exit_status, error.text, remarks=remarks, document=error.document, asked=error.asked)


def manifests_read(paths: Iterable[str], *, strict: bool = False) -> Manifests:
    """Every manifest of these files and folders. Raises UsageError, with every problem, when one cannot be read, or,
    where `strict`, is not in its canonical form as a whole.
    """
    items: list[Item] = []
    remarks: list[Remark] = []
    notes: list[Remark] = []
    for name, media, body in _bodies(paths):
        manifests, findings = schema.read_manifests(body, media)
        items += [Item(name, manifest) for manifest in manifests]
        # Without a manifest the findings say why; with some they are only worth knowing.
        (notes if manifests else remarks).extend(remark_in(name, finding) for finding in findings)
        said = [each.located(finding, ()) for each in manifests for finding in each.notes]
        if strict:
            remarks.extend(remark_in(name, finding) for finding in leniency.strictly(said))
        else:
            notes.extend(remark_in(name, finding) for finding in said)
    if remarks:
        raise CommandError(Exit.NO, _count(len(remarks), "problem") + " in what was read.", remarks=remarks)
    return Manifests(tuple(items), tuple(notes))


@dataclass(frozen=True, slots=True)
class Draft:
    """One document that is no manifest, such as an access rule, and the file it was read from; `file` is empty when it
    comes from no file.
    """

    tree: JsonObject
    file: str = ""
    positions: places.Positions | None = None

    def located(self, error: CommandError) -> CommandError:
        """A copy of an error about a request with this draft as its body, in which each finding has its place: the line
        in the file, or the member's name without a file.
        """
        remarks = []
        for each in (error.document or {}).get("errors", ()):
            remark, pointer = remark_of(each), each.get("pointer", "")
            line, column = self.positions.at(places.path_of(pointer, self.tree)) if self.positions else (0, 0)
            placed = replace(remark, file=self.file, line=line, column=column)
            remarks.append(placed if self.file else replace(remark, resource=remark.resource or pointer.lstrip("/")))
        return CommandError(
            error.exit_status,
            error.text,
            more=error.more,
            remarks=remarks,
            document=error.document,
            asked=error.asked,
        )


def draft_read(path: str) -> Draft:
    """The only document in a file, which must be an object, as a draft. Raises CommandError with every problem of its
    text.
    """
    document = document_of_file(path)
    if not isinstance(document.tree, dict):
        raise UsageError(f"'{path}' must hold one object, with members such as those that 'get -o yaml' prints.")
    return Draft(document.tree, STDIN_NAME if path == STDIN else path, document.positions)


def document_read(path: str) -> schema.Tree:
    """The only document of a file. Raises CommandError with every problem of its text."""
    return document_of_file(path).tree


def document_of_file(path: str) -> Document:
    """The only document of a file, with its positions. Raises CommandError with every problem of its text."""
    for name, media, body in _bodies([path]):
        read = schema.read_text(body, media)
        if read.findings:
            remarks = [remark_in(name, finding) for finding in read.findings]
            raise CommandError(Exit.NO, f"'{name}' cannot be read.", remarks=remarks)
        if len(read.documents) == 1:
            return read.documents[0]
    raise UsageError(f"'{path}' must be one file with one document.")


def remark_in(file: str, finding: Finding) -> Remark:
    """The remark for a finding of `xdscore` about a file."""
    about = f"{finding.resource_type}/{finding.resource_name}" if finding.resource_type else ""
    return Remark(
        finding.code, finding.severity.value, finding.detail, finding.hint, about, file, finding.line, finding.column
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _bodies(paths: Iterable[str]) -> Iterable[tuple[str, schema.Media, bytes]]:
    for path in paths:
        if path == STDIN:
            # JSON is YAML too, and what comes through a pipe has no name to tell.
            yield STDIN_NAME, schema.Media.YAML, sys.stdin.buffer.read()
        else:
            for file in _files(Path(path)):
                media = schema.Media.JSON if file.suffix.lower() == _JSON else schema.Media.YAML
                yield str(file), media, _content(file)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob("*") if each.suffix.lower() in _SUFFIXES and each.is_file())
    if not found:
        raise UsageError(f"'{path}' holds no file that ends in {', '.join(_SUFFIXES)}.")
    return found


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"'{file}' cannot be read: {error.strerror}.") from error
