import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_learner import ACTIONS, NUMBERS, assert_equal, random_batch, terms_of, tiny_learner
from tiny_sac import tiny_sac

from ccwm.agents.export import FORMAT, AgentCard, BadAgent, load_agent, load_card, save_agent, sealed
from ccwm.agents.recurrent import RecurrentPolicy
from ccwm.errors import UserError

FRAMES = np.random.default_rng(0).integers(0, 256, (3, 2, 32, 32, 3), dtype=np.uint8)  # [step, B, size, size, 3]


def card_of(learner, **changes):
    return AgentCard(**{
        "task": "maze_two_rooms", "variant": "ccwm", "seed": 3, "observation_shape": (32, 32, 3),
        "observation_dtype": "uint8", "action_size": ACTIONS, "env_steps": 480, "updates": 20,
        "config": learner.config,
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
    assert agent.card == load_card(directory) == card_of(learner)
    assert not agent.training
    saved, loaded = learner.state_dict(), agent.learner.state_dict()
    assert saved.keys() == loaded.keys()
    assert all(torch.equal(value, loaded[name]) for name, value in saved.items())


def test_it_acts_as_the_policy_of_the_learner_in_every_environment(exported):
    directory, learner = exported
    agent = load_agent(directory)
    agent.reset(2)
    policies = [RecurrentPolicy(learner.world_model, learner.actor_critic.actor), agent.policy()]
    for policy in policies:
        policy.reset(0)
    for frame in FRAMES:
        wanted = np.stack([policy.act(row) for policy, row in zip(policies, frame, strict=True)])
        assert np.array_equal(agent.act(frame), wanted)


def test_a_batch_acts_as_its_rows_do_alone_to_the_last_bit(tmp_path):
    """With wide layers, where products of matrices do differ between batch sizes."""
    learner = tiny_learner(actor_critic={"init_std": 1.0, "units": 256}, model={"deter": 256, "hidden": 256})
    save_agent(tmp_path, learner, card_of(learner))
    together, alone = load_agent(tmp_path), load_agent(tmp_path)
    together.reset(2)
    actions = np.stack([together.act(frame) for frame in FRAMES])
    for row in range(2):
        alone.reset()
        assert np.array_equal(np.stack([alone.act(frame[row]) for frame in FRAMES]), actions[:, row])


def test_a_card_from_before_there_were_kinds_is_read(exported):
    directory, learner = exported
    content = json.loads((directory / "agent.json").read_text())
    del content["config"]["agent"]
    (directory / "agent.json").write_text(json.dumps(sealed(content)))
    assert load_agent(directory).card == card_of(learner)


def test_a_policy_may_explore(exported):
    agent = load_agent(exported[0])
    greedy, exploring = agent.policy(), agent.policy(explore=True)
    greedy.reset(1)
    exploring.reset(1)
    assert not np.array_equal(greedy.act(FRAMES[0, 0]), exploring.act(FRAMES[0, 0]))


def test_a_reset_begins_a_new_episode(exported):
    agent = load_agent(exported[0])
    agent.reset(2)
    first = [agent.act(frame) for frame in FRAMES]
    assert not np.array_equal(agent.act(FRAMES[0]), first[0])
    agent.reset(2)
    assert np.array_equal(agent.act(FRAMES[0]), first[0])


def test_a_dreamer_is_exported_without_retracing(tmp_path):
    dreamer = tiny_learner(retrace={"weight": 0.0})
    save_agent(tmp_path, dreamer, card_of(dreamer))
    agent = load_agent(str(tmp_path))
    assert (agent.learner.retracing, agent.learner.truncation) == (None, None)


def test_a_sac_agent_is_exported_and_acts_alike(tmp_path):
    learner = tiny_sac(seed=3)
    card = card_of(learner, variant="sac", observation_shape=(NUMBERS,), observation_dtype="float32")
    save_agent(tmp_path, learner, card)
    agent = load_agent(tmp_path)
    assert_equal(agent.learner.state_dict(), learner.state_dict())
    states = np.random.default_rng(0).standard_normal((2, NUMBERS), dtype=np.float32)
    agent.reset(2)
    assert np.array_equal(agent.act(states), np.stack([learner.policy().act(row) for row in states]))
    assert not agent.has_world_model
    with pytest.raises(UserError, match="an agent of kind sac has no world model"):
        _ = agent.modelled


def test_the_threshold_that_auto_has_found_is_exported(tmp_path):
    learner = tiny_learner(truncation={"mode": "auto", "window": 2})
    terms_of(learner, random_batch())
    save_agent(tmp_path, learner, card_of(learner))
    agent = load_agent(tmp_path)
    assert agent.learner.truncation.threshold == learner.truncation.threshold
    assert agent.learner.truncation.running_median.num_updates == 1


def test_an_episode_must_be_begun(exported):
    with pytest.raises(UserError) as error:
        load_agent(exported[0]).act(FRAMES[0])
    assert "reset(batch)" in error.value.hint


@pytest.mark.parametrize(
    ("observation", "found", "hint"),
    [
        (np.full((2, 32, 32, 3), np.nan), "float64", "6144"),  # 2 · 32 · 32 · 3
        (FRAMES[0].astype(np.float32), "float32", "numpy.uint8"),
        (FRAMES[0].transpose(0, 3, 1, 2), "(2, 3, 32, 32)", "agent.card.config.env"),
        (FRAMES[0][:, :16], "(2, 16, 32, 3)", "agent.card.config.env"),
        (FRAMES[0][:1], "(1, 32, 32, 3)", "reset(batch)"),
        (FRAMES[0][0], "(32, 32, 3)", ""),
        (FRAMES[0].tolist(), "list", "NumPy"),
    ],
    ids=["NaN", "dtype", "channels first", "size", "rows", "no batch axis", "list"],
)
def test_a_wrong_observation_is_refused_with_what_to_do(exported, observation, found, hint):
    agent = load_agent(exported[0])
    agent.reset(2)
    with pytest.raises(UserError) as error:
        agent.act(observation)
    assert "uint8 (2, 32, 32, 3)" in str(error.value)
    assert found in str(error.value)
    assert hint in error.value.hint


def test_a_single_environment_needs_no_batch_axis(exported):
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
    with pytest.raises(BadAgent, match=name):
        load_agent(exported[0])


def rewrite_card(directory, **changes):
    path = directory / "agent.json"
    path.write_text(json.dumps(sealed(json.loads(path.read_text()) | changes)))


def test_a_card_of_another_format_is_refused(exported):
    rewrite_card(exported[0], format=FORMAT + 1)
    with pytest.raises(BadAgent, match=rf"format {FORMAT + 1}"):
        load_agent(exported[0])


def test_a_card_with_unknown_keys_is_refused_by_name(exported):
    rewrite_card(exported[0], novelty=True)
    with pytest.raises(BadAgent, match=r"agent\.json.*novelty"):
        load_agent(exported[0])


def test_a_card_with_a_wrong_setting_is_refused_by_name(exported):
    card = json.loads((exported[0] / "agent.json").read_text())
    card["config"]["model"]["deter"] = -1
    rewrite_card(exported[0], config=card["config"])
    with pytest.raises(BadAgent, match=r"config\.model\.deter"):
        load_agent(exported[0])


@pytest.mark.parametrize("size", [1_000_000_000_000, -1, 0, True, "2", None])
def test_a_size_that_no_agent_has_is_refused_by_name(exported, size):
    rewrite_card(exported[0], action_size=size)
    with pytest.raises(BadAgent, match=r"agent\.json.*action_size"):
        load_agent(exported[0])


def test_an_edited_card_is_refused(exported):
    path = exported[0] / "agent.json"
    path.write_text(path.read_text().replace('"action_repeat": 2', '"action_repeat": 3'))
    with pytest.raises(BadAgent, match=r"agent\.json is not as it was saved"):
        load_agent(exported[0])


@pytest.mark.parametrize("content", [b"{", b"[1, 2]", b"\xff\xfe\x00", b"null"])
def test_a_card_that_is_no_card_is_refused(exported, content):
    (exported[0] / "agent.json").write_bytes(content)
    with pytest.raises(BadAgent, match=r"agent\.json"):
        load_agent(exported[0])


def test_weights_that_do_not_fit_the_card_are_refused(exported):
    rewrite_card(exported[0], action_size=ACTIONS + 1)
    with pytest.raises(BadAgent, match=r"agent\.safetensors"):
        load_agent(exported[0])


def test_a_missing_weight_is_refused_by_name(exported):
    path = exported[0] / "agent.safetensors"
    weights = load_file(path)
    del weights["actor_critic.actor.layers.0.weight"]
    save_file(weights, path)
    with pytest.raises(BadAgent, match=r"agent\.safetensors") as error:
        load_agent(exported[0])
    assert "actor_critic.actor.layers.0.weight" in error.value.hint


def test_a_tensor_of_another_dtype_is_refused_by_name(exported):
    """The same bytes read as integers are other numbers, which torch copies into the weights without a word."""
    path = exported[0] / "agent.safetensors"
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header["actor_critic.actor.layers.0.weight"]["dtype"] = "I32"
    path.write_bytes(data[:8] + json.dumps(header, separators=(",", ":")).encode().ljust(size) + data[8 + size :])
    assert load_file(path)["actor_critic.actor.layers.0.weight"].dtype == torch.int32
    with pytest.raises(BadAgent, match=r"agent\.safetensors.*actor_critic\.actor\.layers\.0\.weight"):
        load_agent(exported[0])


def test_a_flipped_bit_of_a_weight_is_refused(exported):
    path = exported[0] / "agent.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(BadAgent, match=r"agent\.safetensors is not as it was saved"):
        load_agent(exported[0])


def test_weights_that_are_not_finite_are_refused(tmp_path):
    learner = tiny_learner()
    learner.actor_critic.actor.layers[0].weight.data.fill_(torch.nan)
    save_agent(tmp_path, learner, card_of(learner))
    with pytest.raises(BadAgent, match=r"not finite \(actor_critic\.actor\.layers\.0\.weight"):
        load_agent(tmp_path)


def test_an_action_that_is_not_finite_is_refused(exported):
    agent = load_agent(exported[0])
    agent.learner.actor_critic.actor.layers[0].weight.data.fill_(torch.nan)
    agent.reset(2)
    with pytest.raises(UserError, match="action is not finite"):
        agent.act(FRAMES[0])


def test_no_file_chooses_code(tmp_path):
    learner = tiny_learner()
    save_agent(tmp_path, learner, card_of(learner, task="trap:World"))
    with pytest.raises(UserError, match=r"trap:World.*--task trap:World"):
        _ = load_agent(tmp_path).task
    assert load_agent(tmp_path, task="maze_open").task == "maze_open"
    assert load_agent(tmp_path, task="trap:World").task == "trap:World"


def test_a_torn_file_is_refused(exported):
    path = exported[0] / "agent.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(BadAgent, match=r"agent\.safetensors"):
        load_agent(exported[0])


def test_an_agent_does_not_depend_on_the_seed_that_is_in_force(exported):
    """Building the networks draws initial weights; what is loaded replaces every one."""
    torch.manual_seed(1)
    one = load_agent(exported[0]).state_dict()
    torch.manual_seed(2)
    other = load_agent(exported[0]).state_dict()
    assert all(torch.equal(value, other[name]) for name, value in one.items())
