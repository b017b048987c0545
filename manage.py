#!/usr/bin/env python3
"""The entry point of every command.

`up` and `demo` need nothing of Django and start sooner without it; `ads` runs with the slim settings (decisions D5a).
"""

import os
import sys

from xdscore.ending import ended_quietly

EXIT_CANNOT_START = 2


def main(arguments: list[str]) -> int:
    """Run one command; configuration that cannot be used is said in one sentence each, without a traceback."""
    # Each command loads its own, and Ctrl-C may come meanwhile.
    from controlplane.config.home import HomeError  # noqa: PLC0415
    from controlplane.config.loading import ConfigError  # noqa: PLC0415
    from controlplane.logs.capture import capture_begin, say_last  # noqa: PLC0415

    command = arguments[1] if len(arguments) > 1 else "help"
    try:
        if command in {"up", "demo"}:
            from controlplane.ops.supervisor.__main__ import main as up  # noqa: PLC0415

            return up(arguments[2:], with_demo=command == "demo")
        capture_begin()
        from django.core.management import execute_from_command_line  # noqa: PLC0415

        settings = "controlplane.settings_ads" if command == "ads" else "controlplane.settings"
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings)
        execute_from_command_line(arguments)
    except (ConfigError, HomeError) as error:
        say_last(str(error))
        return EXIT_CANNOT_START
    return 0


if __name__ == "__main__":
    with ended_quietly():
        sys.exit(main(sys.argv))
