"""The pages' paths: those that each module of this folder has. Names of resources stand in the question
(`?type=&name=`): they may hold anything.
"""

from django.urls import URLPattern

from controlplane.console.places import page_modules

urlpatterns: list[URLPattern] = [pattern for module in page_modules() for pattern in module.urlpatterns]
