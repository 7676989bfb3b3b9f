"""Faults of the API server and its store."""

from chaos.faults.base import Fault, Scene


class ApiKilled(Fault):
    """The API server is killed and started again at once, twice."""

    name = "api-killed"
    seconds = 25
    after_seconds = 8

    def start(self, scene: Scene) -> None:
        self._again = False
        self._kill(scene)

    def tick(self, scene: Scene, elapsed_seconds: float) -> None:
        if elapsed_seconds > 12 and not self._again:
            self._again = True
            self._kill(scene)

    def _kill(self, scene: Scene) -> None:
        scene.plane.stop_api_server(kill=True)
        scene.plane.start_api_server()


class ApiDown(Fault):
    """The API server is away for a minute."""

    name = "api-down"
    after_seconds = 8
    seconds = 60

    def start(self, scene: Scene) -> None:
        scene.plane.stop_api_server(kill=True)

    def end(self, scene: Scene) -> None:
        scene.plane.start_api_server()


class StoreStopped(Fault):
    """etcd stands still (SIGSTOP): the API server hangs."""

    name = "etcd-stopped"
    after_seconds = 12
    staleness_seconds = 22

    def start(self, scene: Scene) -> None:
        scene.plane.stop_store()

    def end(self, scene: Scene) -> None:
        scene.plane.continue_store()


class StoreKilled(Fault):
    """etcd is killed, and away for five seconds, twice."""

    name = "etcd-killed"

    def start(self, scene: Scene) -> None:
        scene.plane.restart_store(5)

    def end(self, scene: Scene) -> None:
        scene.plane.restart_store(5)


class StoreRestored(Fault):
    """etcd is restored from a copy of its files that is some seconds old, while evictions continue."""

    name = "etcd-restored"
    seconds = 30

    def prepare(self, scene: Scene) -> None:
        self._restored = False

    def start(self, scene: Scene) -> None:
        scene.plane.copy_store()

    def tick(self, scene: Scene, elapsed_seconds: float) -> None:
        if elapsed_seconds > 12 and not self._restored:
            self._restored = True
            scene.judge.restored(scene.plane.restore_store())
            scene.world.rewrite()


class Compacted(Fault):
    """etcd is compacted between two pages of every list, while the server and a replica start again."""

    name = "compacted"

    def start(self, scene: Scene) -> None:
        for link in scene.replicas.links():
            link.conditions.before = lambda line: scene.plane.compact() if "continue=" in line else None
        scene.replicas.all[0].kill(again=True)
        scene.plane.stop_api_server(kill=True)
        scene.plane.start_api_server()

    def end(self, scene: Scene) -> None:
        for link in scene.replicas.links():
            link.conditions.before = None
