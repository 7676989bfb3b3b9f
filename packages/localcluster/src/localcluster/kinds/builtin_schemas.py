"""Short schemas of the built-in kinds, to detect unknown fields and wrong types in written objects.

Unlike a real API server, this one stores values with the schema `ANY` unchecked. Forbidden here: checking.
"""

from typing import Any

Schema = dict[str, Any]

ANY: Schema = {}
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "time", "nullable": True}
MICRO_TIME: Schema = {"type": "string", "format": "microtime", "nullable": True}
NUMBER_OR_PERCENT: Schema = {"x-kubernetes-int-or-string": True}
OPEN: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "nullable": True}


def record(**fields: Schema) -> Schema:
    """Return the schema of an object with only these fields, all optional. A trailing underscore avoids keywords."""
    properties = {name.rstrip("_"): schema for name, schema in fields.items()}
    return {"type": "object", "properties": properties, "nullable": True}


def mapping(value: Schema) -> Schema:
    """Return the schema of a map from strings to values of a schema."""
    return {"type": "object", "additionalProperties": value, "nullable": True}


def listing(item: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": item, "nullable": True}


def optional(schema: Schema) -> Schema:
    """Return a schema that also allows null, which counts as absent, as for pointers and maps in Go."""
    return {**schema, "nullable": True}


_OWNER = record(
    apiVersion=TEXT, kind=TEXT, name=TEXT, uid=TEXT, controller=optional(FLAG), blockOwnerDeletion=optional(FLAG)
)

METADATA = record(
    name=TEXT,
    generateName=TEXT,
    namespace=TEXT,
    selfLink=TEXT,
    uid=TEXT,
    resourceVersion=TEXT,
    generation=NUMBER,
    creationTimestamp=TIME,
    deletionTimestamp=TIME,
    deletionGracePeriodSeconds=optional(NUMBER),
    labels=mapping(TEXT),
    annotations=mapping(TEXT),
    ownerReferences=listing(_OWNER),
    finalizers=listing(TEXT),
    managedFields=listing(OPEN),
)

SELECTOR = record(
    matchLabels=mapping(TEXT), matchExpressions=listing(record(key=TEXT, operator=TEXT, values=listing(TEXT)))
)
CONDITION = record(
    type=TEXT,
    status=TEXT,
    reason=TEXT,
    message=TEXT,
    lastTransitionTime=TIME,
    lastProbeTime=TIME,
    lastHeartbeatTime=TIME,
    observedGeneration=NUMBER,
)
_REFERENCE = record(
    kind=TEXT, namespace=TEXT, name=TEXT, uid=TEXT, apiVersion=TEXT, resourceVersion=TEXT, fieldPath=TEXT
)
TOLERATION = record(key=TEXT, operator=TEXT, value=TEXT, effect=TEXT, tolerationSeconds=optional(NUMBER))
TAINT = record(key=TEXT, value=TEXT, effect=TEXT, timeAdded=TIME)

_POD_SPEC_OPEN = """
activeDeadlineSeconds affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks
ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets os
overhead preemptionPolicy readinessGates resourceClaims resources runtimeClassName schedulingGates schedulingGroup
securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain
topologySpreadConstraints volumes workloadRef
"""
_POD_STATUS_OPEN = """
allocatedResources containerStatuses ephemeralContainerStatuses extendedResourceClaimStatus hostIP hostIPs
initContainerStatuses message nominatedNodeName observedGeneration podIP podIPs qosClass reason resize resources
resourceClaimStatuses
"""
_NODE_STATUS_OPEN = """
addresses allocatable capacity config daemonEndpoints declaredFeatures features images nodeInfo phase
runtimeHandlers volumesAttached volumesInUse
"""

POD = record(
    metadata=METADATA,
    spec=record(
        **dict.fromkeys(_POD_SPEC_OPEN.split(), ANY),
        containers=listing(OPEN),
        initContainers=listing(OPEN),
        nodeName=TEXT,
        nodeSelector=mapping(TEXT),
        priority=optional(NUMBER),
        priorityClassName=TEXT,
        restartPolicy=TEXT,
        schedulerName=TEXT,
        terminationGracePeriodSeconds=optional(NUMBER),
        tolerations=listing(TOLERATION),
    ),
    status=record(
        **dict.fromkeys(_POD_STATUS_OPEN.split(), ANY), phase=TEXT, conditions=listing(CONDITION), startTime=TIME
    ),
)
NODE = record(
    metadata=METADATA,
    spec=record(
        podCIDR=TEXT,
        podCIDRs=listing(TEXT),
        providerID=TEXT,
        unschedulable=FLAG,
        taints=listing(TAINT),
        configSource=OPEN,
        externalID=TEXT,
    ),
    status=record(**dict.fromkeys(_NODE_STATUS_OPEN.split(), ANY), conditions=listing(CONDITION)),
)
NAMESPACE = record(
    metadata=METADATA,
    spec=record(finalizers=listing(TEXT)),
    status=record(phase=TEXT, conditions=listing(CONDITION)),
)
LEASE = record(
    metadata=METADATA,
    spec=record(
        holderIdentity=optional(TEXT),
        leaseDurationSeconds=optional(NUMBER),
        acquireTime=MICRO_TIME,
        renewTime=MICRO_TIME,
        leaseTransitions=optional(NUMBER),
        strategy=optional(TEXT),
        preferredHolder=optional(TEXT),
    ),
)
BUDGET = record(
    metadata=METADATA,
    spec=record(
        minAvailable=optional(NUMBER_OR_PERCENT),
        maxUnavailable=optional(NUMBER_OR_PERCENT),
        selector=optional(SELECTOR),
        unhealthyPodEvictionPolicy=optional(TEXT),
    ),
    status=record(
        observedGeneration=NUMBER,
        disruptedPods=mapping(TIME),
        disruptionsAllowed=NUMBER,
        currentHealthy=NUMBER,
        desiredHealthy=NUMBER,
        expectedPods=NUMBER,
        conditions=listing(CONDITION),
    ),
)
CORE_EVENT = record(
    metadata=METADATA,
    involvedObject=_REFERENCE,
    reason=TEXT,
    message=TEXT,
    source=record(component=TEXT, host=TEXT),
    firstTimestamp=TIME,
    lastTimestamp=TIME,
    count=NUMBER,
    type=TEXT,
    eventTime=MICRO_TIME,
    series=record(count=NUMBER, lastObservedTime=MICRO_TIME),
    action=TEXT,
    related=_REFERENCE,
    reportingComponent=TEXT,
    reportingInstance=TEXT,
)
EVENT = record(
    metadata=METADATA,
    eventTime=MICRO_TIME,
    series=record(count=NUMBER, lastObservedTime=MICRO_TIME),
    reportingController=TEXT,
    reportingInstance=TEXT,
    action=TEXT,
    reason=TEXT,
    regarding=_REFERENCE,
    related=_REFERENCE,
    note=TEXT,
    type=TEXT,
    deprecatedSource=record(component=TEXT, host=TEXT),
    deprecatedFirstTimestamp=TIME,
    deprecatedLastTimestamp=TIME,
    deprecatedCount=NUMBER,
)
DEFINITION = record(metadata=METADATA, spec=OPEN, status=OPEN)
DELETE_OPTIONS = record(
    kind=TEXT,
    apiVersion=TEXT,
    gracePeriodSeconds=optional(NUMBER),
    preconditions=record(uid=optional(TEXT), resourceVersion=optional(TEXT)),
    orphanDependents=optional(FLAG),
    propagationPolicy=optional(TEXT),
    dryRun=listing(TEXT),
    ignoreStoreReadErrorWithClusterBreakingPotential=optional(FLAG),
)
EVICTION = record(metadata=METADATA, deleteOptions=DELETE_OPTIONS)
