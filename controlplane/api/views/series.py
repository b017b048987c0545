"""Series: what happened in an environment over time."""

import re
from datetime import datetime, timedelta
from typing import Final

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer, moment
from controlplane.api.paths import ENVIRONMENT_PATH
from controlplane.api.query import Query
from controlplane.api.schema import SERIES_PARAMETERS, described
from controlplane.api.shapes.history import SeriesOut
from controlplane.api.views.base import ApiView
from controlplane.clients.clock import database_now
from controlplane.history.selectors import DETAILS, fleet_series, history_kept, tally_series
from controlplane.history.series import Series, Window, WindowInvalid, window_of
from controlplane.history.values import What

_DEFAULT: Final = timedelta(hours=3)
_STEP: Final = re.compile(r"([0-9]{1,6})(s|m|h|d)?")
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
# What each can be told apart by; the first where nothing is asked for.
_BY: Final = {what: ("state",) if what is What.CLIENTS else ("type", DETAILS[what]) for what in What}


class SeriesView(ApiView):
    """Read what happened over time."""

    needs = {"GET": Role.VIEWER}

    @extend_schema(
        operation_id="series_get",
        summary="Read clients by state, NACKs or errors told, over time",
        parameters=SERIES_PARAMETERS,
        responses=described(200, SeriesOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """The series of one window of time. Of clients each value is an average over its step, else a sum."""
        query, now = Query(request, ("what", "by", "from", "until", "step")), database_now()
        what = What(query.choice("what", [each.value for each in What], What.CLIENTS.value))
        by = query.choice("by", _BY[what], _BY[what][0])
        since = query.since("from", lambda: now) or now - _DEFAULT
        until = query.since("until", lambda: now)
        step_s = query.parsed("step", _seconds, 0, wanted="must be a length of time such as 60s, 10m or 1h")
        window = _window(query, now, since, until, step_s)
        query.done()
        if window is None:
            raise RuntimeError("a window that cannot be drawn was not refused")
        series = _read(what, by, environment_key, window)
        return json_answer(
            {
                "what": what.value,
                "by": by,
                "since": moment(window.since),
                "until": moment(window.until),
                "step_s": window.step_s,
                "points": window.points,
                "series": [{"label": each.label, "values": each.values} for each in series],
            }
        )


def _window(query: Query, now: datetime, since: datetime, until: datetime | None, step_s: int) -> Window | None:
    try:
        return window_of(now, since, until, step_s, history_kept())
    except WindowInvalid as error:
        query.refuse(error.field, str(error))
        return None


def _read(what: What, by: str, environment_key: str, window: Window) -> tuple[Series, ...]:
    keys = [environment_key]
    if what is What.CLIENTS:
        return fleet_series(environment_keys=keys, window=window)
    return tally_series(what=what, by="type" if by == "type" else "detail", environment_keys=keys, window=window)


def _seconds(text: str) -> int | None:
    found = _STEP.fullmatch(text)
    seconds = int(found[1]) * _UNITS_S[found[2] or "s"] if found else 0
    return seconds or None


urlpatterns = [
    path(f"{ENVIRONMENT_PATH}/series", SeriesView.as_view()),
]
