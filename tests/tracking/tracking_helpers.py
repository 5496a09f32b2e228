"""What tests of tracking share: a run to talk about, and a real server that dies on command."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

from mlflow import MlflowClient

from ccwm.cells import Cell
from ccwm.tracking import Run, store

CELL = Cell("train", "walker_walk", "ccwm", 0)
StartRun = Callable[..., AbstractContextManager[Run]]


class Outage:
    """A sqlite store that refuses connections between ``kill`` and ``start``, as a server that is down does."""

    def __init__(self) -> None:
        self._down = False
        self._connect = store.connect

    def start(self) -> None:
        self._down = False

    def kill(self) -> None:
        self._down = True

    def connect(self) -> MlflowClient:
        """A client whose every call fails while the store is down."""
        self._refuse()
        return cast(MlflowClient, _Refusing(self._connect(), self._refuse))

    def _refuse(self) -> None:
        if self._down:
            raise ConnectionRefusedError(111, "Connection refused")


class _Refusing:
    def __init__(self, client: MlflowClient, refuse: Callable[[], None]) -> None:
        self._client, self._refuse = client, refuse

    def __getattr__(self, name: str) -> Any:
        self._refuse()
        return getattr(self._client, name)


class Server:
    """A real `mlflow server` that can be killed and started again on the same port and database."""

    def __init__(self, directory: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self._process is not None:
            return
        arguments = ["--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        store = ["--backend-store-uri", f"sqlite:///{self._directory}/mlflow.db"]
        files = ["--artifacts-destination", str(self._directory / "files")]
        with (self._directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", "server", *arguments, *store, *files],
                cwd=self._directory,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + 120
        while not self._healthy():
            assert time.monotonic() < deadline, (self._directory / "server.log").read_text()
            time.sleep(0.2)

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False
