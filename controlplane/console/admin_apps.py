"""Registers Django's admin with Parley's site. Apart from the site, which needs models and so comes later."""

from django.contrib.admin.apps import AdminConfig


class ParleyAdminConfig(AdminConfig):
    """django.contrib.admin with another site."""

    default_site = "controlplane.console.admin_site.ParleyAdminSite"
