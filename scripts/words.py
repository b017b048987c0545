"""Hold texts for people to the glossary: no word of its column "never" stands in them.

Texts for people are pages, documents, the catalogue of codes, alerts and dashboards; in Python, sentences (constants
with a blank in them), and docstrings where they become help or API descriptions. Code, paths and quoted identifiers are
none. `words.py` prints a line for each word that is found.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

GLOSSARY: Final = Path("docs/glossary.md")

_PYTHON: Final = ("controlplane", "adsserver", "xdsclient", "xdscore", "xdsctl")
# Docstrings here are help of commands, or descriptions in the API's schema.
_READ_BY_PEOPLE: Final = ("xdsctl/commands", "controlplane/api")
_TEXTS: Final = ("templates/**/*.html", "docs/**/*.md", "deploy/**/*.yml", "deploy/**/*.json", "deploy/**/*.md")
_SINGLE: Final = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "xdscore/codes.toml")
# What other software says, by its own words.
_FOREIGN: Final = frozenset({"docs/glossary.md", "docs/reference/nack-texts.md"})
_SKIPPED: Final = frozenset({"migrations", "nacktext"})

# Fixed word for word by texts.md section 8, for the texts that clients are sent; and what is said of other things.
_ALLOWED: Final = re.compile(r"rejected by clients|is held (?:back|against|up)", re.IGNORECASE)
_ROW: Final = re.compile(r"^\| \*\*(?P<word>[^|]+)\*\* \|[^|]*\| (?P<never>[^|]*)\|$", re.MULTILINE)
_NO_TEXT: Final = re.compile(
    r"```.*?```|`[^`]*`|\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<(?:pre|code|script|style)\b.*?</(?:pre|code|script|style)>"
    r"|\b(?:id|class|name|href|src|for|value|action|data-[\w-]+)=\"[^\"]*\"|\]\([^)]*\)",
    re.DOTALL,
)
_NO_WORD: Final = re.compile(r"\S*(?:[/_]|\w\.\w)\S*")


def banned(glossary: str) -> dict[str, str]:
    """The banned words, in small letters, each with the word to use in its place."""
    rows = _ROW.finditer(glossary)
    return {word.lower(): row["word"] for row in rows for word in re.findall(r"`([^`]+)`", row["never"])}


def found_in(text: str, words: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Each banned word in a text, with the number of its line, beginning with 1. What is no prose is passed over."""
    prose = _ALLOWED.sub(_blank, _NO_WORD.sub(_blank, _NO_TEXT.sub(_blank, text)))
    pattern = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    for match in re.finditer(rf"(?<![\w-])(?:{pattern})(?![\w-])", prose, re.IGNORECASE):
        yield prose.count("\n", 0, match.start()) + 1, match[0]


def sentences_of(source: str, *, docstrings: bool) -> Iterator[tuple[int, str]]:
    """What people may read of a Python module: constants with a blank in them, by line; its docstrings if they do."""
    tree = ast.parse(source)
    told = {id(each) for each in _docstrings(tree)}
    for node in ast.walk(tree):
        told_here = docstrings or id(node) not in told
        if told_here and isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def problems() -> Iterator[str]:
    """A line for each banned word in this checkout."""
    words = banned(GLOSSARY.read_text(encoding="utf-8"))
    files = [*map(Path, _SINGLE), *(file for pattern in _TEXTS for file in sorted(Path().glob(pattern)))]
    for file in files:
        if file.as_posix() not in _FOREIGN:
            for line, word in found_in(file.read_text(encoding="utf-8"), words):
                yield f"{file}:{line}: '{word}'; the word is '{words[word.lower()]}' ({GLOSSARY})."
    for file in (file for folder in _PYTHON for file in sorted(Path(folder).rglob("*.py"))):
        if _SKIPPED.isdisjoint(file.parts):
            read = file.as_posix().startswith(_READ_BY_PEOPLE)
            for start, sentence in sentences_of(file.read_text(encoding="utf-8"), docstrings=read):
                for line, word in found_in(sentence, words):
                    yield f"{file}:{start + line - 1}: '{word}'; the word is '{words[word.lower()]}' ({GLOSSARY})."


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def _blank(match: re.Match[str]) -> str:
    """A blank and the line breaks of the text that it replaces, so that what follows keeps its line."""
    return " " + "\n" * match[0].count("\n")


def main() -> int:
    """Print a line for each banned word in this checkout; the exit status is 1 when one is found."""
    lines = list(problems())
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
