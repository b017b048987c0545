"""What a serving process asks of the operating system."""

import resource

# macOS reports "unlimited" as the hard limit and refuses it as the soft one; this is its OPEN_MAX (sys/syslimits.h).
_OPEN_FILES_WHEN_UNLIMITED = 10_240


def open_files_raise() -> int:
    """Raise the soft limit of open files to the hard one; the limit in force. Each stream is a file.

    Source: dependencies.md fact 8.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else max(soft, _OPEN_FILES_WHEN_UNLIMITED)
    if wanted != soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
