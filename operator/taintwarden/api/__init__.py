"""What users write, checked and turned into the engine's values: policies, profiles, and tolerations in annotations.

The CRDs in ``crds/`` say the same as :mod:`taintwarden.api.types`, and a test holds the two together: the API server
refuses what it can, this package refuses it again (a policy may come from a file, or predate the CRD) with words that
say what to write instead.

Forbidden here: I/O, the cluster, the clock.
"""

from taintwarden.api.affinity import AFFINITY_ANNOTATION, parse_node_affinity, parse_volume_affinity
from taintwarden.api.errors import FieldError, InvalidObject
from taintwarden.api.policies import parse_policy
from taintwarden.api.profiles import parse_profile
from taintwarden.api.status import Condition, ConditionStatus, NextPod, PodState, PolicyStatus, ProfileStatus
from taintwarden.api.tolerations import TOLERATIONS_ANNOTATION, parse_tolerations
from taintwarden.api.types import GROUP, POLICY_KIND, POLICY_PLURAL, PROFILE_KIND, PROFILE_PLURAL, VERSION

__all__ = [
    "AFFINITY_ANNOTATION",
    "GROUP",
    "POLICY_KIND",
    "POLICY_PLURAL",
    "PROFILE_KIND",
    "PROFILE_PLURAL",
    "TOLERATIONS_ANNOTATION",
    "VERSION",
    "Condition",
    "ConditionStatus",
    "FieldError",
    "InvalidObject",
    "NextPod",
    "PodState",
    "PolicyStatus",
    "ProfileStatus",
    "parse_node_affinity",
    "parse_policy",
    "parse_profile",
    "parse_tolerations",
    "parse_volume_affinity",
]
