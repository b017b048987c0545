"""What a role can be limited to: resources of an owner, of some types, with some names. Pure values.

No mistake makes a limit wider: an empty list takes nothing, and `limit_of` refuses it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controlplane.common.roles import Role
from xdscore.names import any_glob_matches, canonical, glob_parts, name_problem
from xdscore.resource_types import by_word

LIMITED_ROLES: Final = frozenset({Role.VIEWER, Role.EDITOR})
"""The roles that are about single resources. Every other role is about an environment as a whole."""
LIMIT_KEYS: Final = ("owner", "types", "names")
MAX_LIMIT_NAMES: Final = 20
MAX_LIMIT_CHARS: Final = 1_000  # the column, which is part of a unique index
MAX_OWNER_CHARS: Final = 150  # the column of resources


@dataclass(frozen=True, slots=True, order=True)
class Limit:
    """Resources: those of `owner`, of one of `types` (their short words), whose name one of `names` matches; a star in
    a name stands for any run of characters. All given parts must hold; a part that is None says nothing.
    """

    owner: str | None = None
    types: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None

    def takes(self, word: str, name: str, owner: str) -> bool:
        """Whether the resource of the type `word` with this name and owner (empty: it has none) is within the limit."""
        return (
            (self.owner is None or self.owner == owner)
            and (self.types is None or word in self.types)
            and (self.names is None or any_glob_matches(self.names, name))
        )

    @property
    def words(self) -> str:
        """The limit for people, such as "cluster, route 'pay*' of owner 'pay'"."""
        types = ", ".join(self.types) if self.types is not None else "resources"
        names = " " + ", ".join(f"'{name}'" for name in self.names) if self.names is not None else ""
        owner = f" of owner '{self.owner}'" if self.owner is not None else ""
        return f"{types}{names}{owner}"

    def as_json(self) -> dict[str, object]:
        """The given parts of the limit, as a scope has them in bodies and in the table of tokens."""
        given = {"owner": self.owner, "types": self.types, "names": self.names}
        return {
            key: list(value) if isinstance(value, tuple) else value for key, value in given.items() if value is not None
        }

    @property
    def text(self) -> str:
        """The limit in one line of ASCII, the same for equal limits; `limit_stored` reads it."""
        return json.dumps(self.as_json(), sort_keys=True, separators=(",", ":"))


def limit_of(
    *, owner: str | None = None, types: Iterable[str] | None = None, names: Iterable[str] | None = None
) -> Limit | None:
    """The limit with these parts; None where none is given. Raises ValueError with one sentence for each problem."""
    if owner is None and types is None and names is None:
        return None
    words = tuple(sorted(set(types))) if types is not None else None
    patterns = tuple(sorted({canonical(name) for name in names})) if names is not None else None
    limit = Limit(owner, words, patterns)
    if problems := [*_owner_problems(owner), *_type_problems(words), *_name_problems(patterns)]:
        raise ValueError(" ".join(problems))
    if len(limit.text) > MAX_LIMIT_CHARS:
        raise ValueError(f"A limit has at most {MAX_LIMIT_CHARS} characters, written as JSON.")
    return limit


def limit_stored(scope: Mapping[str, Any]) -> Limit | None:
    """The limit of a scope that is stored in this JSON object; None where it has no part of one."""
    return _limit(scope) if any(key in scope for key in LIMIT_KEYS) else None


def limit_read(text: str) -> Limit | None:
    """The limit in a column that has `Limit.text`; None for an empty one."""
    return _limit(json.loads(text)) if text else None


def _limit(parts: Mapping[str, Any]) -> Limit:
    types, names = parts.get("types"), parts.get("names")
    return Limit(
        parts.get("owner"), tuple(types) if types is not None else None, tuple(names) if names is not None else None
    )


def limit_problem(role: Role, limit: Limit | None) -> str:
    """Why a role cannot have this limit, as a sentence; empty when it can, or where there is none."""
    if limit is None or role in LIMITED_ROLES:
        return ""
    able = " and ".join(sorted(each.value for each in LIMITED_ROLES))
    return f"The role {role.value} is about a whole environment: only {able} can be limited by owner, types and names."


def _owner_problems(owner: str | None) -> Sequence[str]:
    if owner is None or (owner.strip() and owner.isprintable() and len(owner) <= MAX_OWNER_CHARS):
        return ()
    return (f"An owner is one line of 1 to {MAX_OWNER_CHARS} printable characters.",)


def _type_problems(types: Sequence[str] | None) -> Sequence[str]:
    if types is None or (types and all(word in by_word for word in types)):
        return ()
    return (f"Types are one or more of {', '.join(sorted(by_word))}.",)


def _name_problems(names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
        return ()
    if not 0 < len(names) <= MAX_LIMIT_NAMES:
        return (f"Names are 1 to {MAX_LIMIT_NAMES} names or patterns.",)
    return [problem for name in names if (problem := _pattern_problem(name))]


def _pattern_problem(name: str) -> str:
    if name == "*":
        return "The pattern '*' takes every name: leave names out instead."
    if problem := name_problem(name):
        return f"A name {problem}."
    # With one star, beginning and end decide, in every database alike.
    if len(glob_parts(name)) > 2:
        return "A name has at most one star, such as 'pay*'."
    return ""
