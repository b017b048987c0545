"""Fuzz requests into the engine, guided by coverage: `python -m tests.protocol.fuzz.run CORPUS...`.

`make fuzz` runs it every night; arguments are libFuzzer's. An input that breaks something is written where it runs.
"""

import sys

import atheris

with atheris.instrument_imports(include=["adsserver", "xdscore"]):
    from tests.protocol.fuzz.target import play


def main() -> None:
    atheris.Setup(sys.argv, play)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
