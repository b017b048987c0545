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
    """Raise this process's soft limit of open files to the hard limit, because each stream needs a file; returns the
    limit now in force. Source: dependencies.md fact 8.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else max(soft, _OPEN_FILES_WHEN_UNLIMITED)
    if wanted != soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def unknown_variables_tell() -> None:
    """Log one warning with the environment variables that begin with PARLEY_ and that nothing reads. Usually they are
    misspelt.
    """
    sentences = unknown(os.environ, in_force(os.environ, directory=Path.cwd()))
    if sentences:
        log.warning("config.unknown", detail=" ".join(sentences))
