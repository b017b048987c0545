"""What xdsctl loads before it has something to do: little, so that --help and the completion of a shell are at once.

Seconds are in docs/performance.md; what costs them is held here, whatever the machine does besides.
"""

import os
import subprocess
import sys

import pytest

from tests.support.stack import ROOT

# Loaded by commands, when they need them.
_SLOW = (
    "asyncio",
    "cryptography",
    "google.protobuf",
    "grpc",
    "httpx",
    "rich",
    "ssl",
    "xdsclient",
    "xdscore.codes",
    "xdscore.schema",
    "yaml",
)
# By these Typer reads the values of options: where there are none to read, they stay away.
_READS_VALUES = ("pydantic",)
_PROBE = """
import sys
from xdsctl.__main__ import main
try:
    main()
finally:
    sys.stderr.write(" ".join(name for name in {slow!r} if name in sys.modules))
"""


def loaded(*arguments: str, **variables: str) -> tuple[str, set[str]]:
    """What xdsctl writes for these arguments, and which of the slow modules it has loaded for that."""
    ran = subprocess.run(
        [sys.executable, "-c", _PROBE.format(slow=_SLOW + _READS_VALUES), *arguments],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran
    return ran.stdout, set(ran.stderr.split())


@pytest.mark.parametrize("arguments", [["apply", "--help"], ["rollout", "history", "--help"]])
def test_start__nothing_to_do_yet__loads_nothing_that_is_slow(arguments: list[str]) -> None:
    said, slow = loaded(*arguments)

    assert said
    assert slow <= set(_READS_VALUES)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_start__no_value_to_read__loads_nothing_that_reads_one(option: str) -> None:
    assert loaded(option)[1] == set()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("xdsctl snap", {"snapshots"}),
        ("xdsctl snapshots ", {"list", "show", "export"}),
        ("xdsctl channels ", {"list", "test"}),
        ("xdsctl comp", {"compare"}),
        ("xdsctl aud", {"audit"}),
        ("xdsctl rollout hist", {"history"}),
        ("xdsctl get clus", {"cluster"}),
    ],
)
def test_completion__of_a_word_that_was_begun__needs_nothing_slow(words: str, expected: set[str]) -> None:
    typed = words.split(" ")
    shell = {"_XDSCTL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(typed) - 1)}

    said, slow = loaded(**shell)

    assert expected <= set(said.split())
    assert slow <= set(_READS_VALUES)


def test_command__that_reads_files_alone__loads_no_client_of_http(tmp_path: object) -> None:
    listed, slow = loaded("context", "list", XDSCTL_CONFIG=f"{tmp_path}/contexts.json")

    assert listed == ""
    assert not {"httpx", "xdscore.schema", "yaml"} & slow
