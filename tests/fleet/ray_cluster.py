"""Ray nodes on loopback, as processes that a test starts, kills and ends."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryFile

from fleet_project import family

RAY = str(Path(sys.executable).parent / "ray")
TRIES, SECONDS_TO_START = 3, 60


class Cluster:
    """Ray nodes as processes; all end with the test."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.environment = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",
        }
        self.nodes: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """`ray start …`; returns when the node takes part, which not every first try brings about."""
        command = [RAY, "start", "--block", "--node-ip-address=127.0.0.1", "--object-store-memory=100000000"]
        merged = {**os.environ, **self.environment, **environment}
        merged.pop("MLFLOW_TRACKING_URI", None)
        for _ in range(TRIES):
            with TemporaryFile() as log:
                node = subprocess.Popen([*command, *arguments], env=merged, stdout=log, stderr=subprocess.STDOUT)
                self.nodes.append(node)
                deadline = time.monotonic() + SECONDS_TO_START
                while node.poll() is None and time.monotonic() < deadline:
                    if b"Ray runtime started" in os.pread(log.fileno(), 100_000, 0):
                        return node
                    time.sleep(0.05)
                said = os.pread(log.fileno(), 100_000, 0)
            self.kill(node)
        raise AssertionError(f"no node after {TRIES} tries; the last one said: {said.decode()}")

    def start_head(self) -> subprocess.Popen[bytes]:
        return self.start("--head", f"--port={self.port}", "--num-cpus=0", "--include-dashboard=false")

    def add_node(self, **environment: str) -> subprocess.Popen[bytes]:
        return self.start(f"--address={self.address}", "--num-cpus=1", **environment)

    def kill(self, node: subprocess.Popen[bytes]) -> None:
        """As if its power went: every process of the node but the cells, with -9."""
        for pid in [] if node.poll() is not None else family(node.pid)[::-1]:
            os.kill(pid, signal.SIGKILL)
        node.wait()
        self.nodes.remove(node)

    def stop(self) -> None:
        for node in list(self.nodes):
            self.kill(node)
