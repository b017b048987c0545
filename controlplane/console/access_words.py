"""Access rules and client groups in sentences, and what forms say of them. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from controlplane.access.values import RuleDraft
from controlplane.common.errors import InputInvalid
from xdscore.access import Effect
from xdscore.codes import shown
from xdscore.environment_choice import Selector
from xdscore.resource_types import by_word

_METADATA: Final = "metadata."
# As people and as the API call them.
_FIELDS: Final = {
    "identity": "identity",
    "node_id": "node_id",
    "cluster": "node_cluster",
    "node_cluster": "node_cluster",
}
_PART: Final = re.compile(r"\s*([A-Za-z_][\w.-]*)=(\S+)")
_MAX_MATCHERS: Final = 100


def rule_sentence(draft: RuleDraft) -> str:
    """A sentence that says for whom an access rule is, what it is about, and whether it allows, denies or hides
    that.
    """
    who = f"Clients in {any_of(draft.client_groups)}" if draft.client_groups else "All clients"
    kinds = tuple(f"{by_word[word].title.lower()}s" for word in draft.types)
    what = any_of(kinds, " and ") if kinds else "everything" if draft.pattern == "*" else "whatever"
    named = "" if draft.pattern == "*" else f" named {draft.pattern}" if kinds else f" is named {draft.pattern}"
    match draft.effect:
        case Effect.ALLOW:
            return f"{who} may read {what}{named}."
        case Effect.DENY:
            return f"{who} may not read {what}{named}, and are told so."
        case Effect.HIDE:
            return f"{who} are told that {what}{named} {'do' if kinds else 'does'} not exist."


def matcher_line(matcher: Selector) -> str:
    """A matcher as one line of text, which `matchers_of` can read."""
    parts = [
        f"{word}={value}"
        for word, value in (
            ("identity", matcher.identity),
            ("node_id", matcher.node_id),
            ("cluster", matcher.node_cluster),
        )
        if value is not None
    ]
    return " ".join((*parts, *(f"{_METADATA}{key}={value}" for key, value in matcher.metadata.items())))


def matchers_of(text: str) -> tuple[Selector, ...]:
    """The matchers in a text: one for each line that is not empty, such as `cluster=edge metadata.zone=eu-*`. A client
    fits one when all patterns of the line match.

    Raises InputInvalid naming the first line that cannot be read.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise InputInvalid("A group needs at least one line that says whom it is of. Nothing was changed.")
    if len(lines) > _MAX_MATCHERS:
        raise InputInvalid(f"At most {_MAX_MATCHERS} lines are taken. Nothing was changed.")
    return tuple(_matcher(number, line) for number, line in lines)


def _matcher(number: int, line: str) -> Selector:
    given: dict[str, str] = {}
    metadata: dict[str, str] = {}
    place = 0
    while line[place:].strip():
        found = _PART.match(line, place)
        key = found[1] if found else ""
        into = metadata if key.startswith(_METADATA) else given
        name = key.removeprefix(_METADATA) if into is metadata else _FIELDS.get(key, "")
        if found is None or not name or name in into:
            raise InputInvalid(
                f"Line {number}, '{shown(line.strip(), 60)}', is not read. Write one or more of identity=…, node_id=…, "
                "cluster=… and metadata.KEY=…, each once, with blanks between. Nothing was changed."
            )
        into[name] = found[2]
        place = found.end()
    return Selector(**given, metadata=metadata)


def any_of(words: Sequence[str], joined: str = " or ") -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])}{joined}{words[-1]}"
