"""Registers the app with Django."""

from django.apps import AppConfig

from controlplane.broker.hints import builds_asked_by


class OpsConfig(AppConfig):
    """Registers this folder with Django as the application `ops`."""

    name = "controlplane.ops"
    label = "ops"
    verbose_name = "Operations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Put together what every process with these rooms has: Django's checks, which are there once they are
        imported, and the way of hints to the workers.
        """
        import controlplane.ops.checks  # noqa: F401, PLC0415

        builds_asked_by(_build_ask)


def _build_ask(environment_id: int) -> None:
    # Late: ADS has this room, too, never asks for a build, and must not load Celery (decisions D5a).
    from controlplane.ops.celery_app import build_ask  # noqa: PLC0415

    build_ask(environment_id)
