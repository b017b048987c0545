"""Hold citations to the documents: what code, tests, docs and templates cite exists, and rules name code or tests.

A citation is a document and what is meant in it: `decisions D6`, `texts.md 9.4`, `texts.md section 4, "Conventions"`,
`reliability (e)`, `threats 2 and 3`, `law 4`; a list goes on with the same document, and `N1 to N8` is a list of two. A
bare id, `C4`, is one of the documents in `_BARE`. Bare ids are read in comments, docstrings, messages of assertions and
the calls in `CITING_CALLS`; elsewhere only in round brackets. docs/design/README.md says how entries look.

`citations.py` prints a line for each problem, `citations.py --counts` how many there are by document.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts.protocol_table import is_code, is_test

DESIGN: Final = Path("docs/design")

# Where the entries of each document are. A document that is cited by another word is in `_ALIASES`.
SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "law": ("docs/design/README.md",),
    "decisions": ("docs/design/decisions.md",),
    "reliability": ("docs/design/invariants.md", "docs/reliability.md"),
    "threat": ("docs/reference/threats.md",),
    "protocol": ("docs/design/protocol.md", "docs/reference/protocol.md"),
    "clients": ("docs/design/clients.md",),
    "texts": ("docs/design/texts.md",),
    "interfaces": ("docs/design/interfaces.md",),
    "dependencies": ("docs/design/dependencies.md",),
    "performance": ("docs/design/performance.md", "docs/performance.md"),
    "architecture": ("docs/architecture.md",),
    "rollouts": ("docs/design/rollouts.md",),
    "truth": ("docs/design/truth.md",),
}
_ALIASES: Final = {"invariants": "reliability", "threats": "threat"}
# Whose ids may be cited without the document; the first that has one is meant.
_BARE: Final = ("protocol", "reliability", "decisions")

FOLDERS: Final = (
    *("adsserver", "bench", "controlplane", "deploy", "docs", "scripts", "static", "templates", "tests"),
    *("xdsclient", "xdscore", "xdsctl"),
)
_SUFFIXES: Final = {".py", ".md", ".html", ".txt", ".js", ".css", ".toml", ".yaml", ".yml", ".sh", ".cfg", ".ini"}
_SUFFIXES_OF_NONE: Final = {"", ".in"}
_SKIPPED: Final = {"vendor", "node_modules", "__pycache__", "golden", "corpus"}

# Calls one of whose arguments is a list of citations, and which one.
CITING_CALLS: Final = {"_limit": -1, "Violated": 0}

# gRFCs are cited by their number, too; the smallest that anybody cites is A27.
_ID = r"(?:A(?:10|[1-9])|[B-KNPSTU]\d{1,2})[a-z]?(?![\w-])"
_WORD = r"(?P<word>[Ll]aws?|[Tt]hreats?|parts?|sections?|facts?|findings?|decisions?|rules?)"
_DOCUMENT = re.compile(
    r"(?<![\w/.-])(?:(?:docs/)?(?:design/|reference/)?(?P<file>[a-z]+)\.md\b(?!#)|(?P<name>[Rr]eliability|decisions)(?=\s))"
)
_NAMED_IN_CODE = re.compile(r"`(?:decisions|reliability|laws?|threats?|[a-z]+\.md) ")
_PATH = re.compile(r"(?<![\w/.-])[\w./-]+\.md\b")
_KIND = re.compile(rf"(?<![\w-]){_WORD}\s+(?=[\d(])")
_BARE_ID = re.compile(rf"(?<![\w$.%&#/+-]){_ID}")
_BRACKETED = re.compile(rf"\((?:{_ID}(?:, |\)))+")
# Of a part, an id, an id of the pages (W2), a section of protocol.md, a number.
_KEYS = rf"\([a-e]\)|{_ID}|[OQRW]\d{{1,2}}(?![\w-])|[A-L](?=[,);:.]| (?:to|and|or) )|\d+(?:\.\d+)?(?![\w%]|[.,]\d)"
_ITEM = re.compile(rf"(?:{_WORD}\s+)?(?P<key>{_KEYS})")
_GAP = re.compile(r"\s*,?[ ]*\n?[ ]*")
_NEXT = re.compile(r"[ ]*\n?[ ]*(?:,[ ]*\n?[ ]*(?:and[ ]*\n?[ ]*)?|(?:and|or|to)[ ]*\n?[ ]+)")
_TITLE = re.compile(r'(?:,?[ ]*\n[ ]*|,?[ ]+)"([^"]{2,80})"')

_SECTION = re.compile(r"^#{2,3} (?:Part )?(?P<id>[A-Z](?=[.:])|[A-Z]\d+[a-z]?|\d+(?:\.\d+)?|\([a-e]\))[.:]? ")
_PART = re.compile(r"^#{2,3} (?P<id>Part \d+)[.:] ")
_RULE = re.compile(r"^(?:[*-]|\d+\.) +\*\*(?P<id>[^*]{1,40}?)[.:]?\*\*")
_ROW = re.compile(r"^\| \*{0,2}(?P<ids>[\w, ]{1,30}?)\*{0,2} \|")
# Words that are part of a key; "section 4" and "fact 4" are 4.
_NAMED: Final = {"law", "part", "finding", "decision"}
_KEY = re.compile(r"(?:(?:law|part|finding) )?(?:\d+(?:\.\d+)?|[A-Z](?:\d{1,2}[a-z]?)?|\([a-e]\))")

MUST_NAME: Final = "<!-- every entry names its code or its test -->"
EXEMPT: Final = "— none:"
_EVIDENCE = re.compile(r"\b(?P<kind>code|tests?):\s+(?P<names>`[^`]+`(?:,\s+`[^`]+`)*)")


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation. `document`: empty for a bare id. `key`: empty for the document as a whole. `listed`: stands behind
    another one, where an id may be of this document or a bare one.
    """

    document: str
    key: str
    title: str = ""
    listed: bool = False

    def __str__(self) -> str:
        """The citation as people write it."""
        document = "" if self.key.startswith(self.document) else self.document
        title = " ".join(self.title.split())
        return " ".join(part for part in (document, self.key, title and f'"{title}"') if part)


# Where reading goes on, and what was found up to there.
_Read = tuple[int, list[tuple[int, Citation]]]


@dataclass(frozen=True, slots=True)
class Problem:
    """A citation that leads nowhere, or an entry without evidence, at its place. `document` is where the missing entry
    would have to be.
    """

    place: str
    text: str
    document: str


@dataclass(slots=True)
class Entries:
    """The keys and texts that citations can lead to, by document."""

    keys: dict[str, set[str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def holds(self, cited: Citation) -> bool:
        """Whether this citation leads to an entry."""
        if cited.listed and cited.key in self.keys.get(cited.document, ()):
            return True
        if cited.listed or not cited.document:
            return any(cited.key in self.keys.get(document, ()) for document in _BARE)
        if cited.document not in self.texts:
            return False
        if cited.title and " ".join(cited.title.casefold().split()) not in self.texts[cited.document]:
            return False
        return not cited.key or cited.key in self.keys[cited.document]


def main(arguments: list[str]) -> int:
    """Print the problems in the tree; the exit status is 1 when something is cited that is not there, or a rule has
    nothing that shows it.
    """
    problems = sorted(problems_of(Path()), key=lambda problem: (problem.document, problem.place))
    if "--counts" in arguments:
        for document, count in sorted(Counter(problem.document for problem in problems).items()):
            sys.stderr.write(f"{count:5} {document}\n")
    else:
        for problem in problems:
            sys.stderr.write(f"{problem.place}: {problem.text}\n")
    return 1 if problems else 0


def problems_of(root: Path) -> Iterator[Problem]:
    """All citations in the tree that lead nowhere, and all entries without evidence."""
    entries = entries_of(root)
    for path in files_of(root):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(root)
        design = DESIGN in name.parents
        own = set(keys_of(text)) if design else set()
        for offset, cited in citations_of(text, path.suffix, design=design):
            if not entries.holds(cited) and (cited.document or cited.key not in own):
                where = cited.document or f"(bare) {cited.key[:1]}"
                yield Problem(f"{name}:{_line(text, offset)}", f"{cited} leads nowhere.", where)
        if path.suffix == ".py":
            for offset, page in pages_of(text):
                if not (root / page).is_file():
                    yield Problem(f"{name}:{_line(text, offset)}", f"There is no {page}.", page)
    for path in sorted((root / DESIGN).glob("*.md")):
        yield from rule_problems(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix(), root)


def files_of(root: Path) -> Iterator[Path]:
    """The files that may contain citations: text that people wrote."""
    found = [file for file in root.iterdir() if file.is_file()]
    found += [file for folder in FOLDERS for file in (root / folder).rglob("*") if file.is_file()]
    for file in sorted(found):
        known = file.suffix in _SUFFIXES or (file.suffix in _SUFFIXES_OF_NONE and not file.name.startswith("."))
        if known and not _SKIPPED.intersection(file.relative_to(root).parts):
            yield file


def citations_of(text: str, suffix: str, *, design: bool = False) -> Iterator[tuple[int, Citation]]:
    """The citations in a file's text, each with its offset. `design`: in docs/design bare ids are read everywhere."""
    if suffix == ".py":
        yield from _cited_in(_prose(text), bare=True)
    elif suffix == ".md":
        yield from _cited_in(_without_code(text), bare=design)
    else:
        yield from _cited_in(text, bare=False)


def pages_of(source: str) -> Iterator[tuple[int, str]]:
    """The pages that the prose of a module names by their path, each with its offset; those of `SOURCES` have names of
    their own.
    """
    for match in _PATH.finditer(_prose(source)):
        known = _DOCUMENT.fullmatch(match[0])
        if not (known and _ALIASES.get(known["file"], known["file"]) in SOURCES):
            yield match.start(), match[0]


def entries_of(root: Path) -> Entries:
    """The entries of all documents that can be cited."""
    entries = Entries()
    for document, places in SOURCES.items():
        texts = [(root / place).read_text(encoding="utf-8") for place in places if (root / place).is_file()]
        if texts:
            entries.texts[document] = " ".join(" ".join(texts).casefold().split())
            entries.keys[document] = {key for text in texts for key in keys_of(text, numbers=document == "threat")}
    return entries


def keys_of(text: str, *, numbers: bool = False) -> Iterator[str]:
    """The keys that a document defines: of sections, entries and rows of tables. `numbers`: a row's may be one."""
    for _, line in _starts(text, numbers=numbers):
        yield from _keys_at(line, numbers=numbers)


def rule_problems(text: str, name: str, root: Path) -> Iterator[Problem]:
    """The problems with the entries of a document of docs/design: a key that is there twice, or evidence that is
    missing or untrue.
    """
    must = MUST_NAME in text
    starts = list(_starts(text))
    seen: set[str] = set()
    lines = text.splitlines()
    for position, (number, line) in enumerate(starts):
        keys = list(_keys_at(line))
        label, place = ", ".join(keys), f"{name}:{number + 1}"
        end = starts[position + 1][0] if position + 1 < len(starts) else len(lines)
        body = "\n".join(lines[number:end])
        if keys and seen.intersection(keys):
            yield Problem(place, f"{label} is there twice.", name)
        seen.update(keys)
        evidence = [(match["kind"], each) for match in _EVIDENCE.finditer(body) for each in _quoted(match["names"])]
        if must and keys and not evidence and EXEMPT not in body and not line.startswith("## "):
            yield Problem(place, f"{label} names neither code nor test.", name)
        for kind, each in evidence:
            if not _exists(root, each, kind):
                yield Problem(place, f"{label or 'A text'} names {each}, which does not exist.", name)


def _starts(text: str, *, numbers: bool = False) -> Iterator[tuple[int, str]]:
    # By number the lines that begin an entry or a section; inside of fences there are none.
    fenced = False
    for number, line in enumerate(text.splitlines()):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and (line.startswith("#") or next(_keys_at(line, numbers=numbers), "")):
            yield number, line


def _keys_at(line: str, *, numbers: bool = False) -> Iterator[str]:
    if part := _PART.match(line):
        yield part["id"].lower()
    elif found := _SECTION.match(line) or _RULE.match(line):
        yield from _plain(found["id"])
    elif row := _ROW.match(line):
        for each in row["ids"].split(","):
            yield from (key for key in _plain(each.strip()) if numbers or not key.isdigit())


def _plain(key: str) -> Iterator[str]:
    # "fact 8" and "8" are one; "Law 2" and "law 2".
    key = re.sub(r"^(?:fact|section|rule|threat) ", "", key[:1].lower() + key[1:] if " " in key else key)
    if _KEY.fullmatch(key):
        yield key


def _cited_in(text: str, *, bare: bool) -> Iterator[tuple[int, Citation]]:
    brackets = [match.span() for match in _BRACKETED.finditer(text)]
    position = 0
    while True:
        heads = (_DOCUMENT.search(text, position), _KIND.search(text, position), _BARE_ID.search(text, position))
        found = [head for head in heads if head]
        if not found:
            return
        head = min(found, key=lambda match: match.start())
        position = head.end()
        cited: list[tuple[int, Citation]] = []
        if head.re is _DOCUMENT:
            position, cited = _of_document(text, head)
        elif head.re is _KIND:
            position, cited = _of_kind(text, head)
        elif bare or any(start <= head.start() < end for start, end in brackets):
            cited = [(head.start(), Citation("", head[0]))]
        yield from cited


def _of_document(text: str, head: re.Match[str]) -> _Read:
    """The citations that follow the name of a document, and where reading goes on. "reliability" and "decisions" are
    words, too.
    """
    name = (head["file"] or head["name"]).lower()
    document = _ALIASES.get(name, name)
    if document not in SOURCES:
        return head.end(), []
    gap = _GAP.match(text, head.end())
    item = _ITEM.match(text, gap.end()) if gap else None
    if item and not (head["name"] and item["word"] is None and item["key"].isdigit()):
        return _list_of(text, document, item, head.start())
    title = _TITLE.match(text, head.end())
    if head["name"]:
        return head.end(), []
    return (title or head).end(), [(head.start(), Citation(document, "", title[1] if title else ""))]


def _of_kind(text: str, head: re.Match[str]) -> _Read:
    """The citations that follow a word such as "law" or "threat", which need no document, and where reading goes on."""
    item = _ITEM.match(text, head.end())
    kind = head["word"].lower().rstrip("s")
    if item is None or kind not in {"law", "threat"} or not item["key"].isdigit():
        return head.end(), []
    return _list_of(text, kind, item, head.start(), word=kind)


def _list_of(text: str, document: str, item: re.Match[str] | None, start: int, word: str = "") -> _Read:
    cited: list[tuple[int, Citation]] = []
    position = start
    while item:
        key = item["key"]
        # "threats 2, 5 and 6": a number is of the kind that was said last.
        word = (item["word"] or word).lower().rstrip("s") if key[:1].isdigit() else ""
        title = _TITLE.match(text, item.end())
        if cited and re.fullmatch(_ID, key):
            each = Citation(document, key, listed=True)
        else:
            each = Citation(*_meant(document, word, key), title[1] if title else "")
        cited.append((item.start() if cited else start, each))
        position = (title or item).end()
        item = _following(text, position)
    return position, cited


def _meant(document: str, word: str, key: str) -> tuple[str, str]:
    """The document and key that are meant: "architecture.md law 2" is a law, "reliability threat 3" a threat."""
    if word == "threat":
        return "threat", key
    if word == "law" and document != "performance":
        return "law", f"law {key}"
    return document, f"{word} {key}" if word in _NAMED and key.isdigit() else key


def _following(text: str, position: int) -> re.Match[str] | None:
    after = _NEXT.match(text, position)
    if after is None or _DOCUMENT.match(text, after.end()):
        return None
    return _ITEM.match(text, after.end())


def _prose(source: str) -> str:
    """The comments, docstrings and citing strings of a module; everything else is blank, and all stays in its place."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    kept = [" " if sign != "\n" else "\n" for sign in source]

    def keep(start: int, end: int) -> None:
        kept[start:end] = source[start:end]

    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            start = starts[token.start[0] - 1] + token.start[1]
            keep(start + 1, start + len(token.string))
    lines = source.splitlines(keepends=True)
    for node in _strings(ast.parse(source)):
        begin = _place(lines, starts, node.lineno, node.col_offset)
        end = _place(lines, starts, node.end_lineno or node.lineno, node.end_col_offset or 0)
        keep(begin + 1, end - 1)
    return _without_code("".join(kept))


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _place(lines: list[str], starts: list[int], line: int, column: int) -> int:
    # ast counts columns in bytes.
    return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())


def _strings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        candidate: ast.expr | None = None
        if isinstance(node, ast.Expr):
            candidate = node.value
        elif isinstance(node, ast.Assert):
            candidate = node.msg
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in CITING_CALLS
            and node.args
        ):
            candidate = node.args[CITING_CALLS[node.func.id]]
        if isinstance(candidate, ast.Constant) and isinstance(candidate.value, str):
            yield candidate


def _without_code(text: str) -> str:
    # What is in backticks is code, but for a citation that names its document; it keeps its room.
    text = re.sub(r"^```.*?^```", _blank, text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]+`", lambda match: match[0] if _NAMED_IN_CODE.match(match[0]) else _blank(match), text)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "_", match[0])


def _quoted(names: str) -> list[str]:
    return re.findall(r"`([^`]+)`", names)


def _exists(root: Path, name: str, kind: str) -> bool:
    if "::" in name or (kind != "code" and "/" not in name):
        return is_test(root, name)
    return (root / name).exists() or ("/" not in name and is_code(root, name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
