"""`python -m xdsctl`."""

from xdsctl.app import main

main()
