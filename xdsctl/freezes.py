"""How people write although an environment is frozen (XDS3030) or asks for review (XDS3031)."""

from typing import Annotated

import typer

BreakGlass = Annotated[
    str,
    typer.Option(
        "--break-glass",
        metavar="REASON",
        show_default=False,
        help="Do it although the environment is frozen or asks for review, for this reason, which everybody is told.",
    ),
]
