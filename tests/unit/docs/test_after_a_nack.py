"""The page about what clients do after a NACK says the same as the code, for every client; its tests exist."""

import re
from itertools import product
from pathlib import Path

from xdscore.after_nack import after_nack
from xdscore.client_kinds import ClientFamily
from xdscore.resource_types import RESOURCE_TYPES, ResourceType

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/reference/after-a-nack.md").read_text(encoding="utf-8")
LINES = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")][
    1:
]
TOLD = {"yes": True, "no": False, "not known": None}
BY_SHORT = {kind.short: kind for kind in RESOURCE_TYPES}
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")

Case = tuple[ClientFamily, bool | None, ResourceType]


def cases() -> list[tuple[Case, str]]:
    """What the page says of each case; a line tells several."""
    return [
        ((ClientFamily(client), TOLD[told], BY_SHORT[short]), says)
        for client, tolds, shorts, says, *_ in LINES
        for told, short in product(tolds.split(", "), shorts.split(", "))
    ]


def test_page__every_row__is_what_the_code_says() -> None:
    wrong = [(case, says) for case, says in cases() if after_nack(case[0], case[2], drops=case[1]).value != says]

    assert wrong == []


def test_page__every_family__is_told_once_for_each_type_and_whatever_is_known_of_its_bootstrap() -> None:
    told = [case for case, _ in cases()]

    grpc = [BY_SHORT[short] for short in ("LDS", "RDS", "CDS", "EDS")]
    asks = {family: grpc for family in ClientFamily if family.value.startswith("grpc")}
    wanted = [
        (family, drops, kind)
        for family in ClientFamily
        for drops, kind in product(TOLD.values(), asks.get(family, [*grpc, BY_SHORT["SDS"]]))
    ]
    assert len(told) == len(set(told))
    assert set(told) == set(wanted)


def test_page__tests_that_it_names__exist() -> None:
    named = TEST.findall(PAGE)

    assert len(named) >= 6
    assert [each for each in named if f"def {each[1]}(" not in (ROOT / each[0]).read_text()] == []
