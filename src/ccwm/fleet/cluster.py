"""Ray's processes: a cluster of this machine alone, or one that is already running."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ccwm.errors import UserError
from ccwm.machine import cores

OBJECT_STORE = 256 * 2**20
"""Bytes; Ray would take a third of the memory, and only the code and small files pass through it."""
STARTS = 5
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",  # Ray's ports are open to the network, even those of one machine
    "RAY_worker_niceness": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # A machine whose cores are all busy with cells answers late; Ray would take it for dead.
    "RAY_health_check_failure_threshold": "30",
    "RAY_worker_register_timeout_seconds": "600",
}
"""Read by Ray when it is imported and by every process that it starts; a value that the user has set wins."""


def configure() -> None:
    """Set what Ray reads when it is imported."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)


@contextmanager
def connected(address: str | None) -> Iterator[dict[str, float]]:
    """Within, Ray is there: at an address, or started on all cores of this machine; yields the resources."""
    configure()
    if address is None and os.environ["RAY_AUTH_MODE"] == "token":
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # nobody else need ever know it
    import ray
    from ray.exceptions import RayError

    if address is None:
        _start_local()
    else:
        try:
            ray.init(address=address, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError, RayError) as error:
            hint = "is it running (`ray status`), and is the token in RAY_AUTH_TOKEN or ~/.ray/auth_token the same?"
            raise UserError(f"no Ray cluster at {address} ({str(error).splitlines()[0]})", hint=hint) from error
    try:
        yield ray.cluster_resources()
    finally:
        ray.shutdown()


def _start_local() -> None:
    """Start Ray on all cores of this machine; Ray gives itself 30 seconds, which a busy machine may exceed."""
    import ray

    for left in reversed(range(STARTS)):
        try:
            ray.init(
                address="local",
                num_cpus=cores(),
                include_dashboard=False,
                object_store_memory=OBJECT_STORE,
                log_to_driver=False,
                _node_ip_address="127.0.0.1",
            )
            return
        except Exception as error:  # Ray has no type of its own for it
            for child in Path("/proc/self/task").glob("*/children"):
                for pid in child.read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
            if not left or "timed out" not in str(error):
                raise UserError(f"Ray did not start ({error})", hint="is the machine very busy?") from error
