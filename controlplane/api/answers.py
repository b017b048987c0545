"""Answers that are no problems: JSON, or YAML where the caller prefers it."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from django.http import HttpResponse
from rest_framework.request import Request

from xdscore.schema.yaml_out import yaml_of

_YAML_TYPES = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"})


def json_answer(content: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """An answer with `content` as JSON in UTF-8."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return HttpResponse(body, status=status, content_type="application/json", headers=dict(headers or {}))


def yaml_answer(content: object, *, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """An answer with `content` as YAML, its keys in the given order, and without aliases, which Parley does not
    read.
    """
    body = yaml_of(content).encode("utf-8", "replace")
    return HttpResponse(body, content_type="application/yaml", headers=dict(headers or {}))


def empty_answer(status: int, *, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """An answer without a body, and so without a Content-Type."""
    answer = HttpResponse(status=status, headers=dict(headers or {}))
    del answer["Content-Type"]
    return answer


def rendered(request: Request, content: object, *, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """An answer with `content` as JSON or as YAML, whichever the request's Accept header prefers."""
    answer = yaml_answer(content, headers=headers) if prefers_yaml(request) else json_answer(content, headers=headers)
    answer["Vary"] = "Accept"
    return answer


def prefers_yaml(request: Request) -> bool:
    """Whether the request's Accept header gives YAML a higher weight than JSON (RFC 9110 section 12.5.1)."""
    weights = {"yaml": 0.0, "json": 0.0}
    for each in request.headers.get("Accept", "")[:1_000].split(","):
        kind, *parameters = (part.strip().lower() for part in each.split(";"))
        weight = next((_weight(part[2:]) for part in parameters if part.startswith("q=")), 1.0)
        if kind in _YAML_TYPES:
            weights["yaml"] = max(weights["yaml"], weight)
        elif kind in ("application/json", "application/*"):
            weights["json"] = max(weights["json"], weight)
    return weights["yaml"] > weights["json"]


def moment(value: datetime) -> str:
    """The time as RFC 3339 in UTC, to the millisecond."""
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment_or_none(value: datetime | None) -> str | None:
    """The time as RFC 3339 in UTC, to the millisecond; None where there is none."""
    return moment(value) if value is not None else None


def _weight(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0
