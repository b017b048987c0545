"""The web admin: pages, no rules."""
