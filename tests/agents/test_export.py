import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_learner import ACTIONS, tiny_learner

from ccwm.agents.export import AgentCard, WrongImage, load_agent, save_agent
from ccwm.agents.recurrent import RecurrentPolicy
from ccwm.settings.agent import Env
from ccwm.settings.schema import Render

FRAMES = np.random.default_rng(0).integers(0, 256, (3, 2, 32, 32, 3), dtype=np.uint8)  # [step, B, size, size, 3]


def card_of(learner, **changes):
    """The card of a tiny learner with retracing."""
    return AgentCard(**{
        "task": "maze_two_rooms", "variant": "ccwm", "seed": 3, "actions": ACTIONS, "env_steps": 480, "updates": 20,
        "env": Env(size=32), "render": Render(), "model": learner.world_model.settings,
        "retrace": learner.retracing.settings, "truncation": learner.retracing.truncation,
        "actor_critic": learner.actor_critic.settings,
    } | changes)  # fmt: skip


@pytest.fixture
def exported(tmp_path):
    learner = tiny_learner(seed=5)
    save_agent(tmp_path, learner, card_of(learner))
    return tmp_path, learner


def test_a_loaded_agent_is_the_one_that_was_saved(exported):
    directory, learner = exported
    assert sorted(path.name for path in directory.iterdir()) == ["agent.json", "agent.safetensors"]
    agent = load_agent(directory)
    assert agent.card == card_of(learner)
    assert not agent.training
    saved, loaded = learner.state_dict(), agent.state_dict()
    assert saved.keys() == loaded.keys()
    assert all(torch.equal(value, loaded[name]) for name, value in saved.items())
    policy = RecurrentPolicy(learner.world_model, learner.actor_critic.actor)
    policy.reset([0, 0])
    agent.reset(2)
    for frame in FRAMES:
        assert np.array_equal(agent.act(frame), policy.act(frame))


def test_a_dreamer_is_exported_without_retracing(tmp_path):
    dreamer = tiny_learner(retrace={"weight": 0.0})
    card = card_of(tiny_learner(), retrace=tiny_learner().retracing.settings.model_copy(update={"weight": 0.0}))
    save_agent(tmp_path, dreamer, card)
    assert load_agent(str(tmp_path)).retracing is None


def test_an_episode_must_be_begun(exported):
    with pytest.raises(ValueError, match=r"reset\(batch\)"):
        load_agent(exported[0]).act(FRAMES[0])


@pytest.mark.parametrize(
    "image",
    [
        FRAMES[0].astype(np.float32),
        FRAMES[0][:1],
        FRAMES[0].transpose(0, 3, 1, 2),
        np.zeros((2, 64, 64, 3), dtype=np.uint8),
    ],
    ids=["type", "rows", "channels first", "size"],
)
def test_a_wrong_image_is_refused(exported, image):
    agent = load_agent(exported[0])
    agent.reset(2)
    with pytest.raises(ValueError, match=r"uint8 images of shape \(2, 32, 32, 3\)"):
        agent.act(image)


@pytest.mark.parametrize(
    ("image", "cure"),
    [
        (np.full((2, 32, 32, 3), np.nan), r"got float64 .*: 6144 of its values are NaN or infinite; give pixels"),
        (FRAMES[0].astype(np.float32), "give pixels from 0 to 255 as numpy.uint8"),
        (FRAMES[0].transpose(0, 3, 1, 2), "put the channels last"),
        (FRAMES[0][:, :16], "scale the picture to 32 × 32 RGB"),
        (FRAMES[0][0], r"got uint8 \(32, 32, 3\): reset\(batch\) says how many"),
        (FRAMES[0].tolist(), "got list: pass a NumPy array"),
    ],
    ids=["NaN", "type", "channels first", "size", "rows", "list"],
)
def test_a_wrong_image_is_refused_with_its_cure(exported, image, cure):
    agent = load_agent(exported[0])
    agent.reset(2)
    with pytest.raises(WrongImage, match=cure):
        agent.act(image)


def test_a_single_world_needs_no_batch_axis(exported):
    agent, other = load_agent(exported[0]), load_agent(exported[0])
    agent.reset()
    other.reset(1)
    for frame in FRAMES[:, :1]:
        action = agent.act(frame[0])
        assert action.shape == (ACTIONS,)
        assert np.array_equal(action, other.act(frame)[0])


@pytest.mark.parametrize("name", ["agent.json", "agent.safetensors"])
def test_a_missing_file_is_named(exported, name):
    (exported[0] / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        load_agent(exported[0])


def rewrite_card(directory, **changes):
    path = directory / "agent.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_card_of_another_version_is_refused(exported):
    rewrite_card(exported[0], format=2)
    with pytest.raises(ValueError, match=r"agent format 2, this version of ccwm reads 1"):
        load_agent(exported[0])
    rewrite_card(exported[0], format=1, novelty=True)
    with pytest.raises(ValueError, match=r"agent\.json is not an agent of this version"):
        load_agent(exported[0])


def test_weights_that_do_not_fit_the_card_are_refused(exported):
    directory, _ = exported
    rewrite_card(directory, actions=ACTIONS + 1)
    with pytest.raises(ValueError, match=r"(?s)agent\.safetensors does not fit .*size mismatch"):
        load_agent(directory)


def test_a_missing_weight_is_refused(exported):
    directory, _ = exported
    weights = load_file(directory / "agent.safetensors")
    del weights["actor_critic.actor.layers.0.weight"]
    save_file(weights, directory / "agent.safetensors")
    with pytest.raises(ValueError, match=r"(?s)agent\.safetensors does not fit .*Missing key.*actor\.layers\.0"):
        load_agent(directory)


def test_a_torn_file_is_refused(exported):
    path = exported[0] / "agent.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"agent\.safetensors is damaged"):
        load_agent(exported[0])
