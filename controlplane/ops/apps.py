"""Registers the app with Django."""

from django.apps import AppConfig

from controlplane.broker.hints import builds_asked_by, rollouts_asked_by


class OpsConfig(AppConfig):
    """Registers this folder with Django as the application `ops`."""

    name = "controlplane.ops"
    label = "ops"
    verbose_name = "Operations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register Parley's checks with Django, and let Celery carry hints to the workers. Django calls it when it has
        started.
        """
        import controlplane.ops.checks  # noqa: F401, PLC0415

        builds_asked_by(_build_ask)
        rollouts_asked_by(_rollout_ask)


def _build_ask(environment_id: int) -> None:
    # Late: ADS has this room, too, never asks for a build, and must not load Celery (decisions D5a).
    from controlplane.ops.celery_app import build_ask  # noqa: PLC0415

    build_ask(environment_id)


def _rollout_ask(environment_id: int) -> None:
    from controlplane.ops.celery_app import rollout_ask  # noqa: PLC0415 - as above

    rollout_ask(environment_id)
