"""One identity at full speed, everybody else unharmed: 200 good clients beside one bad one, each attack for 20 s.

The production shape: PostgreSQL, Valkey, real processes, clients known by their tokens. Undisturbed figures are taken
first, by the same clients. While each attack goes on, numbers are published and the time is taken until each good
client has read them; then a revision is published that every good client refuses, which must become an incident with
its name, and be quarantined, as if nobody disturbed. The figures go to docs/reliability.md.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import quantiles

import pytest

from controlplane.incidents.verdict import ANSWER_WAIT_S
from tests.support.figures import measured
from tests.support.manifests import Tree, cluster
from tests.support.neighbours import ATTACKS, REFUSED, TICK, Fleet, Ports, Seen, bad_neighbour, good_fleet
from tests.support.ports import free_ports
from tests.support.postgres import postgresql_server
from tests.support.stack import Parley, running_apart
from tests.support.valkey import valkey
from tests.support.waiting import eventually

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900), pytest.mark.xdist_group("neighbours")]

GOOD = 200
MEASURED_S, TICK_EVERY_S = 14.0, 0.35
INCIDENT_WITHIN_S = 30.0
WORSE_BY = 2.0
# What was never acknowledged has nothing that could be served in its place.
OUT_OF_SERVICE = ("quarantined", "withheld")


@dataclass(frozen=True, slots=True)
class Figures:
    """How long good clients waited for a change after its answer, newcomers for their first one, and polls for theirs,
    in seconds.
    """

    p50_s: float
    p99_s: float
    newcomer_longest_s: float
    poll_longest_s: float
    ends: Counter[str]


@dataclass
class Site:
    """A running Parley with its good clients."""

    parley: Parley
    ports: Ports
    fleet: Fleet
    number: int = 0
    undisturbed: Figures | None = field(default=None)

    def calm(self) -> None:
        """Nothing is refused any more, and everybody is connected."""
        found = self.parley.call("GET", f"/environments/default/resources?type=cluster&name={REFUSED}*").body["results"]
        if found:
            names = [{"type": "cluster", "name": each["name"]} for each in found]
            self.parley.apply_and_publish(delete=names, losing=GOOD)
        eventually(self.fleet.seen, lambda seen: seen.connected == GOOD, within_s=60)

    def measure(self) -> Figures:
        """Publish numbers for a while, and see when everybody has them."""
        self.fleet.seen()
        answered: dict[int, float] = {}
        until = time.monotonic() + MEASURED_S
        while time.monotonic() < until:
            self.number += 1
            self.parley.apply(tick(self.number))
            answered[self.number] = time.monotonic()
            time.sleep(TICK_EVERY_S)
        seen: list[Seen] = []

        def with_the_last() -> int:
            """How many have the last number by now; numbers before it may have been passed over."""
            seen.append(self.fleet.seen())
            return sum(len(each.ticks.get(self.number, ())) for each in seen)

        eventually(with_the_last, lambda count: count >= GOOD, within_s=15)
        read = [(number, at) for each in seen for number, times in each.ticks.items() for at in times]
        waits = [at - answered[number] for number, at in read if number in answered]
        newcomers = [wait_s for each in seen for wait_s in each.newcomers_s]
        polls = [wait_s for each in seen for wait_s in each.polls_s]
        ends = sum((each.ends for each in seen), Counter[str]())
        cuts = quantiles(waits, n=100)
        return Figures(cuts[49], cuts[98], max(newcomers, default=math.inf), max(polls, default=math.inf), ends)


def tick(number: int) -> Tree:
    return cluster(TICK, per_connection_buffer_limit_bytes=number)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("neighbours") / "home"
    with postgresql_server() as database, valkey() as redis:
        (polls_port,) = free_ports(1)
        where = {
            "DATABASE_URL": database.url,
            "REDIS_URL": redis.url,
            "PARLEY_ADS_AUTH": "token",
            "PARLEY_ADS_REST_ADDRESS": f"127.0.0.1:{polls_port}",
        }
        with running_apart(home, where, ads=1, workers=1) as parley:
            parley.apply_and_publish(*(cluster(f"c{number}") for number in range(20)), tick(0))
            tokens = [token(parley, f"good-{number}") for number in range(GOOD)]
            ports = Ports(parley.ads_port, polls_port)
            with good_fleet(ports, tokens) as fleet:
                site = Site(parley, ports, fleet)
                eventually(fleet.seen, lambda seen: seen.connected == GOOD, within_s=30)
                site.undisturbed = site.measure()
                yield site


def token(parley: Parley, subject: str) -> str:
    answer = parley.call("POST", "/client-tokens", {"subject": subject, "environment": None})
    assert answer.status == 201, answer.body
    made: str = answer.body["token"]
    return made


@pytest.mark.parametrize("attack", ATTACKS)
def test_attack__by_one_identity_at_full_speed__harms_nobody_else(site: Site, attack: str) -> None:
    before = site.undisturbed
    assert before is not None
    word = attack.replace(" ", "-")
    name = f"{REFUSED}{word}"
    site.calm()
    # An identity of its own for each: what one attack cost its identity must not keep the next from being one.
    bad_token = token(site.parley, f"bad-{word}")
    with bad_neighbour(attack, site.ports, bad_token) as done:
        time.sleep(2.0)
        during = site.measure()
        measured(
            undisturbed_p50_ms=before.p50_s * 1000,
            undisturbed_p99_ms=before.p99_s * 1000,
            p50_ms=during.p50_s * 1000,
            p99_ms=during.p99_s * 1000,
            newcomer_undisturbed_ms=before.newcomer_longest_s * 1000,
            newcomer_ms=during.newcomer_longest_s * 1000,
            poll_undisturbed_ms=before.poll_longest_s * 1000,
            poll_ms=during.poll_longest_s * 1000,
            **{f"bad_{key.lower()}": float(count) for key, count in done().items()},
        )
        assert during.ends == Counter()
        began = time.monotonic()
        site.parley.apply(cluster(name))
        eventually(lambda: refusing(site.parley, name), lambda count: count >= GOOD, within_s=INCIDENT_WITHIN_S)
        measured(incident_s=time.monotonic() - began)
        eventually(
            lambda: status_of(site.parley, name),
            lambda status: status in OUT_OF_SERVICE,
            within_s=INCIDENT_WITHIN_S + ANSWER_WAIT_S,
        )
        measured(quarantined_s=time.monotonic() - began)

    assert during.p99_s <= WORSE_BY * before.p99_s


def refusing(parley: Parley, name: str) -> int:
    """How many clients the incident with this cluster's name counts; 0 while there is none."""
    found = parley.call("GET", f"/incidents?type=cluster&name={name}").body["results"]
    return max((incident["clients"]["nacked"] for incident in found), default=0)


def status_of(parley: Parley, name: str) -> str:
    """What the cluster is by now."""
    rows = parley.call("GET", f"/environments/default/resources?type=cluster&name={name}").body["results"]
    return str(rows[0]["status"]) if rows else "absent"
