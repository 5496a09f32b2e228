"""A worker process: one environment, driven over a pipe.  ``python -m ccwm.training.worker SETTINGS DESCRIPTOR``

It is told ``{"reset": seed}`` or ``{"step": [a, …]}`` and answers with a line of JSON, then the image's bytes. It ends
when its parent does, however that came about, because then the pipe is closed.
"""

from __future__ import annotations

import contextlib
import json
import sys
from multiprocessing.connection import Connection

import numpy as np

from ccwm.envs.env import TaskEnv
from ccwm.envs.factory import make_env


def main() -> None:
    """Build the environment that the settings describe and serve it until the pipe is closed."""
    settings, descriptor = json.loads(sys.argv[1]), int(sys.argv[2])
    link = Connection(descriptor)
    try:
        env = make_env(**settings)
        _send(link, actions=env.action_space.shape)
        _serve(link, env)
    except Exception as error:
        with contextlib.suppress(OSError):  # nobody is there to hear it
            _send(link, error=f"{type(error).__name__}: {error}")
            sys.exit(1)


def _serve(link: Connection, env: TaskEnv) -> None:
    with contextlib.closing(env):
        while True:
            try:
                asked = json.loads(link.recv_bytes())
            except EOFError:
                return
            if "reset" in asked:
                image, info = env.reset(seed=asked["reset"])
                _send(link, info=info)
            else:
                image, reward, terminated, truncated, info = env.step(np.array(asked["step"], np.float32))
                _send(link, reward=float(reward), terminated=bool(terminated), truncated=bool(truncated), info=info)
            link.send_bytes(image.tobytes())


def _send(link: Connection, **content: object) -> None:
    link.send_bytes(json.dumps(content).encode())


if __name__ == "__main__":
    main()
