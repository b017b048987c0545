"""How people write although an environment is frozen (XDS3030)."""

from typing import Annotated

import typer

BreakGlass = Annotated[
    str,
    typer.Option(
        "--break-glass",
        metavar="REASON",
        show_default=False,
        help="Do it although the environment is frozen, for this reason, which everybody is told.",
    ),
]
