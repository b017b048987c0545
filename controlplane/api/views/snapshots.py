"""Snapshots: what an environment serves and served."""

from collections.abc import Sequence

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer, moment
from controlplane.api.pages import OFFSET_PARAMETERS, counted_page, window_of
from controlplane.api.paths import ENVIRONMENT_PATH
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.schema import PAGE, described, page_of
from controlplane.api.shapes.facts import SnapshotDetailOut, SnapshotOut
from controlplane.api.views.base import ApiView
from controlplane.builder.selectors import builds_of_epochs, causes_of_builds
from controlplane.catalog.models import Change
from controlplane.catalog.values import finding_from_json
from controlplane.common.errors import NotFound
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.selectors import snapshot_list

_MAX_EPOCH = 2**63 - 1  # the column
_MAX_CHANGES = 20  # shown of a snapshot


class SnapshotListView(ApiView):
    """List the snapshots of an environment."""

    needs = {"GET": Role.VIEWER}

    @extend_schema(
        operation_id="snapshot_list",
        summary="List snapshots, newest first",
        parameters=PAGE,
        responses=described(200, page_of(SnapshotOut), 401, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """One page of the environment's snapshots, newest first."""
        query = Query(request, OFFSET_PARAMETERS)
        window = window_of(query)
        query.done()
        rows = snapshot_list(environment_key=environment_key)
        shown = list(rows[window.offset : window.offset + window.limit])
        builds = builds_of_epochs(environment_key=environment_key, epochs=[row.epoch for row in shown])
        causes = causes_of_builds(environment_key=environment_key, builds=builds)
        items = [_snapshot_json(row, causes.get(row.epoch, ())) for row in shown]
        return json_answer(counted_page(request, items, window, rows.count()))


class SnapshotView(ApiView):
    """Read one snapshot."""

    needs = {"GET": Role.VIEWER}

    @extend_schema(
        operation_id="snapshot_get",
        summary="Read a snapshot",
        responses=described(200, SnapshotDetailOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str, epoch: int) -> HttpResponse:
        """The snapshot with this epoch. It never changes, so the answer may be cached."""
        Query(request, ()).done()
        row = (
            snapshot_list(environment_key=environment_key).filter(epoch=epoch).first() if epoch <= _MAX_EPOCH else None
        )
        if row is None:
            raise NotFound(f"There is no snapshot {epoch} of '{environment_key}': not yet, or not any more.")
        builds = builds_of_epochs(environment_key=environment_key, epochs=[epoch])
        build = builds.get(epoch)
        causes = causes_of_builds(environment_key=environment_key, builds=builds)
        body = {
            **_snapshot_json(row, causes.get(epoch, ())),
            "root": row.root_id,
            "held_back": build.held if build is not None else [],
            "held_back_count": build.held_count if build is not None else 0,
            "held": build.held if build is not None else [],
            "held_count": build.held_count if build is not None else 0,
            "findings": [finding_json(finding_from_json(each)) for each in build.findings] if build is not None else [],
            "finding_counts": build.finding_counts if build is not None else {},
            "stage_ms": build.stage_ms if build is not None else {},
        }
        headers = {"ETag": f'"{row.lineage}-{row.epoch}"', "Cache-Control": "private, max-age=31536000, immutable"}
        return json_answer(body, headers=headers)


def _snapshot_json(row: SnapshotRow, causes: Sequence[Change]) -> dict[str, object]:
    return {
        "epoch": row.epoch,
        "lineage": str(row.lineage),
        "generation": row.generation,
        "published_at": moment(row.at),
        "counts": row.counts,
        "changes": [
            {
                "id": str(each.public_id),
                "kind": each.kind,
                "author": each.author,
                "message": each.message,
                "created_at": moment(each.at),
            }
            for each in causes[:_MAX_CHANGES]
        ],
        "change_count": len(causes),
    }


urlpatterns = [
    path(f"{ENVIRONMENT_PATH}/snapshots", SnapshotListView.as_view()),
    path(f"{ENVIRONMENT_PATH}/snapshots/<int:epoch>", SnapshotView.as_view()),
]
