"""No tool, no green run: what is not built is an error, never a skip."""

import pytest

from controlplane import MissingBinariesError
from controlplane.binaries import binary
from deploy.rendering import MissingToolError, tool
from monitoring import promtool

NO_TOOLS = 3  # exit code: neither passed (0) nor failed (1)


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.collectonly or not session.items:
        return
    try:
        for name in ("helm", "kind", "actionlint"):
            tool(name)
        binary("kubectl")
        promtool.tool("promtool")
    except (MissingToolError, MissingBinariesError, promtool.MissingPrometheusError) as error:
        pytest.exit(str(error), returncode=NO_TOOLS)
