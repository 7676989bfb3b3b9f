"""Everything that can happen. Each takes the world and plain values. What it names may be gone: nothing happens."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simulated.world.objects import (
    Budget,
    DeviceSlice,
    Json,
    Namespace,
    Node,
    Owner,
    Pod,
    Policy,
    Profile,
    Taint,
    TaintRule,
    Toleration,
    Workload,
)
from simulated.world.wire import Weather

if TYPE_CHECKING:
    from simulated.world.replica import Replica
    from simulated.world.world import World

FAR = 4_070_908_800.0
"""2099."""
LONG_AGO = -315_619_200.0
"""1960."""
TEMPLATE = Pod("", "", "", "")


# -- nodes ------------------------------------------------------------------------------------------------------------


def node(world: "World", name: str, labels: Mapping[str, str] = {}, taints: tuple[Taint, ...] = ()) -> None:
    """A node joins, or joins again under its name."""
    count = len(world.store.past["nodes"][name].times) if name in world.store.past["nodes"] else 0
    world.store.delete("nodes", name)
    world.store.put("nodes", name, Node(name, f"{name}-{count}", dict(labels), taints))


def node_gone(world: "World", name: str) -> None:
    """A node is deleted."""
    world.store.delete("nodes", name)


def taint(
    world: "World", name: str, key: str, value: str = "", effect: str = "NoExecute", added: str | float | None = None
) -> None:
    """A taint is put on a node, or gets another value.

    ``added``: None leaves ``timeAdded`` out, or as it is; ``now`` is the writer's clock, a number is added to that;
    ``far`` is 2099 and ``long ago`` 1960.
    """
    known = world.store.get("nodes", name)
    if known is None:
        return
    before = next((one for one in known.taints if (one.key, one.effect) == (key, effect)), None)
    at = _time_added(world, added, before)
    put = Taint(key, value, effect, at)
    taints = tuple(put if one is before else one for one in known.taints)
    world.store.change("nodes", name, taints=taints if before is not None else (*taints, put))


def process(
    world: "World", name: str, key: str, kind: str, every: float, begin: int, step: int, until: float, count: int = 0
) -> None:
    """A program writes the value of a node repeatedly."""
    if world.is_frozen or world.agenda.now > until:
        return
    chance = world.noise.share("process", name, key, count)
    value = {
        "drift": str(begin + step * count),
        "stairs": str(begin + step * (count // 7)),
        "counter": str(900 + (begin + count) % 100),
        "time": str(int(world.agenda.wall)),
        "flap": ("980", "unknown", "940", "error", "")[int(chance * 5)],
        "jitter": str(begin + int(chance * 20)),
        "codes": ("79", "48", "63", "31", "43", "79")[count % 6] if step > 0 else ("79", "48", "63")[count % 3],
        "versions": f"v1.{27 + int(chance * 3)}.{count}" + ("", "-rc.1", "-gke.100")[count % 3],
    }[kind]
    taint(world, name, key, value)
    again = {"key": key, "kind": kind, "every": every, "begin": begin, "step": step, "until": until, "count": count + 1}
    world.agenda.after(every, lambda: process(world, name, **again))


def _time_added(world: "World", added: str | float | None, before: Taint | None) -> float | None:
    if added is None:
        return None if before is None else before.added
    if added in ("far", "long ago"):
        return FAR if added == "far" else LONG_AGO
    ahead = 0.0 if added == "now" else float(added)
    return float(int(world.agenda.wall + world.writer_skew + ahead))


def many_taints(world: "World", name: str, number: int, key: str, values: tuple[str, ...]) -> None:
    """A node gets many taints, each with a long value and key."""
    known = world.store.get("nodes", name)
    if known is None:
        return
    value = values[len(world.store.past["nodes"][name].times) % len(values)]
    added = tuple(Taint(f"{key}/{index:02}-{'k' * 50}", f"{value}{'v' * 60}") for index in range(number))
    others = tuple(one for one in known.taints if not one.key.startswith(f"{key}/"))
    world.store.change("nodes", name, taints=(*others, *added))


def untaint(world: "World", name: str, key: str) -> None:
    """A taint is taken off."""
    known = world.store.get("nodes", name)
    if known is not None:
        world.store.change("nodes", name, taints=tuple(one for one in known.taints if one.key != key))


def swap(world: "World", name: str, off: str, on: str) -> None:
    """One condition of a node becomes another: one write takes a taint off and puts another one on."""
    known = world.store.get("nodes", name)
    if known is None:
        return
    kept = tuple(one for one in known.taints if one.key not in (off, on))
    put = Taint(on, "", "NoExecute", float(int(world.agenda.wall + world.writer_skew)))
    world.store.change("nodes", name, taints=(*kept, put))


def relabel(world: "World", name: str, labels: Mapping[str, str | None]) -> None:
    """Labels of a node change; None removes one."""
    known = world.store.get("nodes", name)
    if known is not None:
        merged = {key: value for key, value in {**known.labels, **labels}.items() if value is not None}
        world.store.change("nodes", name, labels=merged)


def forge(world: "World", name: str, text: str) -> None:
    """Another client writes the annotation with the history of a node."""
    world.store.change("nodes", name, history=text)


def stuck(world: "World", name: str) -> None:
    """The kubelet of a node does nothing any more."""
    world.cluster.stuck[name] = None


# -- workloads and pods -----------------------------------------------------------------------------------------------


def workload(
    world: "World",
    uid: str,
    namespace: str,
    replicas: int,
    kind: str = "ReplicaSet",
    placing: str = "good",
    api_version: str = "apps/v1",
    exists: bool = True,
    **template: Any,
) -> None:
    """A controller with its pods, which are Ready at once where they find a node."""
    labels = {"app": uid, **template.pop("labels", {})}
    pod = replace(TEMPLATE, namespace=namespace, labels=labels, **template)
    world.store.put("workloads", uid, Workload(uid, namespace, uid, kind, replicas, pod, api_version, placing, exists))


def scale(world: "World", uid: str, replicas: int) -> None:
    """A controller wants another number of pods."""
    world.store.change("workloads", uid, replicas=replicas)


def place(world: "World", uid: str, placing: str) -> None:
    """Its pods go elsewhere from now on."""
    world.store.change("workloads", uid, placing=placing)


def workload_gone(world: "World", uid: str) -> None:
    """A controller goes, with its pods."""
    pods = world.cluster.pods_of(uid)
    world.store.delete("workloads", uid)
    for one in pods:
        world.cluster.terminate(one)


def pod(
    world: "World", uid: str, namespace: str, node: str, owner: tuple[str, str, str] = ("", "", ""), **more: Any
) -> None:
    """A pod without a controller that exists; ``owner``: apiVersion, kind and UID that it names."""
    named = Owner(owner[0], owner[1], "x", owner[2]) if owner[1] else None
    if world.store.get("nodes", node) is not None and world.store.get("pods", uid) is None:
        world.cluster.create(replace(TEMPLATE, uid=uid, name=uid, namespace=namespace, node=node, owner=named, **more))


def delete_pod(world: "World", uid: str) -> None:
    """A client deletes a pod."""
    known = world.store.get("pods", uid)
    if known is not None and known.stopping_until is None:
        world.cluster.terminate(known)


def ready(world: "World", uid: str, is_ready: bool, seconds: float = 0.0) -> None:
    """A pod passes its readiness probe, or fails it; for some seconds only, if given."""
    known = world.store.get("pods", uid)
    if known is None or known.stopping_until is not None or not known.running:
        return
    world.store.change("pods", uid, ready=is_ready)
    if seconds:
        world.agenda.after(seconds, lambda: ready(world, uid, not is_ready))


def touch(world: "World", uid: str, times: int, seconds: float) -> None:
    """Another field of a pod changes repeatedly."""
    known = world.store.get("pods", uid)
    if known is not None and times and not world.is_frozen:
        world.store.put("pods", uid, known)
        world.agenda.after(seconds, lambda: touch(world, uid, times - 1, seconds))


def annotate(world: "World", uid: str, extended: tuple[Toleration, ...] | None) -> None:
    """The annotation with tolerations of a pod changes."""
    world.store.change("pods", uid, extended=extended)


def mark(world: "World", uid: str, marks: Mapping[str, str]) -> None:
    """A pod opts out, or does not any more."""
    world.store.change("pods", uid, marks=dict(marks))


# -- devices ----------------------------------------------------------------------------------------------------------


def publish(world: "World", name: str, devices: int) -> None:
    """A driver begins to publish the devices of a node."""
    _put_slices(world, name, {f"gpu-{number}": () for number in range(devices)}, 1)


def _put_slices(world: "World", name: str, devices: Mapping[str, tuple[Taint, ...]], slices: int) -> None:
    """All slices of a pool at once, of a new generation."""
    known = [one for one in world.store.objects["slices"].values() if one.pool == name]
    generation = max((one.generation for one in known), default=0) + 1
    for number in range(slices):
        _put_slice(world, name, devices, generation, (number, slices))
    for one in known:
        if int(one.name.rpartition("-")[2]) >= slices:
            world.store.delete("slices", one.name)


def _put_slice(
    world: "World", name: str, devices: Mapping[str, tuple[Taint, ...]], generation: int, part: tuple[int, int]
) -> None:
    number, slices = part
    own = {device: taints for index, (device, taints) in enumerate(devices.items()) if index % slices == number}
    world.store.put("slices", f"{name}-{number}", DeviceSlice(f"{name}-{number}", name, own, generation, slices))


def _stamped(world: "World", taints: tuple[Taint, ...], *, renews: bool = False) -> tuple[Taint, ...]:
    """Taints as the API server stores them: ``timeAdded`` is set if there is none, or if the driver ``renews`` it."""
    at = float(int(world.api_wall()))
    return tuple(replace(one, added=at) if renews or one.added is None else one for one in taints)


def _devices_of(world: "World", name: str) -> dict[str, tuple[Taint, ...]]:
    slices = [one for one in world.store.objects["slices"].values() if one.pool == name]
    return {device: taints for one in slices for device, taints in one.devices.items()}


def device_taint(
    world: "World",
    name: str,
    device: str,
    key: str,
    value: str | None,
    effect: str = "NoExecute",
    added: str | float | None = None,
) -> None:
    """A driver writes a taint of a device, with another value, or (None) takes it off."""
    devices = _devices_of(world, name)
    if device not in devices:
        return
    known = devices[device]
    before = next((one for one in known if (one.key, one.effect) == (key, effect)), None)
    others = tuple(one for one in known if one is not before)
    put = () if value is None else _stamped(world, (Taint(key, value, effect, _time_added(world, added, before)),))
    for one in list(world.store.objects["slices"].values()):
        if one.pool == name and device in one.devices:
            world.store.change("slices", one.name, devices=one.devices | {device: (*others, *put)})


def republish(world: "World", name: str, slices: int, seconds: float, renews: bool = False) -> None:
    """A driver publishes a new generation, slice by slice: meanwhile the pool is incomplete.

    If it ``renews`` them, it does not repeat ``timeAdded``.
    """
    found = _devices_of(world, name)
    devices = {device: _stamped(world, taints, renews=renews) for device, taints in found.items()}
    known = [one for one in world.store.objects["slices"].values() if one.pool == name]
    generation = max((one.generation for one in known), default=0) + 1
    if not devices or world.is_frozen:
        return
    for number in range(slices):
        after = seconds * number / max(1, slices - 1)
        world.agenda.after(after, lambda number=number: _put_slice(world, name, devices, generation, (number, slices)))
    for one in known:
        if int(one.name.rpartition("-")[2]) >= slices:
            world.agenda.after(seconds, lambda one=one: world.store.delete("slices", one.name))


def unpublish(world: "World", name: str, seconds: float, keeps: bool = True, renews: bool = False) -> None:
    """A driver's slices are deleted and published again later, with their taints or without.

    If it ``renews`` them, it does not repeat ``timeAdded``.
    """
    devices = _devices_of(world, name)
    for one in [one for one in world.store.objects["slices"].values() if one.pool == name]:
        world.store.delete("slices", one.name)
    kept = devices if keeps else dict.fromkeys(devices, ())

    def again() -> None:
        taints = {device: _stamped(world, one, renews=renews) for device, one in kept.items()}
        _put_slices(world, name, taints, 1)

    if devices:
        world.agenda.after(seconds, again)


def rule(world: "World", name: str, key: str, value: str, pool: str | None = None, device: str | None = None) -> None:
    """An administrator taints devices by a DeviceTaintRule, or edits it."""
    at = float(int(world.api_wall()))
    world.store.put("rules", name, TaintRule(name, Taint(key, value, added=at), pool, device))


def rule_gone(world: "World", name: str) -> None:
    """The rule is deleted."""
    world.store.delete("rules", name)


# -- budgets, policies, profiles, namespaces --------------------------------------------------------------------------


def budget(world: "World", namespace: str, name: str, app: str, max_unavailable: int, **more: Any) -> None:
    """A budget appears, or becomes another one."""
    key = f"{namespace}/{name}"
    known = world.store.get("budgets", key)
    made = Budget(namespace, name, app, max_unavailable, **more)
    if known is None:
        world.store.put("budgets", key, made)
    else:
        world.store.put("budgets", key, replace(made, generation=known.generation + 1, observed=0))


def budget_gone(world: "World", namespace: str, name: str) -> None:
    """A budget goes."""
    world.store.delete("budgets", f"{namespace}/{name}")


def policy(world: "World", name: str, spec: Json) -> None:
    """A policy is created, or created again under its name."""
    past = world.store.past["policies"].get(name)
    world.store.delete("policies", name)
    created_at = float(int(world.api_wall()))
    uid = f"{name}-{len(past.times) if past is not None else 0}"
    world.store.put("policies", name, Policy(name, uid, spec, created_at))


def edit(world: "World", name: str, **changes: Any) -> None:
    """Sections of a policy's spec are replaced; None removes one."""
    known = world.store.get("policies", name)
    if known is None:
        return
    spec = {key: value for key, value in {**known.spec, **changes}.items() if value is not None}
    if spec != known.spec:
        world.store.change("policies", name, spec=spec, generation=known.generation + 1)


def policy_gone(world: "World", name: str) -> None:
    """A policy is deleted."""
    world.store.delete("policies", name)


def reset(world: "World", name: str) -> None:
    """A person asks for a reset of the guard."""
    known = world.store.get("policies", name)
    if known is not None:
        world.store.change("policies", name, reset=str(known.generation))


def profile(
    world: "World",
    namespace: str,
    name: str,
    tolerations: tuple[Toleration, ...],
    selector: Mapping[str, str] = {},
) -> None:
    """A profile is created or changed."""
    key = f"{namespace}/{name}"
    known = world.store.get("profiles", key)
    if known is None:
        made = Profile(namespace, name, f"uid-{key}", dict(selector), tolerations, created_at=world.api_wall())
        world.store.put("profiles", key, made)
    else:
        world.store.change("profiles", key, selector=dict(selector), tolerations=tolerations)


def profile_gone(world: "World", namespace: str, name: str) -> None:
    """A profile is deleted."""
    world.store.delete("profiles", f"{namespace}/{name}")


def namespace(world: "World", name: str, labels: Mapping[str, str] = {}) -> None:
    """A namespace is created or relabelled."""
    if world.store.get("namespaces", name) is None:
        world.store.put("namespaces", name, Namespace(name, dict(labels)))
    else:
        world.store.change("namespaces", name, labels=dict(labels))


def namespace_gone(world: "World", name: str) -> None:
    """A namespace is deleted, with everything in it."""
    for kind in ("workloads", "budgets", "profiles"):
        for key in [key for key, one in world.store.objects[kind].items() if one.namespace == name]:
            world.store.delete(kind, key)
    for one in [one for one in world.store.objects["pods"].values() if one.namespace == name]:
        if one.stopping_until is None:
            world.cluster.terminate(one)
    world.store.delete("namespaces", name)


# -- operators --------------------------------------------------------------------------------------------------------


def _replica(world: "World", name: str) -> "Replica | None":
    """The replica of this name; ``leader`` is the holder of the lease, and ``other`` the first that is not."""
    if name == "leader":
        return world.lease.holder
    if name == "other":
        return next((one for one in world.replicas if one is not world.lease.holder), None)
    return next((one for one in world.replicas if one.name == name), None)


def start(world: "World", name: str) -> None:
    """A process starts."""
    found = _replica(world, name)
    if found is not None:
        found.start()


def kill(world: "World", name: str, down: float = 1.0) -> None:
    """kill -9; it starts again after a while."""
    found = _replica(world, name)
    if found is not None and found.engine is not None:
        found.kill()
        world.agenda.after(down, found.start)


def freeze(world: "World", name: str, seconds: float) -> None:
    """SIGSTOP, and SIGCONT later."""
    found = _replica(world, name)
    if found is not None and found.engine is not None:
        found.freeze(seconds)


def clock(world: "World", name: str, skew: float) -> None:
    """The wall clock of a replica is set."""
    found = _replica(world, name)
    if found is not None:
        found.step_clock(skew)


def lease(world: "World", name: str, seconds: float) -> None:
    """A replica cannot renew the lease for a while."""
    found = _replica(world, name)
    if found is not None:
        world.lease.trouble(found, seconds)


def release(world: "World") -> None:
    """The holder gives the lease up."""
    if world.lease.holder is not None and world.lease.holder.engine is not None:
        world.lease.release(world.lease.holder)


def silence(world: "World", name: str, kind: str, seconds: float) -> None:
    """A watch is open and brings nothing."""
    found = _replica(world, name)
    if found is not None and found.engine is not None:
        found.streams[kind].silence(seconds)


def cut(world: "World", name: str, kind: str, seconds: float, lists: bool = False) -> None:
    """A watch breaks; later it resumes, or lists."""
    found = _replica(world, name)
    if found is None or found.engine is None:
        return
    stream = found.streams[kind]
    stream.cut()
    world.agenda.after(seconds, stream.list_again if lists else stream.resume)


def lag(world: "World", name: str, kind: str, seconds: float, duration: float) -> None:
    """A watch brings everything later for a while."""
    found = _replica(world, name)
    if found is None or found.engine is None:
        return
    stream = found.streams[kind]
    stream.slow_down(seconds)
    world.agenda.after(duration, lambda: stream.slow_down(0.0))


# -- the API server ---------------------------------------------------------------------------------------------------


def weather(world: "World", behaviour: str, duration: float, **more: Any) -> None:
    """Requests fare badly for a while: see ``wire.Weather``."""
    name = f"{behaviour}-{world.agenda.now:.3f}-{len(world.wire.weather)}"
    world.wire.weather.append(Weather(name, behaviour, world.agenda.now, world.agenda.now + duration, **more))


def outage(world: "World", seconds: float) -> None:
    """The API server fails: no request is carried out, and no Lease is renewed."""
    weather(world, "error", seconds)
    for replica in world.replicas:
        world.lease.trouble(replica, seconds)


def old_definition(world: "World") -> None:
    """The API server has the definition of policies of an earlier version."""
    world.server.has_old_definition = True


def back_up(world: "World") -> None:
    """Copy etcd."""
    world.store.back_up()


def restore(world: "World") -> None:
    """Restore etcd from the copy."""
    world.store.restore()


HAPPENINGS: dict[str, Callable[..., None]] = {
    one.__name__: one
    for one in (
        node,
        node_gone,
        taint,
        many_taints,
        process,
        untaint,
        swap,
        relabel,
        forge,
        stuck,
        workload,
        scale,
        place,
        workload_gone,
        pod,
        delete_pod,
        ready,
        touch,
        annotate,
        mark,
        publish,
        device_taint,
        republish,
        unpublish,
        rule,
        rule_gone,
        budget,
        budget_gone,
        policy,
        edit,
        policy_gone,
        reset,
        profile,
        profile_gone,
        namespace,
        namespace_gone,
        start,
        kill,
        freeze,
        clock,
        lease,
        release,
        silence,
        cut,
        lag,
        weather,
        outage,
        old_definition,
        back_up,
        restore,
    )
}
