"""The web process, as a server imports it: it begins, or says why it cannot. Wiring only."""

# ruff: noqa: E402  what the imports print, and why they fail, is to be a line of the log

import os
from typing import TYPE_CHECKING

from controlplane.logs.capture import capture_begin

capture_begin()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")

from controlplane.ops.process import collector_tune, open_files_raise, unknown_variables_tell
from controlplane.ops.starting import cannot_start, config_ready

if TYPE_CHECKING:
    from controlplane.ops.web_status import WebStatus


def _begin() -> "WebStatus":
    open_files_raise()
    config_ready()
    # Not at the top: it reads settings, which may be such that nothing can start.
    from controlplane.ops.web import application as ready  # noqa: PLC0415

    unknown_variables_tell()  # now that there is a log
    from controlplane.fitness.watch import FIRST_LOOK_S, Watch  # noqa: PLC0415  needs Django, which is set up now
    from controlplane.ops.warming import warm  # noqa: PLC0415  as above

    if foreign := Watch("web").start(wait_s=FIRST_LOOK_S).foreign_keys:
        cannot_start(foreign)
    warm()
    collector_tune()
    return ready


application = _begin()
