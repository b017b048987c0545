"""Review: whether resources are changed by approved change sets alone, and who may write nevertheless."""

from dataclasses import replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.principal import Role
from controlplane.catalog.review import BREAKERS, MAX_APPROVALS, ReviewSettings, review_from_json
from controlplane.catalog.rights import POLICY_ROLES, require
from controlplane.catalog.services import environment_update
from controlplane.common.errors import ControlPlaneError
from controlplane.console.pages import Page
from controlplane.console.posted import whole_of
from controlplane.console.sudo import sudo


class ReviewPage(Page):
    """The page of what an environment asks of those who change its resources."""

    template = "changesets/review.html"
    needs = {"GET": Role.VIEWER, "POST": Role.VIEWER}

    def get(self, request: HttpRequest, environment_key: str, error: ControlPlaneError | None = None) -> HttpResponse:  # noqa: ARG002
        """The settings as they are; with `error`, the form as it was sent and what is wrong with it."""
        context = {
            "review": self.here.policy.review,
            "roles": [each.value for each in BREAKERS],
            "max_approvals": MAX_APPROVALS,
            "given": request.POST if error is not None else None,
            "error": error,
        }
        return self.page(context, status=error.status if error is not None else 200)

    @sudo()
    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Save the settings."""
        require(self.principal, POLICY_ROLES["review"], environment_key)
        before = self.here.policy
        try:
            made = environment_update(
                key=environment_key,
                policy=replace(before, review=_settings(request.POST)),
                before=before,
                actor=self.principal,
                request_id=self.request_id,
                consent=self.consent,
            )
        except ControlPlaneError as error:
            return self.get(request, environment_key, error)
        messages.success(request, "Saved. It holds from now on." if made.change_id else "Nothing had to change.")
        return redirect("review", environment_key)


def _settings(given: QueryDict) -> ReviewSettings:
    """The settings in the form. Raises InputInvalid."""
    return review_from_json(
        {
            "required": given.get("required") == "on",
            "approvals": whole_of(given, "approvals", minimum=1, maximum=MAX_APPROVALS),
            "self_approval": given.get("self_approval") == "on",
            "break_glass_role": given.get("role", ""),
        }
    )


urlpatterns = [
    path("e/<str:environment_key>/review", ReviewPage.as_view(), name="review"),
]
