"""The machine, which makes every decision: in production, in simulation, in ``explain`` and in ``plan``.

Other packages use only the names in ``__all__``: the modules are private. Forbidden here: everything that is forbidden
in the engine, and evictions outside ``Tick``.
"""

from taintwarden.engine.machine.claim_views import ClaimView
from taintwarden.engine.machine.claims import Phase, retry_delay
from taintwarden.engine.machine.cluster import NodeState, TimedTaints, have_same_taints, history_name
from taintwarden.engine.machine.intake import NewSource
from taintwarden.engine.machine.machine import Machine
from taintwarden.engine.machine.outbox import key_of
from taintwarden.engine.machine.reports import DevicesReport, PlacesReport, PolicyReport, SourceReport
from taintwarden.engine.machine.source import BLIND_KEY, NOT_LISTED, SourceHost, pending_key
from taintwarden.engine.machine.staying import named_taints
from taintwarden.engine.machine.view import NodeView, View
from taintwarden.engine.machine.world import Timings

__all__ = [
    "BLIND_KEY",
    "NOT_LISTED",
    "ClaimView",
    "DevicesReport",
    "Machine",
    "NewSource",
    "NodeState",
    "NodeView",
    "Phase",
    "PlacesReport",
    "PolicyReport",
    "SourceHost",
    "SourceReport",
    "TimedTaints",
    "Timings",
    "View",
    "have_same_taints",
    "history_name",
    "key_of",
    "named_taints",
    "pending_key",
    "retry_delay",
]
