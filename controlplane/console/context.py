"""What every template may use, also those of pages for nobody in particular (signing in, nothing here)."""

from typing import Final

from django.http import HttpRequest

from controlplane.console.pages import theme_of

_THEMES: Final = (("auto", "device-desktop"), ("light", "sun"), ("dark", "moon"))


def console(request: HttpRequest) -> dict[str, object]:
    """The theme, and those there are, each with its icon."""
    return {"theme": theme_of(request), "themes": _THEMES}
