"""The operator as users run it: ``taintwarden run`` in a separate process with a kubeconfig."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

STOP_SECONDS = 8.0
TAIL_LINES = 15


class OperatorProcess:
    """A running operator and its log."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def has_ended(self) -> bool:
        """True if the process has ended."""
        return self._process.returncode is not None

    def last_log_lines(self) -> str:
        """Return the last lines of the log."""
        return "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-TAIL_LINES:])

    async def stop(self) -> None:
        """Stop the process as a kubelet would: SIGTERM, wait, SIGKILL."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def run_operator(kubeconfig: Path, log: Path, http_port: int = 0) -> AsyncIterator[OperatorProcess]:
    """Run the operator within the context. It serves metrics on ``http_port``; 0 is any free port."""
    flags = [f"--kubeconfig={kubeconfig}", "--http-host=127.0.0.1", f"--http-port={http_port}", "--log-format=json"]
    # -P: a file in the user's directory must not replace a module.
    command = [sys.executable, "-P", "-m", "taintwarden_cli", "run", *flags]
    foreign = ("TAINTWARDEN_", "POD_NAME")  # settings for another operator
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
    operator = OperatorProcess(process, log)
    try:
        yield operator
    finally:
        await operator.stop()
