"""What every template may use, also those of pages for nobody in particular (signing in, nothing here)."""

from typing import Final

from django.http import HttpRequest

from controlplane.console.pages import theme_of
from xdscore.build import BUILD_VERSION

_THEMES: Final = (("auto", "device-desktop"), ("light", "sun"), ("dark", "moon"))


def console(request: HttpRequest) -> dict[str, object]:
    """The template values of every page: the theme, all themes with their icons and, for those who are signed in,
    Parley's version.
    """
    return {"theme": theme_of(request), "themes": _THEMES, "running_version": BUILD_VERSION}
