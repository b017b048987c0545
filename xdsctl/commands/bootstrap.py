"""`bootstrap`: a file to start a client with."""

from enum import Enum
from typing import Annotated, Final

import typer

from xdscore.server_features import CRITERIA, DEFAULT_FEATURES, BootstrapFeature
from xdsctl.exits import Outcome
from xdsctl.session import command, session_of

_SWITCH = "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING=true"
_TOKEN_SWITCH = "GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS=true"  # noqa: S105 - a variable's name
_USUAL = "Without it below /etc/parley/tls, as the documentation has it."
_FEATURE_HELP = (
    f"A server feature beside {' and '.join(each.value for each in BootstrapFeature if each in DEFAULT_FEATURES)}; may "
    "be repeated. " + " ".join(f"{feature.value}: {criterion}" for feature, criterion in CRITERIA.items())
)


class Family(Enum):
    """The families of clients for which there is a bootstrap."""

    GRPC = "grpc"
    ENVOY = "envoy"


class Transport(Enum):
    """How Envoy is given resources."""

    GRPC = "grpc"
    REST = "rest"


HELP_POSITION: Final = 141


def register(app: typer.Typer) -> None:
    """Add the command `bootstrap`."""
    app.command()(bootstrap)


@command
def bootstrap(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    ctx: typer.Context,
    family: Annotated[Family, typer.Argument(help="For which client.")],
    client: Annotated[str, typer.Option("--client", help="The node id of the client.")],
    transport: Annotated[
        Transport, typer.Option(help="Envoy: rest polls clusters and listeners, where the server is polled.")
    ] = Transport.GRPC,
    server_feature: Annotated[
        list[BootstrapFeature] | None, typer.Option("--server-feature", metavar="NAME", help=_FEATURE_HELP)
    ] = None,
    allowed_grpc_service: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-grpc-service",
            metavar="URI",
            help="A side-channel service that resources may name (gRFC A102, a draft), such as "
            "dns:///ratelimit.example:443; may be repeated.",
        ),
    ] = None,
    cert: Annotated[str, typer.Option(metavar="PATH", help=f"Where the client has its certificate. {_USUAL}")] = "",
    key: Annotated[str, typer.Option(metavar="PATH", help="Where the client has the key of its certificate.")] = "",
    ca: Annotated[
        str, typer.Option(metavar="PATH", help="Where the client has the authorities that sign the server's.")
    ] = "",
) -> Outcome:
    """Print a bootstrap file for a client. One of gRPC keeps what it had when it refuses a change."""
    session = session_of(ctx)
    response = session.api.request(
        "GET",
        f"/bootstrap/{family.value}",
        parameters={
            "environment": session.context.environment,
            "node_id": client,
            "transport": transport.value,
            "server_features": [each.value for each in server_feature or ()],
            "allowed_grpc_services": allowed_grpc_service or [],
            "certificate_file": cert,
            "private_key_file": key,
            "ca_certificate_file": ca,
        },
    )
    session.printer.text(response.text.rstrip("\n"))
    if family is Family.ENVOY:
        return Outcome()
    by_token = any("call_creds" in server for server in response.json()["xds_servers"])
    token = f" Set {_TOKEN_SWITCH}, too: without it gRPC sends no token." if by_token else ""
    return Outcome(text=f"Name the file in GRPC_XDS_BOOTSTRAP, and set {_SWITCH} to see reasons in RPC errors.{token}")
