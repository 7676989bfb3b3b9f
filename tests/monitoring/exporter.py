"""An exporter with the availability of each node, which a test or a person changes."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from controlplane.api_server import LOOPBACK


class Exporter:
    """Serves what nodes have, as a text that Prometheus scrapes. `PUT /NODE,NODE` with a number changes it at once."""

    def __init__(self) -> None:
        self.values: dict[str, float | str] = {}
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, exporter.text())

            def do_PUT(self) -> None:
                names = self.path.lstrip("/").split(",")
                said = self.rfile.read(int(self.headers["Content-Length"])).decode()
                if strange := set(names) - set(exporter.values):
                    self._answer(404, f"no such node: {', '.join(sorted(strange))}\n")
                    return
                try:
                    value = float(said)
                except ValueError:
                    self._answer(400, f"{said!r} is not a number\n")
                    return
                exporter.values = exporter.values | dict.fromkeys(names, value)
                self._answer(200, "")

            def _answer(self, status: int, text: str) -> None:
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.url = f"http://{LOOPBACK}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def text(self) -> str:
        return "".join(f'node_availability{{node="{name}"}} {value}\n' for name, value in dict(self.values).items())
