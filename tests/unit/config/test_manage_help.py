"""`--help` of each of our commands of manage.py says what the command is."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from django.core.management import load_command_class
from django.core.management.base import BaseCommand

from tests.support.stack import ROOT

FOLDERS = sorted(ROOT.glob("controlplane/**/management/commands"))
OURS = sorted(
    (".".join(folder.relative_to(ROOT).parts[:-2]), file.stem)
    for folder in FOLDERS
    for file in folder.glob("*.py")
    if file.stem != "__init__"
)


def says_itself(command: BaseCommand, file: Path) -> bool:
    """Whether the text is the command's own, not that of the one of Django which it changes."""
    return "help" in vars(type(command)) and file.is_relative_to(ROOT)


@pytest.mark.parametrize(("app", "name"), OURS)
def test_help__of_each_command__is_a_sentence_of_its_own(app: str, name: str) -> None:
    module = import_module(f"{app}.management.commands.{name}")
    command = load_command_class(app, name)

    shown = " ".join(command.create_parser("manage.py", name).format_help().split())

    assert says_itself(command, Path(str(module.__file__)))
    assert command.help.endswith(".")
    assert len(command.help) > 30
    assert " ".join(command.help.split()) in shown


@pytest.mark.parametrize("name", ["up", "demo"])
def test_help__of_those_that_start_without_django__is_the_same_sentence(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "manage.py", name, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )

    assert f"usage: manage.py {name} " in ran.stdout
    assert " ".join(load_command_class("controlplane.ops", name).help.split()) in " ".join(ran.stdout.split())
