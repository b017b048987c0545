"""Which words in texts lead to tickets: read by everybody, written by administrators."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.principal import Role
from controlplane.common.errors import ControlPlaneError
from controlplane.console.pages import Page
from controlplane.console.places import Place, Reach, Section
from controlplane.console.posted import number_of
from controlplane.discussion.tickets import ticket_link_add, ticket_link_delete, ticket_link_list


class TicketLinksPage(Page):
    """The page with the ticket links of the environments that the user may see, and a form to add one."""

    template = "comments/ticket_links.html"
    needs = {"GET": None, "POST": None}

    def get(self, request: HttpRequest, error: ControlPlaneError | None = None) -> HttpResponse:
        """The links as they are; with `error`, the form as it was sent and what is wrong with it."""
        administered = [each.key for each in self.environments if self.principal.may(Role.ADMIN, each.key)]
        keys = self.principal.sees(each.key for each in self.environments)
        everywhere = self.principal.may(Role.ADMIN, None)
        context = {
            "links": [
                (link, everywhere or link.environment in administered)
                for link in ticket_link_list(environment_keys=keys)
            ],
            "administered": administered,
            "everywhere": everywhere,
            "given": request.POST if error is not None else QueryDict(),
            "error": error,
        }
        return self.page(context, status=error.status if error is not None else 200)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Add or delete a link, as the form says, then redirect to the page."""
        given = request.POST
        try:
            if given.get("action") == "delete":
                ticket_link_delete(link_id=number_of(given, "link"), actor=self.principal, request_id=self.request_id)
                messages.success(request, "These words lead nowhere any more.")
            else:
                ticket_link_add(
                    form=given.get("form", "").strip(),
                    url=given.get("url", "").strip(),
                    environment_key=given.get("environment", "") or None,
                    actor=self.principal,
                    request_id=self.request_id,
                )
                messages.success(request, "These words lead to tickets from now on.")
        except ControlPlaneError as error:
            return self.get(request, error)
        return redirect(request.path)


urlpatterns = [
    path("ticket-links", TicketLinksPage.as_view(), name="ticket-links"),
]
PLACES = (
    Place(
        Section.ADMINISTRATION,
        38,
        "Ticket links",
        "link",
        "ticket-links",
        of_environment=False,
        administers=Reach.SOMETHING,
    ),
)
