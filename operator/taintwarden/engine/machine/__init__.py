"""The machine that makes every decision: in production, in simulation, in ``explain`` and in ``plan``.

Forbidden here: everything that is forbidden in the engine, and acting outside ``Woke``.
"""

from taintwarden.engine.machine.machine import Machine

__all__ = ["Machine"]
