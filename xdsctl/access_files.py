"""Access rules and client groups from files, as a change set takes them; and findings of the server led back to the
line of a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from xdscore.lazily import Lazily
from xdsctl.api import remark_of
from xdsctl.exits import CommandError, JsonObject, Remark, UsageError
from xdsctl.files import STDIN, STDIN_NAME, Manifests, document_of_file

if TYPE_CHECKING:
    from xdscore.schema import Tree
    from xdscore.schema import positions as places
else:
    places = Lazily("xdscore.schema.positions")

# What only the server sets of a rule or group: 'get -o yaml' prints it, too.
_TOLD: Final = frozenset({"change", "findings", "history"})
_TOLD_OF_GROUPS: Final = _TOLD | {"rules", "id"}


@dataclass(frozen=True, slots=True)
class _Item:
    """One rule or group, and where it stands in the file that it was read from."""

    tree: JsonObject
    file: str
    positions: places.Positions
    path: places.Path

    def remark(self, finding: JsonObject, rest: str) -> Remark:
        line, column = self.positions.at(self.path + places.path_of(rest, self.tree))
        return replace(remark_of(finding), file=self.file, line=line, column=column)


@dataclass(frozen=True, slots=True)
class AccessFiles:
    """The rules and groups in the files that a command was given, in the order in which they are sent."""

    rules: tuple[_Item, ...] = ()
    groups: tuple[_Item, ...] = ()

    @property
    def body(self) -> JsonObject:
        """What a request's body has of them: only the members of which files were given."""
        given = {"rules": self.rules, "groups": self.groups}
        return {member: [each.tree for each in items] for member, items in given.items() if items}

    def located(self, error: CommandError, manifests: Manifests) -> CommandError:
        """A copy of the error in which each finding has its place in one of the files; `manifests`: the others."""
        found = manifests.located(error)
        raw: Any = (error.document or {}).get("errors", ())
        remarks = [self._placed(finding) or remark for finding, remark in zip(raw, found.remarks, strict=True)]
        return CommandError(
            found.exit_status,
            found.text,
            more=error.more,
            remarks=remarks,
            document=found.document,
            asked=found.asked,
        )

    def _placed(self, finding: JsonObject) -> Remark | None:
        parts = finding.get("pointer", "").split("/", 3)
        items = {"rules": self.rules, "groups": self.groups}.get(parts[1], ()) if len(parts) > 2 else ()
        if not items or not parts[2].isdecimal() or int(parts[2]) >= len(items):
            return None
        return items[int(parts[2])].remark(finding, f"/{parts[3]}" if len(parts) > 3 else "")


def access_files_read(rules: Iterable[str], groups: Iterable[str]) -> AccessFiles:
    """The rules and groups in these files, each of which holds one, or a list of them. Raises CommandError with every
    problem of a file's text, and UsageError.
    """
    return AccessFiles(tuple(_items(rules, _TOLD)), tuple(_items(groups, _TOLD_OF_GROUPS)))


def _items(paths: Iterable[str], told: frozenset[str]) -> Iterable[_Item]:
    for file in paths:
        document = document_of_file(file)
        name = STDIN_NAME if file == STDIN else file
        in_list = isinstance(document.tree, list)
        trees: list[Tree] = document.tree if isinstance(document.tree, list) else [document.tree]
        for index, tree in enumerate(trees):
            if not isinstance(tree, dict):
                raise UsageError(f"'{file}' must hold one object, or a list of objects, as 'get -o yaml' prints them.")
            kept = {key: value for key, value in tree.items() if key not in told}
            yield _Item(kept, name, document.positions, (index,) if in_list else ())
