"""Which processes share a batch, and what becomes of one whose partner has died; whole runs: tests/pipeline."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
import torch
from project import assert_ended, children_of, is_alive

from ccwm.errors import UserError
from ccwm.settings.agent import Trainer
from ccwm.training.device_check import one_device
from ccwm.training.devices import is_main_process, launch, lost_rank

CPU = Trainer(accelerator="cpu", threads=1)


@pytest.fixture
def torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment in which torchrun starts the second of two processes."""
    variables = {"TORCHELASTIC_RUN_ID": "1", "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_a_single_device_is_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert is_main_process()
    fabric = launch(CPU)
    assert (fabric.world_size, fabric.device.type) == (1, "cpu")
    assert torch.get_num_threads() == 1


@pytest.mark.usefixtures("torchrun")
def test_torchrun_tells_each_process_its_rank_over_all_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_main_process()
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert not is_main_process()  # the first of the second host


@pytest.mark.usefixtures("torchrun")
def test_torchrun_must_start_as_many_processes_as_devices_are_set() -> None:
    with pytest.raises(UserError, match=r"2 processes, trainer\.devices is 3"):
        launch(CPU.model_copy(update={"devices": 3}))


@pytest.mark.skipif(torch.cuda.is_available(), reason="it has a GPU")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"accelerator": "gpu"}, r"trainer\.accelerator is gpu, this machine has only a CPU: write `auto` or `cpu`"),
        ({"accelerator": "tpu"}, r"trainer\.accelerator is tpu"),
        ({"devices": 64}, rf"trainer\.devices is 64, this machine has {os.cpu_count()} CPU cores: write at most"),
        ({"precision": "16-mixed"}, r"trainer\.precision is 16-mixed.*write `bf16-mixed` or `32-true`"),
    ],
)
def test_what_the_machine_has_not_is_refused_by_its_key(change: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        launch(CPU.model_copy(update=change))


def test_one_device_drops_the_strategy_too() -> None:
    several = CPU.model_copy(update={"devices": 4, "strategy": "ddp"})
    assert one_device(several) == CPU


def test_a_lost_connection_is_a_user_error_and_nothing_else_is() -> None:
    for error in (RuntimeError("[gloo/transport/tcp/pair.cc:537] closed\nmore"), torch.distributed.DistNetworkError()):
        with pytest.raises(UserError, match="has ended"), lost_rank():
            raise error
    with pytest.raises(RuntimeError, match="a bug"), lost_rank():
        raise RuntimeError("a bug")


RANK = """
import os, time
from ccwm.training.devices import end_with_launcher
end_with_launcher()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["dead before", "dies"])
def test_a_rank_ends_with_its_launcher(launcher: str) -> None:
    """A shell starts the rank, and either is ended, or is not the process that the rank was told of."""
    with subprocess.Popen(
        [
            "sh",
            "-c",
            f'export CCWM_LAUNCHER={"1" if launcher == "dead before" else "$$"}; "$0" -c "$1" & wait',
            sys.executable,
            RANK,
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as shell:
        while not (found := children_of(shell.pid)):
            time.sleep(0.01)
        (rank,) = found
        if launcher == "dies":
            assert shell.stdout is not None
            assert shell.stdout.readline() == "ready\n"
            assert is_alive(rank)
            os.kill(shell.pid, 9)
        assert_ended([rank], seconds=60)
