"""Refuse functions with twenty ways through them or more (CONTRIBUTING.md): `complexity.py FOLDER...`.

Ruff's C901 counts statements that branch. What is read counts here: operators of conditions, conditional expressions
and comprehensions, too, and what a function defines within itself.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

WAYS_MAX = 19
GENERATED = {"migrations"}  # written by Django
_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.match_case)


def functions(source: str) -> Iterator[tuple[str, int, int]]:
    """Of each function its name, line and number of ways."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, 1 + sum(map(_more_ways, ast.walk(node)))


def _more_ways(node: ast.AST) -> int:
    match node:
        case ast.BoolOp(values=values):
            return len(values) - 1
        case ast.comprehension(ifs=conditions):
            return 1 + len(conditions)
        case _:
            return int(isinstance(node, _BRANCHES))


def main(folders: list[str]) -> int:
    """The exit status: 1 when a function is too complex."""
    modules = [file for folder in folders for file in Path(folder).rglob("*.py") if not GENERATED & set(file.parts)]
    found = [(file, *each) for file in sorted(modules) for each in functions(file.read_text(encoding="utf-8"))]
    complex_ones = [each for each in found if each[3] > WAYS_MAX]
    for file, name, line, ways in complex_ones:
        sys.stderr.write(f"{file}:{line}: {name} has {ways} ways through it; {WAYS_MAX} are allowed.\n")
    return 1 if complex_ones else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
