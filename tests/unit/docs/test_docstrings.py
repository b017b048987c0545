"""Docstrings that nobody understands by themselves are found by their form, and plain ones are left alone."""

from pathlib import Path

import pytest

from scripts.docstrings import main, modules, riddles

POINTS_ELSEWHERE = "points elsewhere"
NEIGHBOUR = "points at its neighbour, which may move away"
NAMED_BEFORE = "begins with a word for something that was named before, and nothing was"
NOT_NAMED = "asks about something that was not named"
COUNTS = "counts things that were not named"
ACTS = "does something to what was not named"
OF_WHOM = "says of whom it is, and not what"
NOTHING = "says what it is not"
SHORT = "has fewer than three words"


def wrong_of(text: str) -> list[str]:
    return [form.wrong for _, _, _, form in riddles(f'"""{text}"""')]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("See the base.", POINTS_ELSEWHERE),
        ("See the base. A new stream sends every member again.", POINTS_ELSEWHERE),
        ("The same of the second.", NEIGHBOUR),
        ("Ditto for delta.", NEIGHBOUR),
        ("As above, but for delta.", NEIGHBOUR),
        ("As `turn`, before a call is read.", NEIGHBOUR),
        ("It as it is now.", NAMED_BEFORE),
        ("Its memory in MiB.", NAMED_BEFORE),
        ("Those of the names.", NAMED_BEFORE),
        ("These and one more context.", NAMED_BEFORE),
        ("Whether it matches the name.", NOT_NAMED),
        ("What they lost by a change.", NOT_NAMED),
        ("How these are written out.", NOT_NAMED),
        ("All of them, sorted by name.", COUNTS),
        ("One of these. Raises NotFound.", COUNTS),
        ("Keep it.", ACTS),
        ("Keep these too.", ACTS),
        ("Of one caller.", OF_WHOM),
        ("Of one run: what was read once, is not read again.", OF_WHOM),
        ("Nothing, having settled.", NOTHING),
        ("The token.", SHORT),
        ("403.", SHORT),
    ],
)
def test_riddles__a_docstring_without_its_subject__is_of_this_form(text: str, wrong: str) -> None:
    assert wrong_of(text) == [wrong]


@pytest.mark.parametrize(
    "text",
    [
        "The oldest request.",
        "Whether the stream is open.",
        "Whether these clients may read it.",
        "What clients of an audience are served.",
        "The seconds; it never counts idle time.",
        "Of two errors, the newer one.",
        "Keep these contents in addition to those here.",
        "One of these words, or none.",
        "Nothing of a stream survives its end.",
        "Seed the generator with a number.",
        "Italic text of a page.",
        "Assigned places of a stream.",
    ],
)
def test_riddles__a_sentence_with_a_subject__is_none(text: str) -> None:
    assert wrong_of(text) == []


def test_riddles__members_of_a_module__each_by_its_line_and_full_name() -> None:
    source = (
        '"""The head of a module."""\n\nclass Store:\n    """See above."""\n\n'
        '    async def read(self) -> None:\n        def inner() -> None:\n            """It again."""\n'
    )

    found = [(line, name, text) for line, name, text, _ in riddles(source)]

    assert found == [(4, "Store", "See above."), (8, "Store.read.inner", "It again.")]


def test_modules__files_and_folders__every_module_but_generated_ones(tmp_path: Path) -> None:
    for name in ("manage.py", "room/b.py", "room/a.py", "room/notes.md", "room/migrations/0001.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    found = [file.relative_to(tmp_path).as_posix() for file in modules([tmp_path / "manage.py", tmp_path / "room"])]

    assert found == ["manage.py", "room/a.py", "room/b.py"]


def test_main__a_riddle__is_told_with_place_reason_and_what_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "room.py"
    file.write_text('"""Those of the\nnames."""\n', encoding="utf-8")

    status = main([str(file)])

    assert status == 1
    told = capsys.readouterr().err
    assert told.startswith(f'{file}:1: the module: "Those of the names." {NAMED_BEFORE}. Instead: name the thing')


def test_main__only_sentences__says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "room.py"
    file.write_text('"""The names of a room."""\n\ndef first() -> None: ...\n', encoding="utf-8")

    status = main([str(file)])

    assert status == 0
    assert capsys.readouterr().err == ""
