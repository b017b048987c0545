"""What pages and API answer with alike: the chain of middleware, headers, static files, and moments in a query."""
