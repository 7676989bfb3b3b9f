"""Taints of devices of Dynamic Resource Allocation, a source of taints in addition to those of nodes.

``inventory``, ``node_taints`` and ``source`` are rules without I/O; ``handlers`` and ``following`` list and watch.
While no policy selects taints of devices, nothing is listed or watched, and the machine does not use the source.
Forbidden here: deciding about pods.
"""

from taintwarden_devices.following import DeviceFollowing
from taintwarden_devices.source import Devices

__all__ = ["new_following", "new_source"]

new_following = DeviceFollowing
new_source = Devices
