"""Change sets: what is proposed in an environment, and how each of them stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final
from uuid import UUID

from django.urls import path

from controlplane.changesets.filtering import SetFilter
from controlplane.changesets.selectors import SetDetail, SetPage, change_set_get, change_sets_of, review_counts
from controlplane.changesets.values import SetState, SetView
from controlplane.common.errors import NotFound
from controlplane.console.lists import ListPage, ListShown
from controlplane.console.pages import Page
from controlplane.console.places import Place, Section
from controlplane.console.states import look_of, look_of_set
from controlplane.listing.frames import SINCE, UNTIL, Asked, Filter, Frame, Kind, Option
from controlplane.listing.tables import Column

_SIZE: Final = 50
_MAX_CURSOR_CHARS: Final = 18  # a row id


@dataclass(frozen=True, slots=True)
class SetLine:
    """A change set in the list."""

    view: SetView

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge that shows how the change set stands."""
        return look_of_set(self.view.state)

    @property
    def missing(self) -> int:
        """How many more people have to approve it."""
        return max(0, self.view.needed - self.view.approvals)


class ChangeSetsPage(ListPage):
    """The page with the change sets of an environment, newest first."""

    template = "changesets/list.html"
    frame = Frame(
        "change-sets",
        "change sets",
        "change-sets",
        (
            Filter("text", "Title or message contains", max_chars=150, width="wide"),
            Filter(
                "state",
                "State",
                Kind.CHOICE,
                tuple(Option(each.value, look_of(look_of_set(each)).label) for each in SetState),
            ),
            Filter("author", "Author", max_chars=150),
            SINCE,
            UNTIL,
        ),
    )
    columns: ClassVar[Sequence[Column[SetView]]] = (
        Column("change_set", lambda view: view.id),
        Column("title", lambda view: view.title),
        Column("message", lambda view: view.message),
        Column("state", lambda view: view.state.value),
        Column("authors", lambda view: ", ".join(view.authors)),
        Column("resources", lambda view: view.resources),
        Column("rules_and_groups", lambda view: view.access),
        Column("approvals", lambda view: view.approvals),
        Column("approvals_needed", lambda view: view.needed),
        Column("created_at", lambda view: view.created_at),
        Column("edited_at", lambda view: view.edited_at),
        Column("ended_at", lambda view: view.ended_at),
    )

    def shown(self, asked: Asked) -> ListShown:
        """One page of the change sets that fit the filters."""
        after = self.request.GET.get("after", "")[:_MAX_CURSOR_CHARS]
        found = self._found(asked, after=after, limit=_SIZE)
        context = {
            "lines": [SetLine(each) for each in found.rows],
            "next": found.after,
            "later": bool(after),
            "waiting": review_counts(environment_keys=[self.here.key])[self.here.key],
            "review": self.here.policy.review,
        }
        return ListShown(context)

    def lines(self, asked: Asked, limit: int) -> Sequence[SetView]:
        """The first change sets that fit the filters."""
        return self._found(asked, after="", limit=limit).rows

    def _found(self, asked: Asked, *, after: str, limit: int) -> SetPage:
        return change_sets_of(
            environment_key=self.here.key,
            states=(SetState(asked.text("state")),) if asked.text("state") else (),
            wanted=SetFilter(asked.text("text"), asked.text("author"), asked.since, asked.until),
            after=after,
            limit=limit,
        )


def set_entered(page: Page, change_set_id: UUID) -> SetDetail:
    """The change set with this id; sets the page's environment to its own. Raises NotFound, with one text, where there
    is no such change set and where the user may not see it.
    """
    try:
        detail = change_set_get(public_id=str(change_set_id))
        page.enter(detail.view.environment)
    except NotFound:
        raise NotFound(f"There is no change set '{change_set_id}'.") from None
    return detail


urlpatterns = [
    path("e/<str:environment_key>/change-sets", ChangeSetsPage.as_view(), name="change-sets"),
]
PLACES = (
    Place(
        Section.CONFIGURATION,
        25,
        "Change sets",
        "file-diff",
        "change-sets",
        also=("change-set", "change-set-resource", "change-set-rule", "change-set-group", "review"),
    ),
)
