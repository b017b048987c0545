"""What a serving process asks of the operating system, and says of the environment it was started in."""

import gc
import os
import resource
from pathlib import Path

import structlog

from controlplane.config.loading import in_force, unknown

log = structlog.get_logger("controlplane.process")  # users filter lines by this name

# macOS reports "unlimited" as the hard limit and refuses it as the soft one; this is its OPEN_MAX (sys/syslimits.h).
_OPEN_FILES_WHEN_UNLIMITED = 10_240
# A page makes thousands of objects that no cycle holds, the graph of an environment hundreds of thousands. By default
# (700, 10, 10) looking for cycles was a quarter of the graph's time. The numbers are those of an ADS process.
_COLLECT_AFTER = (20_000, 3, 8)


def collector_tune() -> None:
    """Let the garbage collector look for cycles less often, and leave out what is loaded by now, which lives as long as
    the process.
    """
    gc.set_threshold(*_COLLECT_AFTER)
    gc.freeze()


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
