"""Sound resources with one value written in another way, in a fixed order. What Envoy's reader of files makes of each
is the oracle of `xdscore.schema.leniency`.
"""

import copy
import re
from collections.abc import Iterator
from typing import Any

from tests.support.mutations import Mutation, places
from tests.support.seeds import SEEDS
from xdscore.schema.spelling import camel

_DURATION = re.compile(r"([0-9]+)(\.[0-9]+)?s")
_ENUM = re.compile(r"[A-Z][A-Z0-9_]*")


def spellings() -> Iterator[Mutation]:
    """Every seed with one value in another spelling, also in such as nobody takes."""
    for name, seed in SEEDS.items():
        for path, value in places(seed.tree, ()):
            title = f"{name} {'/'.join(map(str, path))}"
            for number, other in enumerate(_written(value)):
                yield Mutation(seed, f"{title} #{number}", _with(seed.tree, path, path[-1], other))
            if isinstance(path[-1], str) and camel(path[-1]) != path[-1]:
                yield Mutation(seed, f"{title} camel", _with(seed.tree, path, camel(path[-1]), value))


def _written(value: Any) -> Iterator[Any]:
    """The value in other ways, by its kind; some mean the same, some mean something else, some mean nothing."""
    match value:
        case bool():
            yield from (str(value).lower(), str(value), "yes", "n", "1", int(value), [value], "maybe")
        case int():
            yield from (str(value), f"+{value}", f"{value}.0", f"{value}e0", float(value), f" {value}", f"x{value}")
            yield from (f"0{value}", value + 0.5, [value], {"value": value}, value + 2**32, True)
        case str() if (found := _DURATION.fullmatch(value)) and not found[2]:
            seconds = int(found[1])
            yield from (f"00{value}", {"seconds": seconds}, {"seconds": str(seconds), "nanos": 500_000_000})
            yield from ({"nanos": -1, "seconds": seconds}, seconds, str(seconds), value.upper(), [value])
        case str() if _ENUM.fullmatch(value):
            yield from (
                value.lower(),
                value.title(),
                f" {value}",
                value.replace("_", "-") + "-",
                "0",
                "+1",
                1.0,
                [value],
            )
        case str():
            yield from (5, 1.5, True, [value], {"value": value}, None)
        case list():
            yield from ([value], [[], *value], [*value, None], None, {}, [value, value], "x", 7)
            yield from value[:1]
        case dict():
            yield from ([value], None, "x", [])


def _with(seed: dict[str, Any], path: tuple[Any, ...], key: Any, value: Any) -> dict[str, Any]:
    tree = copy.deepcopy(seed)
    target: Any = tree
    for part in path[:-1]:
        target = target[part]
    if key != path[-1]:
        del target[path[-1]]
    target[key] = copy.deepcopy(value)
    return tree
