"""Libraries that take longer to load than most commands of xdsctl take: each is loaded when it is first used.

`--help` and the completion of a shell need none of them; docs/performance.md has the figures.
"""

from importlib import import_module
from typing import Any


class Lazily:
    """Stands for a module, which is loaded when an attribute of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
