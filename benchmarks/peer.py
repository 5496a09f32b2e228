"""SheepRL's own update of Dreamer v1, for `benchmarks/update.py --sheeprl PYTHON`; runs in SheepRL's environment.

    uv venv sheep && uv pip install --python sheep/bin/python sheeprl==0.5.7

Its published sizes: 50 windows of 50 images of 64 × 64, an imagined horizon of 15 from each of the 2,500 states,
untrained networks, random data. Says its versions, then makes an update for every line that it reads, and answers with
seconds and the peak of its memory in MiB. It imports nothing of ccwm.
"""

import json
import sys
import time
from pathlib import Path

import gymnasium
import hydra
import torch
from lightning.fabric import Fabric
from sheeprl import __version__
from sheeprl.algos.dreamer_v1.agent import build_agent
from sheeprl.algos.dreamer_v1.dreamer_v1 import train
from sheeprl.utils.utils import dotdict

ACTIONS = 6


def main() -> None:
    torch.set_num_threads(int(sys.argv[1]))
    with hydra.initialize_config_module("sheeprl.configs", version_base="1.3"):
        overrides = ["exp=dreamer_v1", "env=dummy", "env.id=continuous_dummy", "fabric.accelerator=cpu"]
        config = hydra.compose("config", overrides=overrides)
    config.env.screen_size, config.env.frame_stack = 64, 1
    config = dotdict(config)
    algo = config.algo
    fabric = Fabric(accelerator="cpu", devices=1)
    space = gymnasium.spaces.Dict({"rgb": gymnasium.spaces.Box(0, 255, (3, 64, 64), "uint8")})
    world_model, actor, critic, _ = build_agent(fabric, (ACTIONS,), True, config, space)
    optimizers = [
        fabric.setup_optimizers(hydra.utils.instantiate(part.optimizer, params=net.parameters(), _convert_="all"))
        for part, net in (
            (config.algo.world_model, world_model),
            (config.algo.actor, actor),
            (config.algo.critic, critic),
        )
    ]
    steps = algo.per_rank_sequence_length, algo.per_rank_batch_size
    data = {
        "rgb": torch.randint(0, 256, (*steps, 3, 64, 64)).float(),
        "actions": torch.rand(*steps, ACTIONS) * 2 - 1,
        "rewards": torch.rand(*steps, 1),
        "terminated": torch.zeros(*steps, 1),
    }
    print(json.dumps({"sheeprl": __version__, "torch": torch.__version__}), flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        train(fabric, world_model, actor, critic, *optimizers, data, None, config)
        seconds = time.perf_counter() - began
        peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
        print(json.dumps({"seconds": seconds, "peak_memory_mib": peak}), flush=True)


if __name__ == "__main__":
    main()
