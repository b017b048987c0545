"""What an environment did over time: clients by state, NACKs, errors told."""

from datetime import timedelta
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import path

from controlplane.console.charts import DAY, RECENT, errors_chart, fleet_chart, kinds_chart, nacks_chart, recent
from controlplane.console.pages import Page
from controlplane.console.places import Place, Section
from controlplane.history.selectors import history_kept

# By the word in the address.
_PERIODS: Final = {"3h": RECENT, "24h": DAY}
_ALL: Final = "all"


class OverTimePage(Page):
    """The page with the pictures of one environment."""

    template = "console/over_time.html"

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """The pictures of the period that the URL names; else of the last three hours."""
        kept = history_kept().longer
        lengths: dict[str, timedelta] = {**_PERIODS, _ALL: kept}
        period = request.GET.get("period", "")
        period = period if period in lengths else next(iter(lengths))
        window, keys = recent(lengths[period]), [environment_key]
        context = {
            "period": period,
            "periods": (("3h", "3 hours"), ("24h", "24 hours"), (_ALL, f"{kept.days} days")),
            "charts": [make(keys, window) for make in (fleet_chart, nacks_chart, kinds_chart, errors_chart)],
        }
        return self.page(context)


urlpatterns = [
    path("e/<str:environment_key>/over-time", OverTimePage.as_view(), name="over-time"),
]
PLACES = (Place(Section.NOW, 46, "Over time", "clock", "over-time"),)
