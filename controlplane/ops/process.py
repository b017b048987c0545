"""What a serving process asks of the operating system, and says of the environment it was started in."""

import os
import resource
from pathlib import Path

import structlog

from controlplane.config.loading import in_force, unknown

log = structlog.get_logger("controlplane.process")  # users filter lines by this name

# macOS reports "unlimited" as the hard limit and refuses it as the soft one; this is its OPEN_MAX (sys/syslimits.h).
_OPEN_FILES_WHEN_UNLIMITED = 10_240


def open_files_raise() -> int:
    """Raise the soft limit of open files to the hard one; the limit in force. Each stream needs a file.

    Source: dependencies.md fact 8.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else max(soft, _OPEN_FILES_WHEN_UNLIMITED)
    if wanted != soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def unknown_variables_tell() -> None:
    """Log one warning that names the variables that begin as ours do and that nothing reads: a slip of the pen, as a
    rule.
    """
    sentences = unknown(os.environ, in_force(os.environ, directory=Path.cwd()))
    if sentences:
        log.warning("config.unknown", detail=" ".join(sentences))
