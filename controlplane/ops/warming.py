"""Does, before a web process is ready, what its first requests would otherwise wait for."""

from importlib import import_module

from django.conf import settings

from xdscore.schema import types_registry


def warm() -> None:
    """Load every view, with all that it needs, and the schema of messages: about a second, once, for the process."""
    import_module(settings.ROOT_URLCONF)
    types_registry.schema()
