"""The life of placement: policies, profiles, taints, nodes and pods come, change and go in any order.

``Life`` draws what happens in a ``Town``, and says what must hold at every moment and in the end. A town is simulated
here, and real in the end-to-end tests, which play the same lives.
"""

from simulated.life.life import Life
from simulated.life.town import Town

__all__ = ["Life", "Town"]
