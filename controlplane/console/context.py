"""What every template may use, also those of pages for nobody in particular (signing in, nothing here)."""

from typing import Final

from django.http import HttpRequest

from controlplane.console.pages import rows_of, theme_of
from controlplane.console.times import zone_shown
from xdscore.build import BUILD_VERSION

_THEMES: Final = (("auto", "device-desktop"), ("light", "sun"), ("dark", "moon"))


def console(request: HttpRequest) -> dict[str, object]:
    """The template values that every page has: the theme, all themes with their icons, how close rows stand, the
    time zone in which times are shown and, for
    users who are signed in, the version of Parley.
    """
    return {
        "theme": theme_of(request),
        "themes": _THEMES,
        "rows": rows_of(request),
        "zone_name": zone_shown(),
        "running_version": BUILD_VERSION,
    }
