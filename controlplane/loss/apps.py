"""Registers the app with Django, and its judge with the services that write."""

from django.apps import AppConfig


class LossConfig(AppConfig):
    """Loss."""

    name = "controlplane.loss"
    label = "loss"
    verbose_name = "Loss"

    def ready(self) -> None:
        """From now on every write is judged."""
        from controlplane.catalog.services.guarding import judge_register  # noqa: PLC0415 - its models are loaded now
        from controlplane.loss.judge import losses_judge  # noqa: PLC0415

        judge_register(losses_judge)
