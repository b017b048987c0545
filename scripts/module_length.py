"""Refuse modules over 500 lines (CONTRIBUTING.md): `module_length.py FOLDER...`. 300 lines make you think."""

import sys
from pathlib import Path

LINES_MAX = 500
GENERATED = {"migrations"}  # written by Django


def main(folders: list[str]) -> int:
    """Print the modules that are too long; the exit status is 1 when there are any."""
    modules = [file for folder in folders for file in Path(folder).rglob("*.py") if not GENERATED & set(file.parts)]
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in modules}
    long = {file: lines for file, lines in lengths.items() if lines > LINES_MAX}
    for file, lines in sorted(long.items()):
        sys.stderr.write(f"{file} has {lines} lines; {LINES_MAX} are allowed.\n")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
