"""A real Envoy as the oracle of spellings: what its reader of files takes, we take, and it means the same to both.

`make differential` tries every spelling there is; a test run tries every n-th, which are the same ones each time.
"""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as AnyProto

from tests.support.bootstraps import envoy_says
from tests.support.envoy import envoy_with, envoy_with_file
from tests.support.mutations import Mutation, bootstrap_of, envoy_refusal
from tests.support.spellings import spellings
from xdscore.findings import Severity
from xdscore.schema import Manifest, Media, ParsedResource, Refused, canonical, parse, read_manifests
from xdscore.schema.leniency import SPELLINGS, strictly
from xdscore.schema.types_registry import schema

COUNT = 200
ALL = "DIFFERENTIAL" in os.environ
# What it complains of otherwise is for the rules (test_differential).
NOT_READ = "Unable to parse JSON as proto"
DUMPS = {"clusters": ("static_clusters", "cluster"), "listeners": ("static_listeners", "listener")}


def chosen() -> list[Mutation]:
    every = list(spellings())
    return every if ALL else [every[place * len(every) // COUNT] for place in range(COUNT)]


# What we refuse although Envoy takes it, by code, and why: as in test_differential.
NAMELESS = "XDS1020"  # Envoy makes up a name for a static listener; over xDS nobody could subscribe to it


def ambiguous(mutation: Mutation) -> bool:
    """Whether it holds a quoted number that is another one without its quotes: `010` is 10 with and 8 without them."""
    return any(
        text.isdecimal()
        and text[0] == "0"
        and len(text) > 1
        and set(text) <= set("01234567")
        and int(text, 8) != int(text)
        for text in _texts(mutation.tree)
    )


def _texts(tree: Any) -> list[str]:
    if isinstance(tree, str):
        return [tree]
    items = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return [text for item in items for text in _texts(item)]


def renamed(mutation: Mutation, number: int) -> dict[str, Any] | None:
    """The resource under a name of its own, so that many fit into one bootstrap; None where its name is what is spelled
    in another way.
    """
    own = mutation.seed.tree["name"]
    return {**mutation.tree, "name": f"{own}-{number}"} if mutation.tree.get("name") == own else None


def dumped(directory: Path, section: str, resources: list[dict[str, Any]]) -> Mapping[str, bytes]:
    """What a running Envoy has of these resources, by name: canonical bytes."""
    admin = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}}
    found, inside = DUMPS[section]
    with envoy_with(directory, {"admin": admin, **bootstrap_of(section, resources, ())}) as running:
        return {each[inside]["name"]: _bytes(each[inside]) for each in running.dump(found)}


def _bytes(tree: Mapping[str, Any]) -> bytes:
    message = AnyProto()
    json_format.ParseDict(dict(tree), message, descriptor_pool=schema().pool)
    return canonical(message.SerializeToString())


def errors_of(result: ParsedResource | Refused) -> list[str]:
    errors = [each for each in result.findings if each.severity is Severity.ERROR and each.code != NAMELESS]
    return [f"{each.code} {each.pointer} {each.detail}" for each in errors]


@pytest.mark.slow
@pytest.mark.timeout(1800 if ALL else 300)
def test_spellings__what_envoy_takes_we_take__and_it_means_the_same(tmp_path: Path) -> None:
    tried = chosen()
    with ThreadPoolExecutor(2) as pool:
        oracle = list(pool.map(lambda mutation: envoy_refusal(mutation, (), tmp_path), tried))

    ours = [parse(Manifest(mutation.manifest)) for mutation in tried]

    pairs = list(zip(tried, ours, oracle, strict=True))
    refused_alone = [
        f"{mutation.title}: {errors_of(result)}"
        for mutation, result, refusal in pairs
        if not refusal and errors_of(result) and not ambiguous(mutation)
    ]
    taken_alone = [
        f"{mutation.title}: {refusal}"
        for mutation, result, refusal in pairs
        if NOT_READ in refusal and not errors_of(result)
    ]
    different = []
    for section in DUMPS:
        both = [
            (f"{number}", mutation, tree)
            for number, (mutation, result, refusal) in enumerate(pairs)
            if mutation.seed.section == section and not refusal and isinstance(result, ParsedResource)
            if (tree := renamed(mutation, number)) is not None
        ]
        theirs = dumped(tmp_path, section, [tree for _, _, tree in both])
        for _, mutation, tree in both:
            result = parse(Manifest({"@type": mutation.manifest["@type"], **tree}))
            assert isinstance(result, ParsedResource)
            if canonical(result.any_bytes) != theirs[tree["name"]]:
                different.append(mutation.title)
    assert (refused_alone, taken_alone, different) == ([], [], [])
    assert sum(not refusal for refusal in oracle) > len(tried) // 4


ADMIN = "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n"
PLAIN = {
    "type": ("static", "Static", "0"),
    "respect_dns_ttl": ("on", "Off", "yes", "NO", "y", "n", "True", "'t'", "'0'", "~"),
    "alt_stat_name": ("4000000000", "-3000000000", "'on'", "{x: 1}", "5", "on"),
    "per_connection_buffer_limit_bytes": ("0x10", "+5", "'+5'", "1e3", "'1e3'", "08", "5.5", "on", "{value: '7'}"),
    "connect_timeout": ("005s", "{seconds: '5'}", "5", "'5'", "{nanos: 1000000}", "[5s]"),
    "metadata": ("{filter_metadata: {a: {b: [1, x, true, null, {c: 0x10}]}}}", "{filter_metadata: {a: ~}}"),
    "circuit_breakers": (
        "{thresholds: {max_requests: '5'}}",
        "{thresholds: [[], {priority: high}]}",
        "{thresholds: x}",
    ),
}
KEPT_AS_TEXT = {("alt_stat_name", "on")}  # a text by YAML 1.2; Envoy refuses it


@pytest.mark.slow
def test_spellings__unquoted_in_yaml__mean_to_us_what_they_mean_to_envoy(tmp_path: Path) -> None:
    for field, values in PLAIN.items():
        for number, value in enumerate(values):
            text = f"{{name: c, connect_timeout: 1s, type: STATIC, {field}: {value}}}"
            only = text.replace(f"{field}: {'1s' if field == 'connect_timeout' else 'STATIC'}, ", "", 1)
            file = tmp_path / f"{field}-{number}.yaml"
            file.write_text(f"{ADMIN}static_resources: {{clusters: [{only}]}}\n")

            (ours,) = ours_of(file)
            refusal = envoy_says(file, tmp_path)

            if (field, value) not in KEPT_AS_TEXT:
                assert bool(refusal) == bool(errors_of(ours)), f"{only}: {refusal} {errors_of(ours)}"
            if isinstance(ours, ParsedResource) and not refusal:
                assert canonical(ours.any_bytes) == of_running(tmp_path, file), only


def ours_of(file: Path) -> list[ParsedResource | Refused]:
    manifests, _ = read_manifests(file.read_bytes(), Media.YAML)
    return [parse(each) for each in manifests]


def of_running(directory: Path, file: Path) -> bytes:
    """The only cluster of a running Envoy with this file: canonical bytes."""
    with envoy_with_file(directory, file) as running:
        (found,) = running.dump("static_clusters")
        return _bytes(found["cluster"])


def test_spellings__what_is_taken_with_a_warning__is_refused_when_strict() -> None:
    for mutation in chosen():
        result = parse(Manifest(mutation.manifest))
        if isinstance(result, ParsedResource):
            warned = {each.code for each in result.findings} & SPELLINGS
            errors = [each for each in strictly(result.findings) if each.severity is Severity.ERROR]
            assert bool(warned) == bool(errors), mutation.title
