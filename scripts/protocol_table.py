"""Hold docs/reference/protocol.md to the tree: every rule has a row, and what a row names exists.

A function is named by its dotted path, a test as `file.py::name`; both are looked up in the source.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

TABLE = Path("docs/reference/protocol.md")

# The rules by section; those with a letter were found later.
_COUNTS = {"A": 10, "B": 13, "C": 11, "D": 10, "E": 7, "F": 24, "G": 5, "H": 4, "I": 5, "J": 4, "K": 3, "L": 8}
_LATER = ("F11a", "F17a", "F18a", "I3a")
RULES = (*(f"{section}{number}" for section, count in _COUNTS.items() for number in range(1, count + 1)), *_LATER)

_ROW = re.compile(r"^\| (?P<rule>[A-L]\d+a?) \|[^|]+\|(?P<functions>[^|]*)\|(?P<tests>[^|]*)\|$", re.MULTILINE)
_QUOTED = re.compile(r"`([^`]+)`")


def main() -> int:
    """Print what is wrong with the table of rules; the exit status is 1 when anything is."""
    problems = sorted(problems_of(TABLE.read_text(encoding="utf-8"), Path()))
    for problem in problems:
        sys.stderr.write(f"{TABLE}: {problem}\n")
    return 1 if problems else 0


def problems_of(text: str, root: Path) -> Iterator[str]:
    """The problems with the table of rules in `text`, as sentences. `root`: the tree in which the named code and tests
    must be.
    """
    rows = {row["rule"]: row for row in _ROW.finditer(text)}
    yield from (f"Rule {rule} has no row." for rule in RULES if rule not in rows)
    for rule, row in rows.items():
        functions, tests = _QUOTED.findall(row["functions"]), _QUOTED.findall(row["tests"])
        if not functions:
            yield f"Rule {rule} names no function."
        if not tests:
            yield f"Rule {rule} names no test."
        yield from (f"Rule {rule}: there is no {name}." for name in functions if not is_code(root, name))
        yield from (f"Rule {rule}: there is no test {name}." for name in tests if not is_test(root, name))


def is_code(root: Path, dotted: str) -> bool:
    """Whether this dotted name is that of a module, class, function, method or constant in the tree."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        module = root.joinpath(*parts[:length])
        file = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
        if file.is_file():
            return _defines(file, parts[length:])
    return False


def is_test(root: Path, named: str) -> bool:
    """Whether there is a test in the tree for a name such as `file.py::name`."""
    path, _, name = named.partition("::")
    return path.endswith(".py") and bool(name) and (root / path).is_file() and _defines(root / path, [name])


def _defines(file: Path, names: list[str]) -> bool:
    body: list[ast.stmt] = ast.parse(file.read_text(encoding="utf-8")).body
    for name in names:
        found = next((node for node in body if name in _names(node)), None)
        if found is None:
            return False
        body = found.body if isinstance(found, ast.ClassDef) else []
    return True


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


if __name__ == "__main__":
    sys.exit(main())
