"""Small texts that ask for far more than their size (reliability threat 12), and a program that measures their refusal.

Run as a program it refuses one bomb in a process of its own and prints its code, CPU time and growth of memory.
"""

import json
import resource
import sys
import time
from collections.abc import Callable

from xdscore.schema import Manifest, Media, Refused, parse, read_manifests
from xdscore.schema.types_registry import descriptors

_ANY = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"


def _aliases() -> str:
    """A YAML text with nine levels of nine aliases each: 9^9 nodes when expanded."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 9)]
    return "\n".join(lines)


def _anys(levels: int) -> str:
    text = '{"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}'
    for level in range(levels):
        text = f'{{"@type": "{_ANY}", "name": "x{level}", "typed_config": {text}}}'
    return text


BOMBS: dict[str, tuple[Callable[[], str], Media, str]] = {
    "aliases": (_aliases, Media.YAML, "XDS1003"),
    "merge keys": (lambda: "a: &a {b: 1}\nc:\n" + "  <<: *a\n" * 1_000, Media.YAML, "XDS1003"),
    "depth in JSON": (lambda: "[" * 1_000_000 + "]" * 1_000_000, Media.JSON, "XDS1004"),
    "depth in YAML": (lambda: "[" * 1_000_000, Media.YAML, "XDS1004"),
    "depth of YAML blocks": (lambda: "\n".join(" " * n + "a:" for n in range(1_000)), Media.YAML, "XDS1004"),
    "huge number in JSON": (lambda: '{"a": ' + "9" * 3_000_000 + "}", Media.JSON, "XDS1005"),
    "huge exponent in JSON": (lambda: '{"a": 1e999999999}', Media.JSON, "XDS1005"),
    "huge number in YAML": (lambda: f'"@type": {_ANY}\nname: {"9" * 1_000_000}\n', Media.YAML, "XDS1021"),
    "duplicate keys in JSON": (lambda: "{" + ", ".join(['"a": 1'] * 100_000) + "}", Media.JSON, "XDS1002"),
    "duplicate keys in YAML": (lambda: "a: 1\n" * 10_000, Media.YAML, "XDS1002"),
    "100 levels of Any": (lambda: _anys(100), Media.JSON, "XDS1004"),
    "20 levels of Any": (lambda: _anys(20), Media.JSON, "XDS1026"),
}
"""For each bomb by name: the text, its media type, and the code of the finding that refuses it."""


def refused(name: str) -> tuple[str, ...]:
    """The codes of the findings that refuse a bomb; empty when it is accepted."""
    text, media, _ = BOMBS[name]
    manifests, findings = read_manifests(text().encode(), media)
    if not manifests:
        return tuple(finding.code for finding in findings)
    results = [parse(Manifest(manifest.tree)) for manifest in manifests]
    return tuple(finding.code for result in results if isinstance(result, Refused) for finding in result.findings)


def _measured(name: str) -> dict[str, object]:
    descriptors()  # what every process has loaded once
    parse(Manifest({"@type": _ANY, "name": "x"}))
    text = BOMBS[name][0]
    text()
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    codes = refused(name)
    cpu_s = time.process_time() - start
    return {
        "codes": codes,
        "cpu_s": cpu_s,
        "growth_mib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measured(sys.argv[1])))
