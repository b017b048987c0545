"""Django's SQLite, whose writers of one process wait for each other in the order in which they came."""
