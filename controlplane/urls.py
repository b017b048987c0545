"""Which path belongs to which room, and who answers for what no room takes."""

from django.urls import URLPattern, URLResolver, include, path

from controlplane.ops import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("api/v1/", include("controlplane.api.urls")),
    path("", include("controlplane.console.urls")),
]

handler400 = "controlplane.api.handlers.bad_request"
handler403 = "controlplane.api.handlers.permission_denied"
handler404 = "controlplane.api.handlers.not_found"
handler500 = "controlplane.api.handlers.failed"
