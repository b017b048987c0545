"""`Did you mean …?`: which names are like one that is not there.

The server is asked for them with the token of the command, so that nobody is told a name that he may not read.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from xdscore.resource_types import RESOURCE_TYPES
from xdsctl.api import Api
from xdsctl.exits import CommandError

_AT_MOST: Final = 2
_LIKENESS: Final = 0.7  # a letter too many, too few, or two exchanged, in words of four letters and more
# difflib takes about a second for 20,000 names, and each thousand is a request.
_NAMES: Final = 2_000
_CHARS: Final = 200
_PREFIX: Final = "/api/v1/"
# Lists whose items a path names, and the member that has the name.
_LISTS: Final = {"client-groups": "key", "rules": "id"}


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """The question ` Did you mean 'pay'?` about what is most like a word; empty where nothing is."""
    near = get_close_matches(word[:_CHARS], [each for each in choices if each != word], n=_AT_MOST, cutoff=_LIKENESS)
    return f" Did you mean {' or '.join(repr(each) for each in near)}?" if near else ""


def question_about(api: Api, error: CommandError) -> str:
    """The question `did_you_mean` asks about what a request named and the server does not have; empty where nothing
    that the token may read is like it, or the error is about something else.
    """
    asked = urlsplit(error.asked)
    parts = [unquote(part) for part in asked.path.partition(_PREFIX)[2].split("/")]
    with suppress(CommandError):
        return _unknown_type(parts, parse_qs(asked.query)) or _unknown_environment(api, parts) or _absent(api, parts)
    return ""


def _unknown_type(parts: list[str], query: dict[str, list[str]]) -> str:
    word = parts[3] if parts[2:3] == ["resources"] and len(parts) > 3 else query.get("type", [""])[0]
    types = [each.word for each in RESOURCE_TYPES]
    known = not word or "/" in word or word in types  # or a type URL
    return "" if known else did_you_mean(word, types)


def _unknown_environment(api: Api, parts: list[str]) -> str:
    wanted = parts[1] if parts[0] == "environments" and len(parts) > 1 else api.context.environment
    keys = [str(each["key"]) for each in _some(api, "/environments")]
    return "" if wanted in keys else did_you_mean(wanted, keys)


def _absent(api: Api, parts: list[str]) -> str:
    match parts:
        case ["environments", _, "resources", word, name, *_]:
            rows = _some(api, api.environment("/resources"), type=word)
            return did_you_mean(name, (str(row["name"]) for row in rows))
        case ["environments", _, ("client-groups" | "rules") as items, name, *_]:
            rows = _some(api, api.environment(f"/{items}"))
            return did_you_mean(name, (str(row[_LISTS[items]]) for row in rows))
        case ["clients", name, *_]:
            rows = _some(api, "/clients", environment=api.context.environment)
            return did_you_mean(name, {str(row["node_id"]) for row in rows})
    return ""


def _some(api: Api, path: str, **parameters: Any) -> Iterator[dict[str, Any]]:
    return islice(api.pages(path, **parameters), _NAMES)
