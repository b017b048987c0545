"""The whole, in pairs of texts: what an operator wrote, who may read it and who asks; what each client is sent, decoded
from the bytes on the wire, over both variants.

`NAME.yaml` is a case (`case.py` says what it may hold); its first line says in a sentence what it shows, and by which
rules of docs/design/protocol.md. `NAME.out.yaml` is what comes of it; `make golden` writes it, and who runs that
reviews it against those rules.
"""

import json
import os
import re
from difflib import unified_diff
from functools import cache
from pathlib import Path

import pytest

from adsserver.engine.events import Variant
from adsserver.engine.session import EngineSettings
from tests.golden.whole.case import Case, Step, read_case
from tests.golden.whole.client import Client, Line, encoder_of
from tests.golden.whole.environment import Contents, Environment
from xdscore.environment_choice import EnvironmentChoice, Selector
from xdscore.schema.yaml_out import yaml_of

FOLDER = Path(__file__).parent / "cases"
CASES = sorted(path for path in FOLDER.glob("*.yaml") if not path.name.endswith(".out.yaml"))
REWRITE = os.environ.get("GOLDEN_REWRITE") == "1"
RULES = Path(__file__).parents[3] / "docs" / "design" / "protocol.md"
HEAD = re.compile(r"# (?P<rules>[A-K]\d+a?(?:, [A-K]\d+a?)*): [A-Z].*\.")
PUBLIC_URL = "https://parley.example"


class Play:
    """A case as it is played over one variant."""

    def __init__(self, case: Case, variant: Variant) -> None:
        contents = Contents()
        self._case = case
        self._now = 100.0
        self._environments = {key: Environment(key, contents) for key in case.environments}
        choices = [
            EnvironmentChoice(key, tuple(Selector(**each) for each in environment.selectors))
            for key, environment in case.environments.items()
        ]
        settings = EngineSettings(case.repeat_errors, PUBLIC_URL, case.limits)
        encoder = encoder_of(contents)
        self._clients = {name: Client(variant, node, settings, encoder, choices) for name, node in case.clients.items()}

    def snapshots(self) -> list[Line]:
        """What is published before anything happens."""
        begun = ((self._environments[key], each.written) for key, each in self._case.environments.items())
        return [environment.write(written) for environment, written in begun if written is not None]

    def take(self, step: Step) -> tuple[list[Line], Line]:
        """One step: what is published, and what each client is sent."""
        self._now += step.wait
        clients = {name: self._clients[name] for name in step.by or self._clients}
        if step.reconnect:
            for client in clients.values():
                client.disconnect()
        published = []
        if step.written is not None:
            environment = self._environments[step.environment]
            published.append(environment.write(step.written))
            for client in self._clients.values():
                if client.environment == environment.key and environment.publication is not None:
                    client.offer(environment.publication, self._now)
        sent = {}
        for name, client in self._clients.items():
            publication = self._environments[client.environment].publication
            lines = client.behave(step if name in clients else Step(step.when), publication, self._now)
            if lines or name in clients:
                sent[name] = lines
        return published, sent


def outcome(case: Case) -> str:
    """The whole case in words."""
    tree: Line = {"snapshots": []}
    for variant in Variant:
        play = Play(case, variant)
        # Nothing of a snapshot depends on who reads it.
        snapshots = tree["snapshots"] = [{"when": "at first", "published": play.snapshots()}]
        tree[variant.value] = []
        for step in case.play:
            published, sent = play.take(step)
            if published:
                snapshots.append({"when": step.when, "published": published})
            tree[variant.value].append({"when": step.when, "sent": sent})
    # By way of JSON: texts that were read from the case know where they stand.
    return yaml_of(json.loads(json.dumps(tree)))


@cache
def known_rules() -> frozenset[str]:
    return frozenset(re.findall(r"^\* \*\*(\w+)\*\*", RULES.read_text(encoding="utf-8"), re.MULTILINE))


def rules_of(case: Path) -> list[str]:
    first = case.read_text(encoding="utf-8").partition("\n")[0]
    head = HEAD.fullmatch(first)
    assert head is not None, f"{case.name} does not say what it shows"
    return head["rules"].split(", ")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_whole__case__clients_are_sent_exactly_this(path: Path) -> None:
    expected = path.with_name(path.stem + ".out.yaml")

    found = f"# What comes of {path.name}; written by `make golden`.\n{outcome(read_case(path))}"

    if REWRITE:
        expected.write_text(found, encoding="utf-8")
    before = expected.read_text(encoding="utf-8")
    if found != before:
        difference = unified_diff(before.splitlines(), found.splitlines(), expected.name, "found", lineterm="", n=6)
        pytest.fail("\n".join(difference), pytrace=False)


def test_whole__cases__are_thirty_and_more_and_name_rules_that_there_are() -> None:
    named = {path.name: set(rules_of(path)) for path in CASES}

    assert len(named) >= 30
    assert {name: unknown for name, rules in named.items() if (unknown := rules - known_rules())} == {}


def test_whole__expected_files__each_has_its_case() -> None:
    expected = {path.name.removesuffix(".out.yaml") for path in FOLDER.glob("*.out.yaml")}

    assert expected == {path.stem for path in CASES}
