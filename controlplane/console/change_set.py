"""One change set: what it would do, what others say of it, what it waits for, and what somebody decides about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils import timezone
from django.utils.http import urlencode

from controlplane.catalog.differences import ResourceDifference
from controlplane.changesets.rights import may_with
from controlplane.changesets.selectors import SetDetail, change_set_contents
from controlplane.changesets.values import (
    MAX_MESSAGE_CHARS,
    MAX_REASON_CHARS,
    MAX_TITLE_CHARS,
    Remark,
    SetEntry,
)
from controlplane.common.errors import ControlPlaneError
from controlplane.console.change_set_access import wish_lines
from controlplane.console.change_set_acts import ACTS, acted
from controlplane.console.change_sets import SetLine, set_entered
from controlplane.console.diffs import lines_of
from controlplane.console.guarding import loss_shown
from controlplane.console.pages import Page
from controlplane.console.paging import Paged, page_number
from controlplane.console.resources import resource_url
from controlplane.console.times import field_text
from controlplane.explain.prospects import prospect_of
from xdscore.snapshot import EntryKey

Differences = Mapping[EntryKey, ResourceDifference]
Urls = Mapping[EntryKey, str]

_DIFFS: Final = 25
_MAX_MOVED: Final = 50
_MAX_FINDINGS: Final = 200
_MAX_REMARKS: Final = 200


@dataclass(frozen=True, slots=True)
class RemarkLine:
    """What somebody said. `url`: the page of the resource, rule or group that it is about; empty where there is none.
    `quoted`: the line, where the difference shows it and the set was not edited since.
    """

    remark: Remark
    url: str
    quoted: str


@dataclass(frozen=True, slots=True)
class EntryLine:
    """A resource of the set. `difference`: beside the revision that it was made from; None where neither side has
    content. `url`: the page of the resource; empty where there is none yet. `edit_url`: the editor with the set's
    content; empty for a deletion. `said`: the comments about it.
    """

    entry: SetEntry
    difference: ResourceDifference | None
    url: str
    edit_url: str
    said: tuple[RemarkLine, ...]

    @property
    def action(self) -> str:
        """The key in `states.LOOKS` of the badge that shows what becomes of the resource."""
        return "deleted" if self.entry.deletes else "updated" if self.entry.base else "created"


class ChangeSetPage(Page):
    """The page of one change set."""

    template = "changesets/detail.html"
    needs = {"GET": None, "POST": None}
    why = "reason"

    def get(self, request: HttpRequest, change_set_id: UUID, error: ControlPlaneError | None = None) -> HttpResponse:
        """The change set as it stands; with `error`, what went wrong when a form was sent. What publishing it would do
        now takes longer than the rest, and comes with `?part=prospect` for a script, with `?prospect=1` in the page.
        """
        detail = set_entered(self, change_set_id)
        if request.GET.get("part") == "prospect":
            return self.part("changesets/prospect.html", self._prospect(detail))
        page = self._page_of(detail)
        shown = {(each.type, each.name) for each in page.items}
        shown |= {(each.type, each.name) for each in detail.remarks[-_MAX_REMARKS:]}
        contents = change_set_contents(public_id=detail.view.id, keys=shown)
        differences = {each.key: each for each in contents.diff}
        urls = _urls(detail)
        said = [_remark_line(each, detail, differences, urls) for each in detail.remarks]
        context = {
            "line": SetLine(detail.view),
            "view": detail.view,
            "entries": _entry_lines(page, detail, differences, urls, said),
            "wishes": wish_lines(detail, said),
            "moved": detail.moved[:_MAX_MOVED],
            "moved_count": len(detail.moved),
            "said": said[-_MAX_REMARKS:],
            "said_count": len(said),
            "approved_by": [each.author for each in detail.remarks if each.counts],
            "may": self._may(detail),
            "is_own": self._is_own(detail),
            "review": self.here.policy.review,
            "given": request.POST if error is not None else QueryDict(),
            "times": {"not_before": field_text(detail.view.not_before), "expires": field_text(detail.view.expires)},
            "now": timezone.now(),
            "max_title": MAX_TITLE_CHARS,
            "max_message": MAX_MESSAGE_CHARS,
            "max_reason": MAX_REASON_CHARS,
            "permalink": request.build_absolute_uri(request.path),
            "error": error,
        }
        if request.GET.get("prospect") == "1":
            context |= self._prospect(detail)
        return self.page(context, status=error.status if error is not None else 200)

    def post(self, request: HttpRequest, change_set_id: UUID) -> HttpResponse:
        """Do what the button says, then lead on: to the change, where one was published."""
        set_entered(self, change_set_id)
        try:
            done = acted(
                request.POST, str(change_set_id), self.principal, self.here.key, self.request_id, consent=self.consent
            )
        except ControlPlaneError as error:
            return self.get(request, change_set_id, error)
        (messages.success if done.changed else messages.info)(request, done.says)
        if done.change:
            return redirect("change", done.change)
        # The path with its query: the same page of the set's resources.
        return redirect("change-sets", self.here.key) if done.gone else redirect(request.get_full_path())

    def _may(self, detail: SetDetail) -> Mapping[str, bool]:
        """For each act, whether its button is shown: the state allows it, and the roles of the user."""
        return {
            each.value: each in detail.acts and may_with(self.principal, each, self.here.key, detail.holds)
            for each in ACTS.values()
        }

    def _is_own(self, detail: SetDetail) -> bool:
        """Whether the user made or edited it, as far as names tell, and so cannot approve it."""
        return self.principal.name in detail.view.authors and not self.here.policy.review.self_approval

    def _prospect(self, detail: SetDetail) -> dict[str, object]:
        """The values of the template of what publishing the set would do now."""
        prospect = prospect_of(detail)
        return {
            "prospect": prospect,
            "view": detail.view,
            "findings": prospect.findings[:_MAX_FINDINGS],
            "finding_count": len(prospect.findings),
            "impact": prospect.impact,
            "shown": loss_shown(prospect.loss, self.principal) if prospect.loss is not None else None,
        }

    def _page_of(self, detail: SetDetail) -> Paged[SetEntry]:
        """The page of the set's resources that the URL asks for."""
        count = len(detail.entries)
        number = min(page_number(self.request), max(1, -(-count // _DIFFS)))
        return Paged(detail.entries[(number - 1) * _DIFFS : number * _DIFFS], number, count, _DIFFS)


def _entry_lines(
    page: Paged[SetEntry], detail: SetDetail, differences: Differences, urls: Urls, said: Sequence[RemarkLine]
) -> Paged[EntryLine]:
    """The lines of a page of the set's resources."""
    lines = []
    for entry in page.items:
        key = (entry.type, entry.name)
        edit = f"{reverse('change-set-resource', args=[detail.view.id])}?{urlencode({'type': key[0], 'name': key[1]})}"
        lines.append(
            EntryLine(
                entry,
                differences.get(key),
                urls.get(key, ""),
                "" if entry.deletes else edit,
                tuple(each for each in said if (each.remark.type, each.remark.name) == key),
            )
        )
    return page.showing(lines)


def _urls(detail: SetDetail) -> Urls:
    """The pages of the set's resources, by type and name, of those that are or were stored."""
    view = detail.view
    access = reverse("access", args=[view.environment])
    return dict.fromkeys((each.key for each in detail.wishes), access) | {
        (each.type, each.name): resource_url(view.environment, each.type, each.name)
        for each in detail.entries
        if each.base or view.changes
    }


def _remark_line(remark: Remark, detail: SetDetail, differences: Differences, urls: Urls) -> RemarkLine:
    key = (remark.type, remark.name)
    url, difference = urls.get(key, ""), differences.get(key)
    if difference is None or remark.line is None or remark.version != detail.view.version:
        return RemarkLine(remark, url, "")
    shown = (line.text for line in lines_of(difference.text) if line.number == remark.line)
    return RemarkLine(remark, url, next(shown, ""))


urlpatterns = [
    path("change-sets/<uuid:change_set_id>", ChangeSetPage.as_view(), name="change-set"),
]
