"""Bootstrap files: what a client is started with to take its configuration from here."""

from dataclasses import fields

from django.conf import settings
from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.api.answers import rendered
from controlplane.api.query import Query
from controlplane.api.schema import BOOTSTRAP_PARAMETERS, BOTH, TREE, described
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.catalog.rights import environment_visible
from controlplane.catalog.selectors import environment_list
from controlplane.clients.bootstraps import (
    NAMED_FILES,
    ClientFiles,
    Node,
    NotPolledError,
    Transport,
    UnreachableError,
    Variant,
    envoy_bootstrap,
    envoy_rest_bootstrap,
    files_named,
    grpc_bootstrap,
    node_for,
    path_problem,
    target_problem,
)
from controlplane.common.errors import Conflict, NotFound
from controlplane.config.loading import Config
from xdscore.codes import shown
from xdscore.environment_choice import DEFAULT_ENVIRONMENT
from xdscore.names import name_problem
from xdscore.server_features import BootstrapFeature

_FAMILIES = ("grpc", "envoy")
_FILES = tuple(field.name for field in fields(ClientFiles))
_FOR_ALL = ("environment", "node_id", "variant", "transport", *_FILES)
_FOR_GRPC = ("server_features", "allowed_grpc_services")


class BootstrapView(ApiView):
    """Write the bootstrap file of one client."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="bootstrap_get",
        summary="Get a bootstrap file for a gRPC client or for Envoy",
        description=(
            "gRPC clients of the C-core languages (C++, Python, Ruby, …) read the reasons Parley sends (xRFC TP3) only "
            "with the environment variable `GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING=true`; without it they report "
            "that the resource does not exist, after about 15 s. Where clients are known by tokens, they also need "
            "`GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS=true` and TLS, and their token in `/etc/parley/client.token`; "
            "Envoy's is in `/etc/parley/client.authorization`, behind the word `Bearer` and a blank. Their certificate "
            "files lie in `/etc/parley/tls` unless the parameters say where else. "
            "A client with this file keeps what it had when it refuses a change, unless `server_features` asks for "
            "something else."
        ),
        parameters=BOOTSTRAP_PARAMETERS,
        responses=described(200, TREE, 401, 404, 409, 422, 503, media=BOTH),
    )
    def get(self, request: Request, family: str) -> HttpResponse:
        """The bootstrap file as JSON, which gRPC and Envoy both read; as YAML where the Accept header prefers it."""
        if family not in _FAMILIES:
            raise NotFound(f"There is no bootstrap for '{family[:20]}'. There are: {', '.join(_FAMILIES)}.")
        query = Query(request, _FOR_ALL, repeatable=_FOR_GRPC if family == "grpc" else ())
        environment = query.text("environment", DEFAULT_ENVIRONMENT, at_most=63)
        node_id = query.text("node_id")
        variant = query.choice("variant", [each.value for each in Variant], Variant.SOTW.value)
        problem = name_problem(node_id)  # a node id is a key of index and logs, as a name is
        if problem:
            query.refuse(
                "node_id", problem, hint="Give the id under which the client will be known, e.g. node_id=pay-1."
            )
        if family == "grpc" and variant == Variant.DELTA:
            query.refuse("variant", "cannot be 'delta'", hint="gRPC clients speak the SotW form only.")
        transport = query.choice("transport", [each.value for each in Transport], Transport.GRPC.value)
        if transport == Transport.REST and family == "grpc":
            query.refuse("transport", "cannot be 'rest'", hint="gRPC clients do not poll.")
        elif transport == Transport.REST and variant == Variant.DELTA:
            query.refuse("variant", "cannot be 'delta' with transport=rest", hint="What is polled is always whole.")
        features = query.words("server_features", [each.value for each in BootstrapFeature])
        services = _services(query)
        config: Config = settings.PARLEY
        files = _client_files(query, config)
        query.done()
        environment_visible(principal_of(request), environment)
        node = _node(config, node_id, environment)
        if family == "grpc":
            chosen = frozenset(BootstrapFeature(word) for word in features)
            tree = grpc_bootstrap(config, node, files=files, features=chosen, allowed_services=services)
            return rendered(request, tree)
        if transport == Transport.GRPC:
            return rendered(request, envoy_bootstrap(config, node, Variant(variant), files=files))
        try:
            return rendered(request, envoy_rest_bootstrap(config, node, files=files))
        except NotPolledError as error:
            raise Conflict(str(error)) from None


def _client_files(query: Query, config: Config) -> ClientFiles:
    """The paths of the client's certificate files. A path that cannot be used, or that the installation has no use for,
    is noted in `query` as a problem.
    """
    named = files_named(config)
    given: dict[str, str] = {}
    for name in _FILES:
        usual = getattr(NAMED_FILES, name)
        given[name] = query.text(name, usual)
        if problem := path_problem(given[name]):
            query.refuse(name, f"cannot be '{shown(given[name])}': the path {problem}", hint=f"E.g. {usual}.")
        elif given[name] != usual and name not in named:
            without = "without TLS" if config.ads_tls is None else "without certificates of their own"
            hint = f"A bootstrap names here: {', '.join(named) or 'no file'}."
            query.refuse(name, f"is of no use: ADS takes clients {without}", hint=hint)
    return ClientFiles(**given)


def _services(query: Query) -> tuple[str, ...]:
    """The side-channel services, such as RLS, that the client is to find; one that cannot be used is noted in `query`
    as a problem.
    """
    services = query.texts("allowed_grpc_services")
    for uri in services:
        if problem := target_problem(uri):
            hint = "Write it as the resources do that name the service, e.g. dns:///ratelimit.example:443."
            query.refuse("allowed_grpc_services", f"cannot be '{shown(uri)}': the URI {problem}", hint=hint)
    return services


def _node(config: Config, node_id: str, environment: str) -> Node:
    """A node with this id that gets into the environment: where clients need not prove who they are, with a cluster
    name that one of its selectors takes. Raises Conflict where none does.
    """
    try:
        return node_for(config, node_id, environment, tuple(state.choice for state in environment_list()))
    except UnreachableError as error:
        raise Conflict(str(error)) from None


urlpatterns = [
    path("bootstrap/<slug:family>", BootstrapView.as_view()),
]
