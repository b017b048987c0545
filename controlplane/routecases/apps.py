"""Registers the app with Django, and its judge with the services that write."""

from django.apps import AppConfig


class RouteCasesConfig(AppConfig):
    """Registers this folder with Django as the application `routecases`."""

    name = "controlplane.routecases"
    label = "routecases"
    verbose_name = "Route cases"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the judge of cases, so that every write from now on is judged by the route cases of its
        environment.
        """
        from controlplane.catalog.services.cases import case_judge_register  # noqa: PLC0415 - as below
        from controlplane.routecases.judging import cases_judge  # noqa: PLC0415 - its models are loaded now

        case_judge_register(cases_judge)
