"""Why a client is refused a name, beyond the number of the rule: the rule's own words, the group it matches through,
who changed it last, and who may change it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.access.choices import EditSubject
from controlplane.access.selectors import edit_done, edit_list, group_list, group_state, rule_get
from controlplane.access.values import EditDone, GroupDraft
from controlplane.accounts.people import people_who_may
from controlplane.accounts.principal import Principal, Role
from controlplane.clients.selectors import client_get
from controlplane.common.errors import NotFound
from controlplane.console.access_words import matcher_line
from controlplane.explain.values import Ladder, RungState

_MAX_PEOPLE: Final = 5


@dataclass(frozen=True, slots=True)
class Through:
    """A client group by which an access rule is for the client: its key, its matcher that fits the client, as people
    type it, and what membership rests on.
    """

    group: str
    matcher: str
    trust: str


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a client may not read a name, and who can change that.

    `rule`: the number of the rule that denies or hides the name; 0: the environment's default does, or the rule is
    gone.
    `message`: the rule's text for clients.
    `everybody`: the rule is for all clients; else `through` are the client's groups that it is for.
    `edit`: the last entry of the rule's history; None where there is none.
    `editors`: people who may change access; empty where the reader may not see the roles of others.
    `groups`: the client's groups to which the name could be allowed.
    """

    rule: int
    message: str = ""
    everybody: bool = False
    through: tuple[Through, ...] = ()
    edit: EditDone | None = None
    editors: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def denial_of(ladder: Ladder, *, environment_key: str, principal: Principal) -> Denial | None:
    """Why access rules refuse the client, by the rules as they are now; None where the answer `ladder` does not fail
    for access. `principal`: the reader.
    """
    access = next(rung for rung in ladder.rungs if rung.title == "access")
    if access.state is not RungState.FAIL:
        return None
    number = next((int(link.parts[-1]) for link in ladder.links if link.title == "rule"), 0)
    client = next((link.parts[-1] for link in ladder.links if link.title == "client"), "")
    own = _groups_of(client, environment_key) if client else ()
    editors = people_who_may(role=Role.ACCESS_EDITOR, environment=environment_key, limit=_MAX_PEOPLE)
    seen = editors if principal.may(Role.ADMIN, None) else ()
    every = tuple(group.key for group, _ in own)
    if not number:
        return Denial(0, editors=seen, groups=every)
    try:
        draft = rule_get(environment_key=environment_key, rule_id=number).draft
    except NotFound:
        # It was deleted, and clients are told so until the next build.
        return Denial(0, editors=seen, groups=every)
    through = tuple(
        Through(group.key, matcher, group.trust.value) for group, matcher in own if group.key in draft.client_groups
    )
    last = edit_list(environment_key=environment_key, subject=EditSubject.RULE, subject_id=number).first()
    return Denial(
        number,
        draft.message,
        everybody=not draft.client_groups,
        through=through,
        edit=edit_done(last) if last is not None else None,
        editors=seen,
        groups=tuple(each.group for each in through) or every,
    )


def _groups_of(client: str, environment_key: str) -> Sequence[tuple[GroupDraft, str]]:
    """The client groups that a client belongs to, each with the first matcher that fits, as people type it. `client`:
    its id.
    """
    known = client_get(public_id=client)
    facts = known.facts
    drafts = (group_state(row).draft for row in group_list(environment_key=environment_key))
    return [
        (draft, next(matcher_line(each) for each in draft.matchers if each.fits(facts)))
        for draft in drafts
        if draft.group.has(facts)
    ]
