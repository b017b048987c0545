"""What each page of the console costs the server with a large fleet (issue 8: at most 300 ms with a bounded number of
queries).
"""

import time
from collections.abc import Iterator

from bench.filled import apart, filled
from bench.installation import start_django
from bench.registry import Measurement, Parameters, scenario

_AT_MOST_MS = 300
_PEOPLE = 60
_ROUTE_CASES = 200
_CHANNELS = 100  # as many as there may be
_MESSAGES = 86_400  # at one of them: as many as budgets let an environment send while they are kept
_ROLLED_OUT = 20  # resources of the open rollout
_PROPOSED = 400  # change sets; the newest is of so many resources:
_PROPOSED_AT_ONCE = 500


@scenario(
    "console",
    "Server time of every page of the console, and its queries",
    parameters={"resources": 10_000, "clients": 5_000, "incidents": 1_000, "changes": 60, "repeat": 5},
)
def console(parameters: Parameters) -> Iterator[Measurement]:
    """Measure each page of the console. The first answer of a page is left out, of time and of queries, because it
    fills caches of the process; what is shared for two seconds by all who look is made each time.
    """
    with filled(0):
        from django.contrib.auth.models import User  # noqa: PLC0415
        from django.core.cache import cache  # noqa: PLC0415
        from django.db import connection  # noqa: PLC0415
        from django.test import Client  # noqa: PLC0415
        from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

        from bench import console_fleet  # noqa: PLC0415
        from bench.console_pages import addresses, subject_now  # noqa: PLC0415
        from controlplane.ops.process import collector_tune  # noqa: PLC0415

        collector_tune()  # as a web process does when it begins
        began = time.perf_counter()
        apart(_fleet, parameters)
        yield Measurement("filling the installation", "s", (time.perf_counter() - began,))
        browser = Client(SERVER_NAME="127.0.0.1")
        browser.force_login(User.objects.filter(is_superuser=True)[0])
        most = 0
        for _, address in addresses(subject_now()):
            console_fleet.heartbeat()
            answer = browser.get(address)
            b"".join(answer)
            if answer.status_code != 200:
                raise RuntimeError(f"{address} is answered with {answer.status_code}")
            cache.clear()
            with CaptureQueriesContext(connection) as queries:
                b"".join(browser.get(address))
            asked = len(queries)  # now: the next request empties the log
            most = max(most, asked)
            took = []
            for _ in range(parameters["repeat"]):
                cache.clear()
                began = time.perf_counter()
                b"".join(browser.get(address))
                took.append((time.perf_counter() - began) * 1000)
            # What the graph is drawn from is no page: its bound is that of the first picture, which a nightly test has.
            bound = None if address.endswith("/graph?part=data") else _AT_MOST_MS
            yield Measurement(f"{address} ({asked} queries)", "ms", tuple(took), at_most=bound)
        yield Measurement("queries of a page, at most", "queries", (most,))


def _fleet(parameters: Parameters) -> None:
    """Fill the installation with clients and incidents, in another process, so that the memory for that is not
    measured.
    """
    start_django(migrate=False)
    from bench import console_fleet  # noqa: PLC0415

    console_fleet.resources_write(resources=parameters["resources"], changes=parameters["changes"])
    console_fleet.clients_report(clients=parameters["clients"], resources=parameters["resources"])
    console_fleet.incidents_make(incidents=parameters["incidents"], clients=parameters["clients"])
    console_fleet.people_act(count=_PEOPLE)
    console_fleet.channels_tell(channels=_CHANNELS, messages=_MESSAGES)
    console_fleet.route_cases_keep(count=_ROUTE_CASES)
    console_fleet.rollout_begin(resources=_ROLLED_OUT)
    console_fleet.change_sets_make(count=_PROPOSED, resources=_PROPOSED_AT_ONCE)
