"""What resources need of each other, and which of it is missing. Pure: the builder judges whole environments by it, a
strict apply what it puts.

Existence is all that counts. A name that is withheld exists: who refers to it is served, because one bad thing stops no
good thing (architecture.md law 1), and a client that asks for the withheld one learns why.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from xdscore.codes import CATALOGUE, Code
from xdscore.findings import Finding
from xdscore.names import name_problem, xdstp_authority
from xdscore.resource_types import by_word
from xdscore.schema.parse import ParsedResource
from xdscore.snapshot import EntryKey

MISSING: Final = CATALOGUE["XDS2002"]
XDSTP: Final = "xdstp://"


class Authorities:
    """The authorities (who a name belongs to: the first part of `xdstp://AUTHORITY/…`) of the xdstp names in an
    environment. The names are read when they are first asked for.
    """

    def __init__(self, names: Iterable[EntryKey]) -> None:
        self._names = names

    @cached_property
    def ours(self) -> frozenset[str]:
        """The authorities in the xdstp names that exist in the environment."""
        return frozenset(xdstp_authority(name) for _, name in self._names if name.startswith(XDSTP))

    def have_elsewhere(self, target: EntryKey) -> bool:
        """Whether another control plane has the name: it is an xdstp name whose authority occurs in no name of this
        environment, so that clients ask another server for it, by their bootstrap (xRFC TP1).
        """
        name = target[1]
        return name.startswith(XDSTP) and xdstp_authority(name) not in self.ours


@dataclass(frozen=True, slots=True)
class MissingNames:
    """Resources that are referred to and do not exist in the environment: those in `missing` should be in it, those in
    `foreign` belong to another control plane.
    """

    missing: tuple[EntryKey, ...]
    foreign: tuple[EntryKey, ...]


def absent_of(targets: Iterable[EntryKey], present: Container[EntryKey], authorities: Authorities) -> MissingNames:
    """The targets that are not in `present`, in their order; `authorities` tells which belong to another control
    plane.
    """
    missing: list[EntryKey] = []
    foreign: list[EntryKey] = []
    for target in targets:
        if target not in present:
            (foreign if authorities.have_elsewhere(target) else missing).append(target)
    return MissingNames(tuple(missing), tuple(foreign))


def needs_of(parsed: ParsedResource) -> Mapping[EntryKey, str]:
    """The resources that a resource refers to, each with the pointer of the first field that names it. Texts that
    cannot be the name of a resource are left out.
    """
    named: dict[EntryKey, str] = {}
    for reference in parsed.references:
        named.setdefault((reference.type, reference.name), reference.pointer)
    return {target: pointer for target, pointer in named.items() if not name_problem(target[1])}


def target_finding(code: Code, target: EntryKey, environment: str, pointer: str) -> Finding:
    """A finding about a resource that is referred to (`target`), placed at the field that refers to it (`pointer`)."""
    word, name = target
    return code.finding(pointer, title=by_word[word].title, name=name, environment=environment)


def missing_findings(
    needs: Mapping[EntryKey, Mapping[EntryKey, str]],
    present: Container[EntryKey],
    authorities: Authorities,
    environment: str,
) -> Sequence[Finding]:
    """One finding for each name that a resource refers to and that does not exist, in the order of the resources.
    `needs`: for each resource, the names with the pointers of their fields; `present`: the names that exist.
    """
    return [
        target_finding(MISSING, target, environment, places[target]).about(*key)
        for key, places in needs.items()
        for target in absent_of(places, present, authorities).missing
    ]
