"""Registers the app with Django."""

from django.apps import AppConfig


class OpsConfig(AppConfig):
    """Operations."""

    name = "controlplane.ops"
    label = "ops"
    verbose_name = "Operations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Django's checks are there once they are imported."""
        import controlplane.ops.checks  # noqa: F401, PLC0415
