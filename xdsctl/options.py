"""An option of a command as its help shows it: by what it is for, without a default that says nothing."""

from typing import Any

import typer


def option(text: str, *names: str, metavar: str | None = None) -> Any:
    """An option with this help. `names`: how it is spelt, such as `-o` (none: as its parameter); `metavar`: the word
    that stands for its value.
    """
    return typer.Option(*names, help=text, show_default=False, metavar=metavar)
