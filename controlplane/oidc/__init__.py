"""Signs people in by an identity provider (OpenID Connect), and asks it again while their sign-in lasts: who they are
and in which groups is the provider's word, which roles that gives is the operator's.
"""
