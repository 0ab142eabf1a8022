"""Fixtures for tests of the servers: both of them in this process, and copies of their databases."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from database_copies import Copies, copies_on
from served_apps import almost_noiseless, both_apps, serving

__all__ = ["almost_noiseless", "both_apps", "copies", "serving"]


@pytest.fixture
def copies(
    request: pytest.FixtureRequest, fresh_database: Callable[[], str], tmp_path: Path
) -> Copies:
    """A test that uses this runs on both kinds of databases."""
    kind = request.node.callspec.params["fresh_database"]
    server = partial(request.getfixturevalue, "postgresql_server")
    return copies_on(kind, tmp_path / "servers", fresh_database, server)
