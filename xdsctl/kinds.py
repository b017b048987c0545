"""Kinds of things beside resources, and the words people have for them: `get env`, `get environments` are one command.

A command about one kind is named by its verb and the kind's one word, as in `get audit`; where the second word is none
of a kind, it is the type of a resource (`get cluster`).
"""

from collections.abc import Collection, Sequence
from typing import Final

from xdscore.resource_types import RESOURCE_TYPES

ENVIRONMENT: Final = "environment"
GROUP: Final = "group"
RULE: Final = "rule"
TOKEN: Final = "token"  # noqa: S105 - a word
CLIENT_TOKEN: Final = "client-token"  # noqa: S105 - a word
AUDIT: Final = "audit"

_WORDS: Final = {
    ENVIRONMENT: ("environments", "env", "envs"),
    GROUP: ("groups", "client-group", "client-groups"),
    RULE: ("rules", "access-rule", "access-rules"),
    TOKEN: ("tokens", "api-token", "api-tokens"),
    CLIENT_TOKEN: ("client-tokens",),
    AUDIT: (),
}
_KINDS: Final = {word: kind for kind, more in _WORDS.items() for word in (kind, *more)}
_LISTED: Final = ("environments", "groups", "rules", "tokens", "client-tokens", "audit")


def command_words(arguments: Sequence[str], commands: Collection[str]) -> list[str]:
    """The arguments with the name of the command in one piece: `get envs shop` becomes `get environment`, `shop`."""
    if len(arguments) > 1:
        named = f"{arguments[0]} {_KINDS.get(arguments[1], '')}"
        if named in commands:
            return [named, *arguments[2:]]
    return list(arguments)


def words_beginning(incomplete: str) -> list[str]:
    """The words that may follow `get` and begin like this, for shell completion: types of resources, and kinds."""
    words = (*(each.word for each in RESOURCE_TYPES), *_LISTED)
    return [word for word in words if word.startswith(incomplete)]
