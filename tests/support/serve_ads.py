"""`python -m tests.support.serve_ads ADDRESS REST_ADDRESS METRICS_ADDRESS WORKERS HOME`: the ADS server in a process of
its own.
"""

import sys
from pathlib import Path

from adsserver.config import AdsConfig
from adsserver.main import serve
from tests.support.ads_store import open_store

if __name__ == "__main__":
    address, rest_address, metrics_address, workers, home = sys.argv[1:]
    settings = AdsConfig(
        address=address,
        rest_address=rest_address,
        metrics_address=metrics_address,
        home=Path(home),
        public_url="http://parley.example",
        workers=int(workers),
    )
    sys.exit(serve(settings, open_store))
