"""Which files a build would send: those of a directory that its .dockerignore leaves."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class Ignored:
    """The rules of a .dockerignore: the last one that speaks of a path, or of a directory above it, counts."""

    rules: tuple[tuple[re.Pattern[str], bool], ...]
    kept_prefixes: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Ignored":
        """The rules in the text of a .dockerignore."""
        lines = [line.strip() for line in text.splitlines()]
        patterns = [line for line in lines if line and not line.startswith("#")]
        rules = [(_compiled(each.removeprefix("!")), not each.startswith("!")) for each in patterns]
        return cls(tuple(rules), tuple(each[1:].strip("/") for each in patterns if each.startswith("!")))

    def matches(self, path: PurePosixPath) -> bool:
        """Whether this path is left out of the build context."""
        names = [str(path), *(str(parent) for parent in path.parents if parent != PurePosixPath())]
        ignored = False
        for pattern, ignores in self.rules:
            if any(pattern.fullmatch(name) for name in names):
                ignored = ignores
        return ignored

    def closes(self, directory: PurePosixPath) -> bool:
        """Whether an ignored directory can be skipped, because no rule includes anything below it again."""
        return self.matches(directory) and not any(
            kept.startswith(f"{directory}/") or "*" in kept for kept in self.kept_prefixes
        )


def context_files(root: Path) -> Iterator[PurePosixPath]:
    """The files of the build context at `root`, relative to it."""
    file = root / ".dockerignore"
    ignored = Ignored.parse(file.read_text(encoding="utf-8") if file.exists() else "")
    for folder, folders, files in os.walk(root):
        here = PurePosixPath(Path(folder).relative_to(root).as_posix())
        folders[:] = sorted(name for name in folders if not ignored.closes(here / name))
        yield from (here / name for name in sorted(files) if not ignored.matches(here / name))


def _compiled(pattern: str) -> re.Pattern[str]:
    """The regular expression of a pattern as .dockerignore means it: Go's filepath.Match, and `**` for any number of
    directories.
    """
    text = pattern.strip("/")
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", text)
    spelled = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(spelled.get(part, part if part.startswith("[") else re.escape(part)) for part in parts))
