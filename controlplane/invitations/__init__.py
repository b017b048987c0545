"""Invitations: a link that makes an account, or gives roles to one of the identity provider, once and until a day."""
