"""What the model of change sets knows of one rule and one group: which row each is, and how often it was edited."""

from dataclasses import dataclass, field

from controlplane.access.choices import EditSubject
from controlplane.access.selectors import access_state
from controlplane.access.services import group_create, group_delete, group_update, rule_create, rule_delete, rule_update
from controlplane.access.values import GroupDraft, RuleDraft, Wish
from controlplane.accounts.principal import Principal
from controlplane.catalog.guarding import Consent
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector

RULE, GROUP = "rule", "edge"
FIRE = Consent(break_glass="fire")
Base = tuple[int | None, int]
"""The row that a set was made from, None for none, and how often it had been edited; 0: it was not there."""


def rule(content: int) -> RuleDraft:
    return RuleDraft(Effect.DENY, "x", 10, message=str(content))


def group(content: int) -> GroupDraft:
    return GroupDraft(GROUP, (Selector(node_cluster=f"e{content}"),), Trust.DECLARED)


@dataclass
class Row:
    """A rule or group: `row`, the id under which it is there now, None for none; `edits` of each id that it ever had;
    `content`, None while it is not there. `by_key`: others may have the same key one after another.
    """

    by_key: bool
    row: int | None = None
    content: int | None = None
    edits: dict[int, int] = field(default_factory=dict)

    def base(self) -> Base:
        """What a set that names it now is made from."""
        return self.row, self.edits.get(self.row or 0, 0) if self.content is not None else 0

    def moved(self, base: Base) -> bool:
        """Whether it was written since a set was made from `base`."""
        row, edits = base
        is_there = self.content is not None and (row is None or row == self.row)
        return edits != (self.edits[self.row or 0] if is_there else 0)

    def ours(self, base: Base) -> Base:
        """What a set is made from that keeps its own."""
        return self.base() if self.content is not None else (base[0], 0)

    def write(self, content: int | None, row: int | None = None) -> bool:
        """One edit; returns whether that changed anything. `row`: the id under which it is made, None for a new one."""
        if content == self.content:
            return False
        if self.content is None and self.by_key:
            self.row = row if row is not None else -1 - len(self.edits)
        self.content = content
        self.edits[self.row or 0] = self.edits.get(self.row or 0, 0) + 1
        return True


class Access:
    """The rule and the group of the model beside those of the database."""

    def __init__(self, writer: Principal) -> None:
        self.writer = writer
        made = rule_create(environment_key="default", draft=rule(1), actor=writer)
        self.rows = {RULE: Row(by_key=False), GROUP: Row(by_key=True)}
        self.rows[RULE].row = made.id
        self.rows[RULE].write(1)

    def wish(self, name: str, content: int | None) -> Wish:
        if name == RULE:
            return Wish(EditSubject.RULE, "", self.rows[RULE].row, rule(content) if content is not None else None)
        return Wish(EditSubject.GROUP, GROUP, None, group(content) if content is not None else None)

    def named(self, name: str) -> str:
        return str(self.rows[RULE].row) if name == RULE else GROUP

    def write_directly(self, name: str, content: int | None) -> bool:
        """Somebody writes it without a change set; what cannot be written so is left alone."""
        row = self.rows[name]
        here = {"environment_key": "default", "actor": self.writer, "consent": FIRE}
        if row.content is None and (content is None or name == RULE):
            return False
        if name == RULE:
            number = row.row or 0
            if content is None:
                rule_delete(rule_id=number, **here)  # type: ignore[arg-type]
            else:
                rule_update(rule_id=number, draft=rule(content), **here)  # type: ignore[arg-type]
        elif content is None:
            group_delete(key=GROUP, **here)  # type: ignore[arg-type]
        elif row.content is None:
            group_create(draft=group(content), **here)  # type: ignore[arg-type]
        else:
            group_update(key=GROUP, draft=group(content), **here)  # type: ignore[arg-type]
        return row.write(content)

    def check(self) -> None:
        """The database has what the model has."""
        state = access_state(environment_key="default")
        found = {RULE: [*state.rules.values()], GROUP: [*state.groups.values()]}
        for name, draft in ((RULE, rule), (GROUP, group)):
            content = self.rows[name].content
            assert found[name] == ([] if content is None else [draft(content).as_json()])
