"""A setting without an effect on an agent's kind is refused by its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from settings_helpers import edited, load, refusal

from ccwm.settings.agent import Agent, AgentConfig
from ccwm.settings.kinds import NEEDS, UNREAD, is_unread
from ccwm.settings.variants import resolve

SAC = {"agent.kind": "sac", "retrace.weight": 0.0}
STATES = {"env__observation": "state"}


@pytest.mark.parametrize(
    ("kind", "key", "unread"),
    [
        ("sac", "model.deter", True),
        ("sac", "train.length", True),
        ("sac", "train.batch", False),
        ("sac", "retrace.weight", False),  # a variant turns off what its base turns on
        ("sac", "retrace.loss", True),
        ("sac", "sac.tau", False),
        ("world_model", "sac.tau", True),
        ("model_free", "sac.tau", False),
        ("model_free", "playvirtual.length", True),
        ("playvirtual", "playvirtual.length", False),
        ("playvirtual", "retrace.weight", False),
        ("playvirtual", "retrace.loss", True),
        ("playvirtual", "model.vector_units", False),
        ("playvirtual", "model.stoch", True),
        ("playvirtual", "train.length", True),
        ("playvirtual", "sac.tau", False),
        ("model_free", "model.deter", False),
        ("model_free", "retrace.loss", False),
        ("model_free", "retrace.samples", True),
        ("model_free", "retrace.reverse_action", True),
        ("model_free", "actor_critic.horizon", True),
        ("model_free", "optimiser.actor_lr", True),
        ("model_free", "optimiser.model_lr", False),
        ("world_model", "retrace.loss", False),
    ],
)
def test_is_unread(kind: str, key: str, unread: bool) -> None:
    assert is_unread(kind, key) == unread


def test_every_kind_is_listed_with_sections_that_exist() -> None:
    assert set(UNREAD) == set(NEEDS) == set(get_args(Agent.model_fields["kind"].annotation))
    assert {key.partition(".")[0] for keys in UNREAD.values() for key in keys} <= set(AgentConfig.model_fields)


def test_a_sac_variant_is_resolved(tmp_path: Path) -> None:
    settings = load(tmp_path, edited(**STATES, variants__probe={**SAC, "sac.tau": 0.5, "train.batch": 256}))
    found = resolve(settings, "probe")
    assert (found.agent.kind, found.sac.tau, found.train.batch) == ("sac", 0.5, 256)


@pytest.mark.parametrize(
    ("base", "override", "told"),
    [
        ({}, {}, "env.observation (pixels) must be state with agent.kind: sac (it learns from states); set it so, or "),
        (
            STATES,
            {"retrace.weight": 1.0},
            "retrace.weight (1.0) must be 0.0 with agent.kind: sac (it has no world model",
        ),
        (STATES, {"truncation.mode": "auto"}, "truncation.mode (auto) must be none with agent.kind: sac"),
        ({**STATES, "trainer__devices": 2}, {}, "trainer.devices (2) must be 1 with agent.kind: sac"),
        (
            {**STATES, "trainer__precision": "64-true"},
            {},
            "trainer.precision (64-true) must be 32-true with agent.kind",
        ),
    ],
)
def test_what_a_sac_agent_cannot_do_is_refused(
    tmp_path: Path, base: dict[str, Any], override: dict[str, Any], told: str
) -> None:
    content = edited(**base, variants__probe={**SAC, **override})
    assert refusal(tmp_path, content).startswith(f"variants.probe: {told}")


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ({**SAC, "retrace.loss": "l2"}, "retrace.loss"),
        ({**SAC, "model.deter": 8}, "model.deter"),
        ({**SAC, "optimiser.actor_lr": 0.1}, "optimiser.actor_lr"),
        ({**SAC, "train.length": 4}, "train.length"),
    ],
)
def test_an_override_that_a_sac_agent_does_not_read_is_refused(
    tmp_path: Path, override: dict[str, Any], key: str
) -> None:
    told = refusal(tmp_path, edited(**STATES, variants__probe=override))
    assert told == f"variants.probe.{key}: has no effect with agent.kind: sac; remove it, or choose another kind"


@pytest.mark.parametrize("loss", ["kl", "released", "released-l2", "released-reconstruction"])
def test_a_model_free_agent_refuses_losses_that_need_a_spread_or_rho(tmp_path: Path, loss: str) -> None:
    told = refusal(tmp_path, edited(variants__probe={"agent.kind": "model_free", "retrace.loss": loss}))
    assert told.startswith(f"variants.probe: retrace.loss ({loss}) must be bisimulation or l2 or reconstruction or met")


@pytest.mark.parametrize("observation", ["pixels", "state"])
def test_a_model_free_variant_is_resolved(tmp_path: Path, observation: str) -> None:
    override = {"agent.kind": "model_free", "sac.tau": 0.5, "retrace.loss": "l2", "truncation.mode": "auto"}
    found = resolve(load(tmp_path, edited(env__observation=observation, variants__probe=override)), "probe")
    assert (found.agent.kind, found.sac.tau, found.retrace.loss) == ("model_free", 0.5, "l2")


def test_playvirtual_truncates_nothing_and_needs_no_room_for_chains(tmp_path: Path) -> None:
    kind = {"agent.kind": "playvirtual"}
    told = refusal(tmp_path, edited(variants__probe={**kind, "truncation.mode": "auto"}))
    assert told.startswith("variants.probe: truncation.mode (auto) must be none with agent.kind: playvirtual")
    override = {**kind, "retrace.weight": 0.5, "playvirtual.sequences": 7}
    found = resolve(load(tmp_path, edited(agent__kind="world_model", variants__probe=override)), "probe")
    assert (found.retrace.weight, found.playvirtual.sequences) == (0.5, 7)


def test_a_world_model_variant_has_no_settings_of_sac(tmp_path: Path) -> None:
    told = refusal(tmp_path, edited(variants__probe={"sac.tau": 0.5}))
    assert told.startswith("variants.probe.sac.tau: has no effect with agent.kind: world_model; ")


def test_an_unknown_kind_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    told = refusal(tmp_path, edited(agent__kind="sax"))
    assert told == 'agent.kind: must be `world_model`, `sac`, `model_free` or `playvirtual`, got "sax"'
