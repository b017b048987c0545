"""The paths of the API, below `/api/v1/` (interfaces.md section 4): those that each module of `views` has for its noun.
`paths` says how their parts are read.
"""

from django.urls import URLPattern

from controlplane.api import views
from xdscore.modules import modules_of

urlpatterns: list[URLPattern] = [
    pattern for module in modules_of(views) for pattern in getattr(module, "urlpatterns", ())
]
