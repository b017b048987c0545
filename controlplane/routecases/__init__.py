"""Route cases: requests that are kept with the end that is expected of each, and judged at every change (Q4)."""
