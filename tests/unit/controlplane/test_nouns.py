"""What a noun brings to the API, the console and xdsctl is found, or a sentence says which file lacks what."""

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from controlplane import console
from controlplane.api import views
from controlplane.api.views.base import ApiView
from controlplane.console.pages import Page
from controlplane.console.places import places
from controlplane.console.urls import urlpatterns
from xdscore.modules import modules_of
from xdsctl import commands

ROOT = Path(__file__).parents[3]


def classes_of(module: ModuleType, base: type) -> list[str]:
    """The names of the classes of a module that have this base, and are none themselves."""
    found = inspect.getmembers(module, lambda each: inspect.isclass(each) and issubclass(each, base))
    return [name for name, each in found if each.__module__ == module.__name__ and not each.__subclasses__()]


def led_to(module: ModuleType) -> set[str]:
    """The names of the classes that the paths of a module lead to."""
    callbacks = [pattern.callback for pattern in getattr(module, "urlpatterns", ())]
    return {(getattr(each, "view_class", None) or getattr(each, "cls", None) or each).__name__ for each in callbacks}


@pytest.mark.parametrize("module", modules_of(views), ids=lambda module: module.__name__.rpartition(".")[2])
def test_view__of_the_api__has_a_path_in_its_module(module: ModuleType) -> None:
    for view in classes_of(module, ApiView):
        assert view in led_to(module), f"{module.__name__}: no path of urlpatterns leads to {view}."


@pytest.mark.parametrize("module", modules_of(console), ids=lambda module: module.__name__.rpartition(".")[2])
def test_page__of_the_console__has_a_path_in_its_module(module: ModuleType) -> None:
    for page in classes_of(module, Page):
        assert page in led_to(module), f"{module.__name__}: no path of urlpatterns leads to {page}."


def test_places__of_the_navigation__lead_to_pages_in_an_order_and_have_icons() -> None:
    routes = {pattern.name for pattern in urlpatterns}
    icons = re.findall(r'id="(?:i-|icon-)?([a-z0-9-]+)"', (ROOT / "static/vendor/icons.svg").read_text("utf-8"))
    order = [(place.section, place.position) for place in places()]

    for place in places():
        assert {place.route, *place.also} <= routes, f"The place '{place.label}' leads to no page of urlpatterns."
        assert place.icon in icons, (
            f"'{place.label}' has no icon: '{place.icon}' is not in scripts/front_end/build.mjs."
        )
        assert order.count((place.section, place.position)) == 1, f"'{place.label}' has the position of another place."


@pytest.mark.parametrize("module", modules_of(commands), ids=lambda module: module.__name__.rpartition(".")[2])
def test_commands__of_xdsctl__are_registered_at_a_position_of_their_own(module: ModuleType) -> None:
    where = f"xdsctl/commands/{module.__name__.rpartition('.')[2]}.py"
    positions = [getattr(each, "HELP_POSITION", None) for each in modules_of(commands)]

    assert hasattr(module, "register"), f"{where} lacks register(app), which adds its commands."
    assert hasattr(module, "HELP_POSITION"), f"{where} lacks HELP_POSITION, which says where they are listed."
    assert positions.count(module.HELP_POSITION) == 1, f"{where}: HELP_POSITION is that of another module."
