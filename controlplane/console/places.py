"""What a module of pages brings: `urlpatterns`, its paths, and `PLACES`, its entries in the navigation, if it has any.
A module is found by having them.
"""

from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import ModuleType

from controlplane import console
from xdscore.modules import modules_of


class Section(Enum):
    """The parts of the navigation, from above."""

    NOW = "Now"
    CONFIGURATION = "Configuration"
    ADMINISTRATION = "Administration"


class Reach(Enum):
    """How much somebody must administer for a page to be of use to them."""

    NOTHING = "nothing"
    SOMETHING = "an environment"
    EVERYTHING = "all environments"


@dataclass(frozen=True, slots=True)
class Place:
    """A page in the navigation. `position` orders the pages of a section, from above. `route` is the name of its
    path; `also` those of the pages below it.
    """

    section: Section
    position: int
    label: str
    icon: str
    route: str
    of_environment: bool = True
    also: tuple[str, ...] = ()
    administers: Reach = Reach.NOTHING


@cache
def page_modules() -> tuple[ModuleType, ...]:
    """Every module of this folder that has pages."""
    return tuple(
        module
        for module in modules_of(console)
        if hasattr(module, "urlpatterns") and module.__name__ != "controlplane.console.urls"
    )


@cache
def places() -> tuple[Place, ...]:
    """Every entry of the navigation, from above within its section."""
    found = (place for module in page_modules() for place in getattr(module, "PLACES", ()))
    return tuple(sorted(found, key=lambda place: place.position))
