"""Who may read what: an environment's access rules compiled to one table."""
