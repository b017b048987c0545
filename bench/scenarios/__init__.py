"""What is measured. Every module in this package is loaded and registers its scenarios with `bench.registry`."""
