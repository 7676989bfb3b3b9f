"""The embedded API server keeps the contract."""

import pytest

from contract.api import Api
from contract.cases import CASES, GATED, Case, name_of


@pytest.mark.parametrize("case", CASES, ids=name_of)
async def test_localcluster(case: Case, api: Api) -> None:
    await case(api)


@pytest.mark.parametrize("case", GATED, ids=name_of)
async def test_localcluster_with_comparison_operators(case: Case, api_with_gate: Api) -> None:
    await case(api_with_gate)
