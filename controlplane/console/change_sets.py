"""Change sets: what is proposed in an environment, and how each of them stands."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import path

from controlplane.changesets.selectors import SetDetail, change_set_get, change_sets_of, review_counts
from controlplane.changesets.values import SetState, SetView
from controlplane.common.errors import NotFound
from controlplane.console.pages import Page
from controlplane.console.places import Place, Section
from controlplane.console.states import look_of, look_of_set

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


class ChangeSetsPage(Page):
    """The page with the change sets of an environment, newest first."""

    template = "changesets/list.html"

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """One page of the change sets that stand as the URL says; of all, where it does not say."""
        states = {each.value: each for each in SetState}
        state = states.get(request.GET.get("state", ""))
        after = request.GET.get("after", "")[:_MAX_CURSOR_CHARS]
        found = change_sets_of(
            environment_key=environment_key, states=(state,) if state is not None else (), after=after, limit=_SIZE
        )
        context = {
            "lines": [SetLine(each) for each in found.rows],
            "next": found.after,
            "later": bool(after),
            "states": [(each.value, look_of(look_of_set(each)).label) for each in SetState],
            "state": state.value if state is not None else "",
            "waiting": review_counts(environment_keys=[environment_key])[environment_key],
            "review": self.here.policy.review,
        }
        return self.page(context)


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
