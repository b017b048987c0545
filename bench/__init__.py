"""Measurements of the product against its floor; see docs/architecture.md."""
