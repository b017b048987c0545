"""One channel, where messages go beside the inbox: made, tried and changed, and what was sent there.

For administrators of all environments only, because channels hold addresses of other systems.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path
from django.utils import timezone

from controlplane.accounts.principal import Role
from controlplane.common.errors import ControlPlaneError, InputInvalid
from controlplane.console.pages import Page
from controlplane.console.places import Place, Reach, Section
from controlplane.console.posted import MAX_REASON_CHARS, reason_of
from controlplane.notify.catalogue import OF_CHANNELS
from controlplane.notify.channel_kinds import Addressed, ChannelKind, KindFacts, Manner
from controlplane.notify.channel_rules import MAX_KEY_CHARS, MAX_NAME_CHARS, NewChannel
from controlplane.notify.models import DeliveryState
from controlplane.notify.schedules import DEFAULT, MAX_ZONE_CHARS, Every
from controlplane.notify.selectors import ChannelView, channel_get, delivery_list
from controlplane.notify.services import (
    channel_create,
    channel_delete,
    channel_pause,
    channel_resume,
    channel_test,
    channel_update,
)
from controlplane.outside.targets import MAX_URL_CHARS

_SIZE: Final = 50
_MAX_DIGITS: Final = 2
_NEEDS: Final = {"GET": Role.ADMIN, "POST": Role.ADMIN}


@dataclass(frozen=True, slots=True)
class Filled:
    """What stands in the form of a channel."""

    name: str = ""
    target: str = ""
    environments: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    every: str = DEFAULT.every.value
    hour: str = str(DEFAULT.hour)
    zone: str = DEFAULT.zone


class NewChannelPage(Page):
    """The page on which a channel is made: first its kind is chosen, then a form is filled in."""

    template = "channels/form.html"
    needs = _NEEDS

    def get(self, request: HttpRequest, error: ControlPlaneError | None = None) -> HttpResponse:
        """The form for the kind in the URL; without one, the kinds to choose from."""
        kind = _kind_in(request.GET)
        if kind is None:
            status = error.status if error is not None else 200
            return self.page(
                {"choices": list(ChannelKind), "error": error}, template="channels/kinds.html", status=status
            )
        filled = _typed(request.POST) if error is not None else Filled()
        return form_page(self, kind, filled, error=error)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Make a channel. Where it signs, the page that follows shows its secret once."""
        kind = _kind_in(request.GET)
        try:
            if kind is None:
                raise InputInvalid("Choose a kind of channel. Nothing was changed.")
            channel, secret = channel_create(
                wanted=_wanted(kind, request.POST), actor=self.principal, request_id=self.request_id
            )
        except ControlPlaneError as error:
            return self.get(request, error)
        if secret:
            return channel_page(self, channel.public_id, secret=secret)
        messages.success(request, "The channel is made. Send a sample, to see whether it is taken.")
        return redirect("channel", channel.public_id)


class EditChannelPage(Page):
    """The page on which a channel is changed. Its kind stays."""

    template = "channels/form.html"
    needs = _NEEDS

    def get(self, request: HttpRequest, channel_id: UUID, error: ControlPlaneError | None = None) -> HttpResponse:
        """The form with the channel as it is; with `error`, as it was sent and what is wrong with it."""
        channel = channel_get(public_id=channel_id)
        filled = _typed(request.POST) if error is not None else _stored(channel)
        return form_page(self, channel.kind, filled, error=error, channel=channel)

    def post(self, request: HttpRequest, channel_id: UUID) -> HttpResponse:
        """Change the channel."""
        kind = channel_get(public_id=channel_id).kind
        try:
            channel_update(
                public_id=channel_id,
                wanted=_wanted(kind, request.POST),
                actor=self.principal,
                request_id=self.request_id,
            )
        except ControlPlaneError as error:
            return self.get(request, channel_id, error)
        messages.success(request, "The channel is changed.")
        return redirect("channel", channel_id)


class ChannelPage(Page):
    """The page of one channel: what was sent there, and what to do about it."""

    template = "channels/channel.html"
    needs = _NEEDS

    def get(self, request: HttpRequest, channel_id: UUID) -> HttpResponse:  # noqa: ARG002 - Django's
        """One page of the channel's deliveries: those older than the one whose number is `before` in the URL; without
        it, the newest.
        """
        return channel_page(self, channel_id)

    def post(self, request: HttpRequest, channel_id: UUID) -> HttpResponse:
        """Send a sample, pause the channel, let it go on, or delete it."""
        action = request.POST.get("action", "")
        try:
            if action == "delete":
                channel_delete(public_id=channel_id, actor=self.principal, request_id=self.request_id)
                messages.success(request, "The channel is gone, and what was to be sent there with it.")
                return redirect("channels")
            messages.success(request, self._act(request, channel_id, action))
        except ControlPlaneError as error:
            return channel_page(self, channel_id, error=error)
        return redirect("channel", channel_id)

    def _act(self, request: HttpRequest, channel_id: UUID, action: str) -> str:
        match action:
            case "test":
                sent = channel_test(public_id=channel_id)
                if not sent.ok:
                    raise InputInvalid(f"The sample was not taken. {sent.answer}")
                return f"A sample was sent, and taken: {sent.answer}"
            case "pause":
                reason = reason_of(request)
                channel_pause(public_id=channel_id, reason=reason, actor=self.principal, request_id=self.request_id)
                return "The channel is paused: what happens from now on waits for it."
            case "resume":
                channel_resume(public_id=channel_id, actor=self.principal, request_id=self.request_id)
                return "The channel is sent to again."
        raise InputInvalid("There is no such action. Nothing was changed.")


def form_page(
    page: Page,
    kind: ChannelKind,
    filled: Filled,
    *,
    error: ControlPlaneError | None = None,
    channel: ChannelView | None = None,
) -> HttpResponse:
    """The page with the form of a channel. `channel`: the one that is changed; None for a new one; `error`: what is
    wrong with the form as it was sent.
    """
    facts = kind.facts
    context = {
        "kind": kind,
        "facts": facts,
        "filled": filled,
        "channel": channel,
        "label": _target_label(facts),
        "optional": channel is not None or bool(facts.api),
        "is_mail": facts.addressed is Addressed.MAIL,
        "no_mail_server": facts.addressed is Addressed.MAIL and settings.PARLEY.mail is None,
        "is_digest": facts.manner is Manner.DIGEST,
        "keys": _with_chosen([state.key for state in page.environments], filled.environments),
        "all_kinds": list(OF_CHANNELS),
        "each": [every.value for every in Every],
        "max_name": MAX_NAME_CHARS,
        "max_target": MAX_URL_CHARS,
        "max_key": MAX_KEY_CHARS,
        "max_zone": MAX_ZONE_CHARS,
        "wrong": _by_field(error),
        "error": error,
    }
    return page.page(context, template="channels/form.html", status=error.status if error is not None else 200)


def channel_page(
    page: Page, channel_id: UUID, *, error: ControlPlaneError | None = None, secret: str = ""
) -> HttpResponse:
    """The page of a channel, with the deliveries that its URL asks for. `secret`: a new one, to be shown this once."""
    asked = page.request.GET
    channel = channel_get(public_id=channel_id)
    state = next((each for each in DeliveryState if each.value == asked.get("state")), None)
    kind = asked.get("kind", "") if asked.get("kind") in OF_CHANNELS else ""
    before = asked.get("before", "")
    found = delivery_list(
        public_id=channel_id,
        state=state,
        kind=kind,
        before=int(before) if before.isascii() and before.isdigit() and len(before) <= 18 else None,
        limit=_SIZE + 1,
    )
    context = {
        "channel": channel,
        "facts": channel.kind.facts,
        "lines": found[:_SIZE],
        "next": found[_SIZE - 1].number if len(found) > _SIZE else None,
        "later": bool(before),
        "asked_state": state.value if state is not None else "",
        "asked_kind": kind,
        "states": [each.value for each in DeliveryState],
        "now": timezone.now(),
        "all_kinds": list(OF_CHANNELS),
        "max_reason": MAX_REASON_CHARS,
        "given": page.request.POST if error is not None else QueryDict(),
        "secret": secret,
        "error": error,
    }
    status = error.status if error is not None else 201 if secret else 200
    answer = page.page(context, template=ChannelPage.template, status=status)
    if secret:
        answer.headers["Cache-Control"] = "no-store"
    return answer


def _kind_in(given: QueryDict) -> ChannelKind | None:
    """The kind of channel that the URL names; None where it names none that there is."""
    return next((kind for kind in ChannelKind if kind.value == given.get("kind")), None)


def _typed(given: QueryDict) -> Filled:
    """What was sent with the form, but for a key, which is asked for again."""
    fields = ("name", "target", "every", "hour", "zone")
    texts = {name: given.get(name, "")[:MAX_URL_CHARS] for name in fields if name in given}
    return Filled(**texts, environments=tuple(given.getlist("environments")), kinds=tuple(given.getlist("kinds")))


def _stored(channel: ChannelView) -> Filled:
    """What the form begins with. A mail address is shown; of a URL only its host is, beside an empty field."""
    digest = channel.digest or DEFAULT
    return Filled(
        channel.name,
        channel.target if channel.kind.facts.addressed is Addressed.MAIL else "",
        channel.environments,
        channel.kinds,
        digest.every.value,
        str(digest.hour),
        digest.zone,
    )


def _wanted(kind: ChannelKind, given: QueryDict) -> NewChannel:
    """The channel that the form asks for."""
    typed = _typed(given)
    hour = typed.hour.strip()
    digest = {
        "every": typed.every,
        "hour": int(hour) if hour.isascii() and hour.isdigit() and len(hour) <= _MAX_DIGITS else hour,
        "zone": typed.zone.strip(),
    }
    return NewChannel(
        typed.name.strip(),
        kind,
        given.get("target", "").strip(),
        typed.environments,
        typed.kinds,
        given.get("secret", "").strip(),
        digest if kind.facts.manner is Manner.DIGEST else None,
    )


def _target_label(facts: KindFacts) -> str:
    match facts.addressed:
        case Addressed.MAIL:
            return "Mail address"
        case Addressed.API:
            return f"URL of {facts.title}'s API"
        case Addressed.URL:
            return "URL"


def _with_chosen(keys: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """The keys of environments to choose from, and those that are chosen already although there are none of them."""
    return [*keys, *(key for key in dict.fromkeys(chosen) if key not in keys)]


def _by_field(error: ControlPlaneError | None) -> dict[str, str]:
    """What is wrong with each field of the form: the last part of a finding's pointer is its name."""
    found = error.findings if error is not None else ()
    return {finding.pointer.rpartition("/")[2]: finding.detail for finding in reversed(found)}


urlpatterns = [
    path("channels/new", NewChannelPage.as_view(), name="channel-new"),
    path("channels/<uuid:channel_id>", ChannelPage.as_view(), name="channel"),
    path("channels/<uuid:channel_id>/edit", EditChannelPage.as_view(), name="channel-edit"),
]
PLACES = (
    Place(
        Section.ADMINISTRATION,
        35,
        "Channels",
        "upload",
        "channels",
        of_environment=False,
        also=("channel", "channel-new", "channel-edit"),
        administers=Reach.EVERYTHING,
    ),
)
