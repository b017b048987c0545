"""Who operates Parley: administrators, API tokens, and what each may do in which environment."""
