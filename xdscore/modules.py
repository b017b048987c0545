"""Finds what the modules of a folder bring, so that a new one is of use without being written into a list."""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def modules_of(package: ModuleType) -> tuple[ModuleType, ...]:
    """Every module directly in this package, imported, by name."""
    names = sorted(each.name for each in iter_modules(package.__path__) if not each.ispkg)
    return tuple(import_module(f"{package.__name__}.{name}") for name in names)
