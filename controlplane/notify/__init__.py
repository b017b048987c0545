"""Tells people about incidents and failed builds."""
