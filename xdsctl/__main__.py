"""`xdsctl` and `python -m xdsctl`."""

from xdscore.ending import ended_quietly


def main() -> None:
    """Run xdsctl with the arguments of this process."""
    with ended_quietly():
        from xdsctl.app import app  # noqa: PLC0415 - Ctrl-C may come while it is loaded

        app(prog_name="xdsctl")


if __name__ == "__main__":
    main()
