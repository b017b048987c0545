"""The cost of judging, before a write, what connected clients would lose by it (issue 2.1b)."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.filled import apart, filled
from bench.installation import start_django
from bench.registry import Measurement, Parameters, scenario

if TYPE_CHECKING:
    from controlplane.catalog.guarding import Prospect

_CHANGE_MS = 150
_RULE_MS = 30
_NOTHING_MS = 3


@scenario(
    "loss",
    "Judging what connected clients would lose by a write",
    parameters={"resources": 1_000, "clients": 5_000, "repeat": 15},
)
def loss(parameters: Parameters) -> Iterator[Measurement]:
    """Measure the judgement of losses alone, as the services of every write call it."""
    with filled(0):
        from bench import console_fleet  # noqa: PLC0415
        from controlplane.access.selectors import access_table  # noqa: PLC0415
        from controlplane.catalog.guarding import Prospect  # noqa: PLC0415
        from controlplane.catalog.selectors import resource_list  # noqa: PLC0415
        from controlplane.catalog.services.guarding import loss_foresee  # noqa: PLC0415
        from xdscore.access import AccessTable, Effect, Rule  # noqa: PLC0415

        apart(_fleet, parameters)
        here = console_fleet.ENVIRONMENT
        everything = frozenset(resource_list(environment_key=here).values_list("type", "name"))
        before = access_table(environment_key=here)

        def by(rule: Rule) -> Prospect:
            after: AccessTable = replace(before, rules=(*before.rules, rule))
            return Prospect(here, tables=(before, after))

        unwanted = frozenset({("endpoint", "extra-000000")})
        judged: tuple[tuple[str, Prospect, int, bool], ...] = (
            (f"a change that deletes {len(everything)} resources", Prospect(here, everything), _CHANGE_MS, True),
            ("a rule: nobody may read anything", by(Rule(1_000_000, Effect.DENY)), _RULE_MS, True),
            ("a rule: nobody may read one name", by(Rule(1_000_000, Effect.DENY, "service-000007")), _RULE_MS, True),
            ("a rule that allows", by(Rule(1_000_000, Effect.ALLOW)), _NOTHING_MS, False),
            ("a change that puts", Prospect(here), _NOTHING_MS, False),
            ("a deletion of what nobody asks for", Prospect(here, unwanted), _NOTHING_MS, False),
        )
        for name, prospect, at_most, loses in judged:
            console_fleet.heartbeat()
            if (loss_foresee(prospect).clients > 0) is not loses:
                raise RuntimeError(f"{name}: judged otherwise than this scenario is made for")
            samples = tuple(_ms(loss_foresee, prospect) for _ in range(parameters["repeat"]))
            yield Measurement(name, "ms", samples, at_most=at_most)
        first = []
        for _ in range(parameters["repeat"]):
            console_fleet.clients_report(clients=1, resources=parameters["resources"])
            first.append(_ms(loss_foresee, by(Rule(1_000_000, Effect.DENY))))
        yield Measurement("a rule: nobody may read anything, just after clients changed", "ms", tuple(first))


def _ms(judge: Callable[["Prospect"], object], prospect: "Prospect") -> float:
    began = time.perf_counter()
    judge(prospect)
    return (time.perf_counter() - began) * 1000


def _fleet(parameters: Parameters) -> None:
    start_django(migrate=False)
    from bench import console_fleet  # noqa: PLC0415

    console_fleet.resources_write(resources=parameters["resources"], changes=0)
    console_fleet.clients_report(clients=parameters["clients"], resources=parameters["resources"])
