"""Measurements of the product: `python -m bench`. Scenarios live in `bench.scenarios`, one module per subject."""
