"""One suite for two API servers: what a kube-apiserver does, as far as the operator and its tests rely on it.

The cases are coroutines that take an `Api`. `test_contract.py` runs them against `localcluster`; the
end-to-end tests run the very same ones against the real server, so the small one is never kinder than that.

    pytest.register_assert_rewrite(*[f"contract.{name}" for name in contract.MODULES])  # before the next import
    from contract.cases import CASES, name_of

    @pytest.mark.parametrize("case", CASES, ids=name_of)
    async def test_contract(case, api): await case(api)
"""

MODULES = (
    "applying",
    "conditions",
    "custom",
    "deleting",
    "events",
    "evicting",
    "leases",
    "listing",
    "nodes",
    "patching",
    "pods",
    "watching",
    "writing",
)
