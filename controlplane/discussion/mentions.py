"""Finds whom a text mentions: `@` and a login. Pure; whether there is such a person is for others to say."""

from typing import Final

MAX_MENTIONS: Final = 10
_MAX_LOGIN: Final = 150
# What a login may have besides letters and digits (Django, `UnicodeUsernameValidator`).
_IN_LOGIN: Final = frozenset("@.+-_")
_ENDS: Final = "@.+-_"


def mentioned(text: str) -> tuple[tuple[str, ...], ...]:
    """The mentions in a text, each once and at most MAX_MENTIONS: for each the logins that it may mean, the likeliest
    first, because a full stop may belong to the sentence. An `@` within a word, as in a mail address, mentions nobody.
    """
    found: dict[tuple[str, ...], None] = {}
    place = text.find("@")
    while place >= 0 and len(found) < MAX_MENTIONS:
        end = place + 1
        while end < len(text) and end - place <= _MAX_LOGIN and (text[end].isalnum() or text[end] in _IN_LOGIN):
            end += 1
        login = text[place + 1 : end]
        if login.rstrip(_ENDS) and not (place and (text[place - 1].isalnum() or text[place - 1] in _IN_LOGIN)):
            found[tuple(dict.fromkeys((login, login.rstrip(_ENDS))))] = None
        place = text.find("@", end)
    return tuple(found)
