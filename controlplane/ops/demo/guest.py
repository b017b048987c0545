"""A gRPC client of its own in the demo: calls one target, prints what came back, and stays connected.

A process of its own, because C-core reads its bootstrap once. The guard of the demo ends it with its process group.
"""

import signal
import sys

import grpc

from controlplane.ops.demo.calling import outcome


def main(target: str) -> None:
    """Make one call, print its outcome, and wait to be ended."""
    with grpc.insecure_channel(f"xds:///{target}") as channel:
        sys.stdout.write(f"{outcome(channel)}\n")
        sys.stdout.flush()
        while True:
            signal.pause()


if __name__ == "__main__":
    main(sys.argv[1])
