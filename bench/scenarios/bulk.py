"""What one act upon many takes, as the console's bulk page and REST do it (issue 32: 1,000 in one change in 3 s)."""

import json
import time
from collections.abc import Iterator
from typing import Any, Final

from bench.filled import filled
from bench.registry import Measurement, Parameters, scenario
from bench.resources import cluster, cluster_name

_HERE: Final = "/api/v1/environments/default"
_AT_MOST_S: Final = 3.0
_ACCEPTED: Final = "?accept_loss=1000000"
_QUARANTINED: Final = 100  # at once, for channels are told of each


@scenario(
    "bulk",
    "One act upon 1,000 resources or clients, as one change",
    parameters={"resources": 10_000, "count": 1_000, "clients": 5_000},
)
def bulk(parameters: Parameters) -> Iterator[Measurement]:
    """Measure each act once: a second time it would have nothing to do."""
    count = parameters["count"]
    with filled(parameters["resources"]) as token:
        # The product is imported where it is installed.
        from django.test import Client  # noqa: PLC0415

        from bench import console_fleet  # noqa: PLC0415

        api = Client(headers={"Authorization": f"Bearer {token}", "Host": "localhost"})
        console_fleet.clients_report(clients=parameters["clients"], resources=parameters["resources"])
        api.get(f"{_HERE}/resources?limit=1")  # what is loaded and compiled once
        for what, path, body in _acts(count, min(count, parameters["clients"])):
            began = time.perf_counter()
            answer = api.post(f"{_HERE}/{path}", json.dumps(body), content_type="application/json")
            took = time.perf_counter() - began
            if answer.status_code not in (200, 202):
                raise RuntimeError(f"{what} was answered {answer.status_code}: {answer.content[:500]!r}")
            many = len(body.get("resources", body.get("clients", ())))
            yield Measurement(f"{what}, {many:,} at once", "s", (took,), at_most=_AT_MOST_S)


def _acts(resources: int, clients: int) -> tuple[tuple[str, str, dict[str, Any]], ...]:
    """Each act in words, the path to which it is sent, and its body."""
    from bench.console_fleet import client_of  # noqa: PLC0415  the product is imported where it is installed

    named = [{"type": "cluster", "name": cluster_name(number)} for number in range(resources)]
    again = [cluster(number, timeout_s=7) for number in range(resources)]
    ids = [client_of(number) for number in range(clients)]
    many, outside = f"resources/bulk{_ACCEPTED}", f"quarantines{_ACCEPTED}"
    return (
        ("labels", many, {"act": "labels", "resources": named, "labels": {"team": "pay"}}),
        ("owner", many, {"act": "owner", "resources": named, "owner": "pay"}),
        ("quarantine", outside, {"act": "quarantine", "resources": named[:_QUARANTINED], "reason": "r"}),
        ("release", outside, {"act": "release", "resources": named[:_QUARANTINED], "reason": "r"}),
        ("a second revision, by apply", f"apply{_ACCEPTED}", {"resources": again}),
        ("restore", many, {"act": "restore", "resources": named}),
        ("delete", many, {"act": "delete", "resources": named}),
        ("labels of clients", "clients/bulk", {"act": "labels", "clients": ids, "labels": {"team": "pay"}}),
    )
