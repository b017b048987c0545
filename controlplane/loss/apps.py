"""Registers the app with Django, and its judge with the services that write."""

from django.apps import AppConfig


class LossConfig(AppConfig):
    """Registers this folder with Django as the application `loss`."""

    name = "controlplane.loss"
    label = "loss"
    verbose_name = "Loss"

    def ready(self) -> None:
        """Register the loss guard, so that every write from now on is judged by what connected clients would lose, and
        warned of what they do not know.
        """
        from controlplane.catalog.services.advising import adviser_register  # noqa: PLC0415 - as below
        from controlplane.catalog.services.guarding import judge_register  # noqa: PLC0415 - its models are loaded now
        from controlplane.loss.judge import losses_judge  # noqa: PLC0415
        from controlplane.loss.unaware import clients_unaware  # noqa: PLC0415

        judge_register(losses_judge)
        adviser_register(clients_unaware)
