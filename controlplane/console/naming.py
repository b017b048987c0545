"""The names that a text in the editor can refer to: of resources that are there and that its writer may read, and of
those that are written with it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from controlplane.accounts.principal import Allowed
from controlplane.catalog.selectors import resource_names
from xdscore.names import name_problem
from xdscore.resource_types import RESOURCE_TYPES, ResourceType
from xdscore.schema.completion import MAX_SUGGESTIONS, names_written
from xdscore.schema.references import NAMED_TYPES

LISTED: Final = 50
"""How many names of each type are listed beside the editor."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The first names of resources of one type, each with what there is to say of it; `more`: there are others."""

    kind: ResourceType
    names: dict[str, str]
    more: bool


@dataclass(frozen=True, slots=True)
class Naming:
    """Which names can be referred to where somebody edits.

    allowed: the resources of the environment that they may read.
    text: what they write.
    beside: type and name of what else is written with it.
    """

    environment_key: str
    allowed: Allowed
    text: str
    beside: Collection[tuple[str, str]] = ()

    def names_of(self, kind: ResourceType, part: str, limit: int = MAX_SUGGESTIONS) -> dict[str, str]:
        """The names of this type in which `part` stands, in either case; `limit` at most. One query."""
        found = dict.fromkeys(names_written(self.text, kind), "in this text")
        for word, name in self.beside:
            if word == kind.word:
                found.setdefault(name, "in this change set")
        found = {name: said for name, said in found.items() if part.lower() in name.lower() and not name_problem(name)}
        stored = resource_names(
            environment_key=self.environment_key, kind=kind, part=part, allowed=self.allowed, limit=limit
        )
        for name in stored:
            found.setdefault(name, "")
        return dict(list(found.items())[:limit])

    def listed(self, part: str) -> tuple[Listed, ...]:
        """The names in which `part` stands, of each type that others name. One query for each type."""
        kinds = [kind for kind in RESOURCE_TYPES if kind.word in NAMED_TYPES]
        found = [(kind, self.names_of(kind, part, LISTED + 1)) for kind in kinds]
        return tuple(
            Listed(kind, dict(list(names.items())[:LISTED]), len(names) > LISTED) for kind, names in found if names
        )
