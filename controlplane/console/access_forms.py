"""What the forms of access rules and client groups hold: read from a form, and shown in it."""

from dataclasses import dataclass
from typing import Final

from django.http import QueryDict

from controlplane.access.checks import key_problem
from controlplane.access.values import POSITION_FIRST, GroupDraft, RuleDraft
from controlplane.common.errors import InputInvalid
from controlplane.console.access_words import matcher_line, matchers_of
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.resource_types import by_word

EFFECTS: Final = {effect.value: effect for effect in Effect}
MAX_MESSAGE_CHARS: Final = 200  # the column
_TRUSTS: Final = {trust.value: trust for trust in Trust}


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A client group in a list or form, with its matchers, one a line, as people type them."""

    key: str
    trust: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The group's matchers, one a line, to edit in a form."""
        return "\n".join(self.lines)


def group_line(draft: GroupDraft) -> GroupLine:
    """The client group as a list or form shows it."""
    return GroupLine(draft.key, draft.trust.value, tuple(matcher_line(each) for each in draft.matchers))


def group_typed(given: QueryDict) -> GroupLine:
    """A client group as somebody typed it, whether or not it can be one."""
    lines = tuple(given.get("matchers", "").splitlines())
    return GroupLine(given.get("key", ""), given.get("trust", ""), lines)


def group_drafted(given: QueryDict) -> GroupDraft:
    """The client group that the fields of a form describe. Raises InputInvalid."""
    key, trust = given.get("key", "").strip(), _TRUSTS.get(given.get("trust", ""))
    if trust is None:
        raise InputInvalid("Say whether the group rests on what was verified or on what is declared.")
    if problem := key_problem(key):
        raise InputInvalid(f"{problem} Nothing was changed.")
    return GroupDraft(key, matchers_of(given.get("matchers", "")), trust)


def rule_drafted(given: QueryDict) -> RuleDraft:
    """The access rule that the fields of a form describe; without a position."""
    return RuleDraft(
        effect=EFFECTS.get(given.get("effect", ""), Effect.DENY),
        pattern=given.get("pattern", "").strip(),
        client_groups=tuple(given.getlist("groups")),
        types=tuple(word for word in given.getlist("types") if word in by_word),
        message=given.get("message", "").strip()[:MAX_MESSAGE_CHARS],
        enabled=given.get("enabled") == "on",
    )


def position_asked(given: QueryDict) -> int | None:
    """The position that the form of a new rule asks for: before all others, or behind them."""
    return POSITION_FIRST if given.get("place") == "first" else None
