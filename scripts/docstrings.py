"""Hold docstrings to plain English: one that points elsewhere, or leaves its subject out, is no docstring.

A reader of a docstring sees the member's name, its signature and this text, not the lines around it. Which sentences do
not work then is a matter of judgement; `FORMS` has those that never work and can be told by how they begin or how short
they are. `docstrings.py PATH...` reads modules and folders and prints a line for each docstring of such a form.
"""

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_GENERATED: Final = {"migrations"}  # written by Django
_SHOWN_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class Form:
    """A form of docstring that nobody understands: the pattern of its text, what is wrong with it, what to write."""

    pattern: re.Pattern[str]
    wrong: str
    instead: str


def _form(pattern: str, wrong: str, instead: str) -> Form:
    return Form(re.compile(pattern, re.DOTALL), wrong, instead)


_NAME_IT: Final = "name the thing: 'Whether the stream is open.', 'The oldest request.'"

# In this order; the first that matches is told.
FORMS: Final = (
    _form(
        r"(?:See|Cf\.?) ",
        "points elsewhere",
        "say in one sentence what this one does; an override that does just what its base says needs no docstring",
    ),
    _form(
        r"(?:The same|Same|Ditto|Likewise|As (?:above|before|below))\b|As `[^`]+`",
        "points at its neighbour, which may move away",
        "say in one sentence what this one does, and what is different",
    ),
    _form(
        r"(?:It|Its|It's|They|Their|Them|He|She|These|Those)\b",
        "begins with a word for something that was named before, and nothing was",
        _NAME_IT,
    ),
    _form(
        r"(?:What|Who|Whom|Whose|Whether|Where|When|How|Why) "
        r"(?:it|its|they|(?:these|those) (?:are|were|have|had|may|do))\b",
        "asks about something that was not named",
        _NAME_IT,
    ),
    _form(
        r"(?:All|Any|Both|Each|Many|Most|None|One|Some)(?: more)? of (?:(?:it|them)\b|(?:these|those)(?=[.,;:]))",
        "counts things that were not named",
        _NAME_IT,
    ),
    _form(
        r"\w+ (?:it|them|these|those|this|that)(?: \w+)?[.;,:]?$",
        "does something to what was not named",
        "name the object: 'Keep these contents in addition to those here.'",
    ),
    _form(
        r"Of [^,;:.]*(?:[;:.]|$)",
        "says of whom it is, and not what",
        "begin with the thing: 'The budget of one caller.'",
    ),
    _form(
        r"Nothing[,.;:]",
        "says what it is not",
        "say what happens instead, or why nothing does: 'No metrics: this collector has none of its own.'",
    ),
    _form(
        r"(?:\S+\s+)?\S+$",
        "has fewer than three words",
        "write a sentence: subject, verb, what is returned and in which unit; or leave it out when the name says all",
    ),
)


def riddles(source: str) -> Iterator[tuple[int, str, str, Form]]:
    """The docstrings of a module that have one of the forms: line, member's name (empty: the module), text, form."""
    for name, node in _members(ast.parse(source), ""):
        text = ast.get_docstring(node)
        form = next((each for each in FORMS if each.pattern.match(text)), None) if text else None
        if text and form:
            yield node.body[0].lineno, name, text, form


def modules(paths: Sequence[Path]) -> Iterator[Path]:
    """The modules at these paths and in these folders, without generated ones, in the order of their names."""
    for path in paths:
        found = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        yield from (file for file in found if not _GENERATED & set(file.parts))


def main(paths: Sequence[str]) -> int:
    """Print a line for each docstring that has one of the forms; the exit status is 1 when there is any."""
    status = 0
    for file in modules([Path(path) for path in paths]):
        for line, name, text, form in riddles(file.read_text(encoding="utf-8")):
            start = " ".join(text[:_SHOWN_CHARS].split())
            member = name or "the module"
            sys.stderr.write(f'{file}:{line}: {member}: "{start}" {form.wrong}. Instead: {form.instead}.\n')
            status = 1
    return status


_Member = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _members(node: ast.AST, name: str) -> Iterator[tuple[str, _Member]]:
    if isinstance(node, _Member):
        yield name, node
    for child in ast.iter_child_nodes(node):
        own = getattr(child, "name", "") if isinstance(child, _Member) else ""
        yield from _members(child, f"{name}.{own}".strip(".") if own else name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
