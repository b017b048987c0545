"""The only place where the ADS server is put together; `manage.py ads` calls `serve`.

grpc is imported by the processes that serve, not here: with several workers the parent only watches (decisions part 7).
"""

import asyncio
import sys

from adsserver.config import AdsConfig, AdsConfigError
from adsserver.running.opener import StoreOpener
from adsserver.running.workers import EXIT_CONFIG, supervise
from xdscore.status_http import StatusAddressError

__all__ = ["AdsConfig", "serve"]


def serve(config: AdsConfig, open_store: StoreOpener) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status: 0 after a clean end, 2 when the server cannot start,
    after a sentence on standard error.

    `open_store` opens the door to the database; it is given a function to call with each new directory (environments,
    snapshots, tokens). With several workers it is sent to other processes, so it must be picklable.
    """
    try:
        config.check()
        if config.workers > 1:
            return asyncio.run(supervise(config, open_store))
        # Not at the top: this import loads grpc, which a parent of workers must not have.
        from adsserver.running.process import serve_here  # noqa: PLC0415

        asyncio.run(serve_here(config, open_store))
    except (AdsConfigError, StatusAddressError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - the sentence for whoever started the process
        return EXIT_CONFIG
    return 0
