"""What an environment asks of those who change its resources, access rules and client groups: a change set that others
reviewed (interfaces.md section 8). Pure.

Values, and the one reader of the JSON in which the API, the console and the database spell them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from controlplane.accounts.principal import Role
from controlplane.catalog.json_reading import Reader
from controlplane.common.errors import Conflict, InputInvalid

MAX_APPROVALS: Final = 10
REVIEWED: Final = "changes of resources, access rules and client groups"
"""What a review is asked for, in texts."""


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """What an environment asks of those who change it.

    `required`: resources, access rules and client groups are changed by a change set alone, which others approved.
    `approvals`: how many people have to approve a change set before it counts as approved.
    `self_approval`: who made or edited a change set may approve it, too.
    `break_glass_role`: who has it may write during a freeze, and without review, with a reason that everybody is told.
    """

    required: bool = False
    approvals: int = 1
    self_approval: bool = False
    break_glass_role: Role = Role.OPERATOR

    def as_json(self) -> dict[str, object]:
        """The settings as the JSON object that `review_from_json` reads."""
        return {
            "required": self.required,
            "approvals": self.approvals,
            "self_approval": self.self_approval,
            "break_glass_role": self.break_glass_role.value,
        }


DEFAULT_REVIEW: Final = ReviewSettings()
# Whoever has another one alone writes nothing that a freeze or the review refuses, so that anybody could break them.
BREAKERS: Final = (Role.EDITOR, Role.ACCESS_EDITOR, Role.OPERATOR, Role.ADMIN)


class WriteUnreviewed(Conflict):
    """A write of resources, rules or groups was refused because the environment takes reviewed change sets only.
    `role`: who has it may write nevertheless.
    """

    code: ClassVar[str] = "XDS3031"

    def __init__(self, environment: str, role: Role) -> None:
        super().__init__(
            f"Environment '{environment}' takes {REVIEWED} by a reviewed change set only. Propose it as one: POST "
            f"/api/v1/environments/{environment}/change-sets, 'xdsctl changesets create', or the page 'Change sets'. "
            f"In an emergency, whoever has the role {role.value} writes nevertheless by saying why (over "
            "REST in break_glass), which everybody is told of. Nothing was changed."
        )
        self.environment = environment
        self.role = role


def review_from_json(data: object, *, where: str = "/review") -> ReviewSettings:
    """The settings in this JSON object; what it does not name has its default. Raises InputInvalid with a finding for
    each value that is wrong or unknown. `where`: the JSON pointer of the object, for the findings.
    """
    reader = Reader()
    given = reader.object(data, where)
    given.only("required", "approvals", "self_approval", "break_glass_role")
    required = given.flag("required", DEFAULT_REVIEW.required)
    approvals = given.number("approvals", DEFAULT_REVIEW.approvals, 1, MAX_APPROVALS)
    self_approval = given.flag("self_approval", DEFAULT_REVIEW.self_approval)
    word = given.data.get("break_glass_role", DEFAULT_REVIEW.break_glass_role.value)
    role = next((role for role in BREAKERS if role.value == word), None)
    if role is None:
        given.wrong("break_glass_role", f"This must be one of: {', '.join(role.value for role in BREAKERS)}.")
    if reader.findings:
        raise InputInvalid(
            "The settings of review are not valid. Nothing was changed.", findings=tuple(reader.findings)
        )
    return ReviewSettings(required, approvals, self_approval, role or DEFAULT_REVIEW.break_glass_role)


def review_stored(data: Mapping[str, object]) -> ReviewSettings:
    """The settings that a column of the database holds."""
    return review_from_json(data) if data else DEFAULT_REVIEW
