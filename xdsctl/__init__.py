"""The command line of Parley, over the REST API."""
