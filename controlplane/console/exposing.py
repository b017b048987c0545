"""The page that exposes a service: from a few facts to the listener, route, cluster and endpoints, as one change or one
change set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.principal import Role
from controlplane.catalog.listeners import claimed_by
from controlplane.catalog.manifests import manifest_of
from controlplane.catalog.reading import NOTHING_CHANGED, ManifestsRead, parsed_all
from controlplane.catalog.rights import OnSome
from controlplane.catalog.selectors import resource_get, resource_list, resource_names
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Edit, Existing, Put
from controlplane.common.errors import ControlPlaneError, InputInvalid, NotFound
from controlplane.console.bulk import labels_typed
from controlplane.console.foreseeing import Foreseen, choice_posted, chosen_edits, foreseen_of
from controlplane.console.guarding import loss_shown
from controlplane.console.pages import Page
from controlplane.console.proposing import PROPOSE, PROPOSED, proposal_of, propose
from xdscore.codes import shown
from xdscore.exposing import Clients, Exposed, Facts, exposed
from xdscore.resource_types import CLUSTER, LISTENER, ROUTE, SECRET, ResourceType
from xdscore.schema import Manifest

_MAX_CHARS: Final = 40_000  # of one field
_MAX_OFFERED: Final = 500
_LINES: Final = ("name", "prefix", "cluster", "port", "listener", "secret", "timeout", "owner", "labels", "message")
_TEXTS: Final = ("domains", "addresses")


@dataclass(frozen=True, slots=True)
class Typed:
    """The fields of the form as they were typed. `domains`, `addresses`: a line for each."""

    name: str = ""
    clients: str = Clients.ENVOY.value
    domains: str = ""
    prefix: str = "/"
    addresses: str = ""
    cluster: str = ""
    port: str = ""
    listener: str = ""
    http2: bool = False
    secret: str = ""
    timeout: str = ""
    owner: str = ""
    labels: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """What the facts come to: manifests that were read, what storing them would do, and the one that exists among
    them.
    """

    read: ManifestsRead
    foreseen: Foreseen
    exposed: Exposed


class FactsWrong(InputInvalid):
    """Facts of which no manifests can be made. `problems`: a sentence by the name of each field that is wrong."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        noun = "field is" if len(problems) == 1 else "fields are"
        super().__init__(f"{len(problems)} {noun} not right yet. {NOTHING_CHANGED}")
        self.problems = problems


class ExposePage(Page):
    """The page to expose a service."""

    template = "resources/expose.html"
    needs = {"GET": OnSome(Role.EDITOR), "POST": OnSome(Role.EDITOR)}
    why = "message"

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:  # noqa: ARG002 - Django's
        """The page with an empty form."""
        return self._answer(Typed(), {})

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Show what the facts come to; store that, or put it into a change set, once it was seen."""
        typed, action = typed_of(request.POST), request.POST.get("action")
        made: Made | None = None
        try:
            made = self._made(typed)
            choice = choice_posted(request.POST)
            if action not in ("save", PROPOSE) or choice is None or made.foreseen.turned_down:
                return self._foreseen(typed, made)
            edits = _owned(chosen_edits(made.foreseen, choice), typed.owner)
            if action == PROPOSE:
                public_id = propose(
                    request.POST,
                    edits,
                    environment_key=environment_key,
                    message=_message(typed),
                    actor=self.principal,
                    request_id=self.request_id,
                )
                messages.success(request, PROPOSED)
                return redirect("change-set", public_id)
            stored = change_apply(
                environment_key=environment_key,
                edits=edits,
                actor=self.principal,
                message=_message(typed),
                request_id=self.request_id,
                consent=self.consent,
            )
        except FactsWrong as error:
            return self._answer(typed, {"wrong": error.problems, "facts_wrong": error}, error.status)
        except ControlPlaneError as error:
            if made is not None:
                return self._foreseen(typed, made, error)
            return self._answer(typed, {"error": error}, error.status)
        return redirect("change", stored.change_id)

    def _made(self, typed: Typed) -> Made:
        """What the facts come to as things stand now. Raises FactsWrong, and what planning it raises."""
        facts, problems = facts_of(typed)
        found = exposed(facts, self._stored)
        problems = {**found.problems, **problems}
        manifests = [Manifest(tree, (number,)) for number, tree in enumerate(found.manifests)]
        read = parsed_all(manifests, environment_key=self.here.key)
        if not problems and (owner := self._address_owner(read)):
            problems["port"] = f"The listener '{shown(owner)}' has this port already."
        if problems:
            raise FactsWrong(problems)
        foreseen = foreseen_of(
            read,
            environment_key=self.here.key,
            places=[""] * len(manifests),
            left=(),
            actor=self.principal,
        )
        return Made(read, foreseen, found)

    def _stored(self, kind: ResourceType, name: str) -> Mapping[str, object] | None:
        """The manifest of a stored listener or route; of another resource only that it is there."""
        if kind not in (LISTENER, ROUTE):
            there = resource_list(environment_key=self.here.key, kind=kind).filter(name=name).exists()
            return {} if there else None
        try:
            return manifest_of(resource_get(environment_key=self.here.key, kind=kind, name=name))
        except NotFound:
            return None

    def _address_owner(self, read: ManifestsRead) -> str:
        """The stored listener that has the address of a new one; empty where none has."""
        claims = {claim for each in read.parsed if each.type is LISTENER for claim in each.claims}
        return claimed_by(environment_key=self.here.key, claims=claims)

    def _foreseen(self, typed: Typed, made: Made, error: ControlPlaneError | None = None) -> HttpResponse:
        context = {
            "foreseen": made.foreseen,
            "changed": made.exposed.changed,
            "shown": loss_shown(made.foreseen.loss, self.principal),
            "error": error,
        }
        status = error.status if error is not None else InputInvalid.status if made.foreseen.turned_down else 200
        return self._answer(typed, context, status)

    def _answer(self, typed: Typed, context: Mapping[str, object], status: int = 200) -> HttpResponse:
        chosen = self.request.GET.get("set", "")[:64]
        offered = {"clusters": CLUSTER, "listeners": LISTENER, "secrets": SECRET}
        fields = {
            "typed": typed,
            "wrong": {},
            "offered": {
                field: resource_names(environment_key=self.here.key, kind=kind, limit=_MAX_OFFERED)
                for field, kind in offered.items()
            },
            "proposal": proposal_of(self.here.key, self.request.POST, chosen=chosen),
            "chosen_set": chosen,
        }
        return self.page({**fields, **context}, status=status)


def typed_of(given: QueryDict) -> Typed:
    """The fields of a form as it was sent."""
    lines = {field: given.get(field, "")[:_MAX_CHARS].strip() for field in _LINES}
    texts = {field: given.get(field, "")[:_MAX_CHARS].replace("\r\n", "\n").strip() for field in _TEXTS}
    return Typed(**lines, **texts, clients=given.get("clients", "")[:20], http2="http2" in given)


def facts_of(typed: Typed) -> tuple[Facts, dict[str, str]]:
    """The facts that were typed, and what is wrong with how they were: a sentence for each field."""
    problems: dict[str, str] = {}
    clients = next((each for each in Clients if each.value == typed.clients), None)
    if clients is None:
        problems["clients"] = "Choose who is to reach it."
    if len(typed.owner) > 150 or not typed.owner.isprintable():
        problems["owner"] = "An owner is one line of at most 150 characters."
    labels: dict[str, str] = {}
    try:
        edits = labels_typed(typed.labels) if typed.labels else {}
        labels = {key: value for key, value in edits.items() if value is not None}
    except InputInvalid as error:
        said = [each.detail for each in error.findings] or [error.detail.removesuffix(f" {NOTHING_CHANGED}")]
        problems["labels"] = " ".join(said)
    facts = Facts(
        name=typed.name,
        clients=clients or Clients.ENVOY,
        domains=_words(typed.domains),
        prefix=typed.prefix,
        addresses=_words(typed.addresses),
        cluster=typed.cluster,
        port=typed.port,
        listener=typed.listener,
        http2=typed.http2,
        secret=typed.secret,
        timeout=typed.timeout,
        labels=labels,
    )
    return facts, problems


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _message(typed: Typed) -> str:
    return typed.message[:1_000] or f"Expose {typed.name}"


def _owned(edits: tuple[Edit, ...], owner: str) -> tuple[Edit, ...]:
    """The edits; what they make has this owner, and what was there keeps its own."""
    if not owner:
        return edits
    return tuple(
        replace(each, owner=owner) if isinstance(each, Put) and each.expect is Existing.ABSENT else each
        for each in edits
    )


urlpatterns = [
    path("e/<str:environment_key>/resources/expose", ExposePage.as_view(), name="expose"),
]
