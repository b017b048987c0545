"""Reads a case file: environments, clients, and what happens one step after the other. An unknown key is an error.

Manifests are read where they stand, by the reader that reads what users write. A resource is named "cluster pay": the
word of its type and its name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xdscore.limits import Limits
from xdscore.schema import Document, Media, ParsedResource, Refused, manifests_of, parse, read_text
from xdscore.snapshot import EntryKey

FIRST = "default"


@dataclass(frozen=True, slots=True)
class Access:
    """Who may read what, as a case writes it: `default` effect, client groups and rules."""

    default: str = "allow"
    groups: Sequence[Mapping[str, Any]] = ()
    rules: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """What an operator, or what clients told, changes in one environment; each change is built and published.

    `earlier`: contents that clients acknowledged before `put` was written over them. `acknowledged`: resources whose
    newest content clients acknowledged. `quarantined`: by resource, `refused_by` (the identities of the clients of each
    kind) and `automatic`. `unreadable`: resources whose bytes ADS cannot read now. `unbuilt`: types that cannot be
    built, each with the name of the error. `access` replaces the rules there were.
    """

    earlier: tuple[ParsedResource, ...] = ()
    put: tuple[ParsedResource, ...] = ()
    delete: tuple[EntryKey, ...] = ()
    acknowledged: tuple[EntryKey, ...] = ()
    quarantined: Mapping[EntryKey, Mapping[str, Any]] = field(default_factory=dict)
    released: tuple[EntryKey, ...] = ()
    unreadable: tuple[EntryKey, ...] | None = None
    unbuilt: Mapping[str, str] | None = None
    access: Access | None = None


@dataclass(frozen=True, slots=True)
class EnvironmentCase:
    """An environment: which clients it is for, and what is in it at first. None of it: nothing is published yet."""

    selectors: Sequence[Mapping[str, Any]]
    written: Written | None


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens, in a sentence (`when`), and how the clients in `by` (none named: all) behave in it.

    `ask`, `leave`: names by type. `repeat`: types of which the last request is sent once more (SotW). `reconnect`: the
    stream ends before the change and opens again after it. `refuse`: by resource, the text of the NACK of each response
    that holds other content of it than the client acknowledged (`holding`: only if this text is in that), or of one
    with errors alone, one of those. `silent`: types that are not answered; `answer`: types
    of which the last response is acknowledged now. `nonce`: that of the requests of `ask`, in place of the newest.
    `wait`: seconds that pass before all of it.
    """

    when: str
    by: Sequence[str] = ()
    environment: str = FIRST
    written: Written | None = None
    ask: Mapping[str, Sequence[str]] = field(default_factory=dict)
    leave: Mapping[str, Sequence[str]] = field(default_factory=dict)
    repeat: Sequence[str] = ()
    reconnect: bool = False
    refuse: Mapping[str, str] = field(default_factory=dict)
    holding: str = ""
    silent: Sequence[str] = ()
    answer: Sequence[str] = ()
    nonce: str | None = None
    wait: float = 0


@dataclass(frozen=True, slots=True)
class Case:
    """A whole case; `clients` by name, each with the fields of its node and `identity` where it proved one."""

    environments: Mapping[str, EnvironmentCase]
    clients: Mapping[str, Mapping[str, Any]]
    play: tuple[Step, ...]
    repeat_errors: bool
    limits: Limits


def read_case(path: Path) -> Case:
    """The case of this file. Raises ValueError with whatever is wrong with it."""
    read = read_text(path.read_bytes(), Media.YAML)
    if read.findings:
        raise ValueError(f"{path.name}: {read.findings}")
    document = read.documents[0]
    tree: Any = document.tree
    if unknown := tree.keys() - {"environments", "clients", "play", "repeat_errors", "limits"}:
        raise ValueError(f"{path.name}: {unknown} mean nothing")
    return Case(
        {key: _environment(document, key, each or {}) for key, each in tree["environments"].items()},
        tree["clients"],
        tuple(_step(document, number, dict(each)) for number, each in enumerate(tree["play"])),
        tree.get("repeat_errors", True),
        Limits(**tree.get("limits", {})),
    )


def key_of(resource: str) -> EntryKey:
    """`cluster pay` as the key of a resource."""
    word, _, name = resource.partition(" ")
    return word, name


def _environment(document: Document, key: str, tree: dict[str, Any]) -> EnvironmentCase:
    selectors = tree.pop("selectors", ())
    return EnvironmentCase(selectors, _written(document, f"/environments/{key}", tree) if tree else None)


_CHANGES = frozenset(Written.__dataclass_fields__)


def _step(document: Document, number: int, tree: dict[str, Any]) -> Step:
    changes = {key: tree.pop(key) for key in list(tree) if key in _CHANGES}
    return Step(**tree, written=_written(document, f"/play/{number}", changes) if changes else None)


def _written(document: Document, place: str, tree: Mapping[str, Any]) -> Written:
    if unknown := tree.keys() - _CHANGES:
        raise ValueError(f"{place}: {unknown} mean nothing")
    unreadable = tree.get("unreadable")
    return Written(
        earlier=_resources(document, f"{place}/earlier") if "earlier" in tree else (),
        put=_resources(document, f"{place}/put") if "put" in tree else (),
        delete=tuple(map(key_of, tree.get("delete", ()))),
        acknowledged=tuple(map(key_of, tree.get("acknowledged", ()))),
        quarantined={key_of(name): how or {} for name, how in tree.get("quarantined", {}).items()},
        released=tuple(map(key_of, tree.get("released", ()))),
        unreadable=None if unreadable is None else tuple(map(key_of, unreadable)),
        unbuilt=tree.get("unbuilt"),
        access=Access(**tree["access"]) if "access" in tree else None,
    )


def _resources(document: Document, pointer: str) -> tuple[ParsedResource, ...]:
    manifests, findings = manifests_of(document, pointer)
    parsed = [parse(manifest) for manifest in manifests]
    wrong = (*findings, *(finding for each in parsed if isinstance(each, Refused) for finding in each.findings))
    if wrong:
        raise ValueError("; ".join(f"line {each.line}: {each.code} {each.detail}" for each in wrong))
    return tuple(each for each in parsed if isinstance(each, ParsedResource))
