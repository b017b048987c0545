"""Kinds of things beside resources, and the words people have for them: `get env`, `get environments` are one command.

A command about one kind is named by its verb and the kind's one word, as in `get audit`; where the second word is none
of a kind, it is the type of a resource (`get cluster`).
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

import typer

from xdscore.resource_types import RESOURCE_TYPES
from xdsctl.exits import JsonObject, UsageError

ENVIRONMENT: Final = "environment"
GROUP: Final = "group"
RULE: Final = "rule"
TOKEN: Final = "token"  # noqa: S105 - a word
CLIENT_TOKEN: Final = "client-token"  # noqa: S105 - a word
AUDIT: Final = "audit"

# Besides the kind's own word; each of them, and each kind, may have the s of its plural.
_OTHER_WORDS: Final = {"env": ENVIRONMENT, "client-group": GROUP, "access-rule": RULE, "api-token": TOKEN}


def command_words(arguments: Sequence[str], commands: Collection[str]) -> list[str]:
    """The arguments, in which a command's name of two words becomes one: `get envs shop` becomes `get environment`,
    `shop`.
    """
    if len(arguments) > 1:
        word = arguments[1].removesuffix("s")
        named = f"{arguments[0]} {_OTHER_WORDS.get(word, word)}"
        if named in commands:
            return [named, *arguments[2:]]
    return list(arguments)


def words_beginning(ctx: typer.Context, incomplete: str) -> list[str]:
    """The words that begin with `incomplete` and may follow `get`, for shell completion: types of resources, and other
    kinds of things such as groups.
    """
    commands: Any = ctx.find_root().command
    kinds = (name.removeprefix("get ") for name in commands.commands if name.startswith("get "))
    words = (*(each.word for each in RESOURCE_TYPES), *(kind if kind == AUDIT else f"{kind}s" for kind in kinds))
    return [word for word in words if word.startswith(incomplete)]


def resource_named(text: str, option: str) -> JsonObject:
    """The type and the name in a text like `cluster/pay`, as an object of the API. Raises UsageError for any other
    text; the error names `option`.
    """
    word, slash, name = text.partition("/")
    if not slash or not word or not name:
        raise UsageError(f"{option} takes TYPE/NAME, such as cluster/pay; '{text}' is none.")
    return {"type": word, "name": name}
