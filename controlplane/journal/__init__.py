"""What happened, for ever: the audit log. The lowest room; every other one writes here."""
