"""Registers Django's admin with Parley's site. Apart from the site, which needs models and so comes later."""

from django.contrib.admin.apps import AdminConfig


class ParleyAdminConfig(AdminConfig):
    """Registers django.contrib.admin with `ParleyAdminSite` as its site."""

    default_site = "controlplane.console.admin_site.ParleyAdminSite"
