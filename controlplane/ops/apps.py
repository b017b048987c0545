"""Registers the app with Django."""

from django.apps import AppConfig


class OpsConfig(AppConfig):
    """Registers this folder with Django as the application `ops`."""

    name = "controlplane.ops"
    label = "ops"
    verbose_name = "Operations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import Django's checks of this folder, which registers them."""
        import controlplane.ops.checks  # noqa: F401, PLC0415
