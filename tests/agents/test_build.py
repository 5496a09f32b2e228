"""Every kind of agent has its learner."""

import subprocess
import sys

from tiny_learner import ACTIONS, NUMBERS, TINY, config_of
from tiny_model_free import MODEL_FREE
from tiny_playvirtual import PLAYVIRTUAL
from tiny_sac import SAC

from ccwm.agents.build import build_learner
from ccwm.agents.model_based import ModelBasedLearner
from ccwm.agents.model_free import ModelFreeLearner
from ccwm.agents.playvirtual import PlayVirtualLearner
from ccwm.agents.sac import SACLearner


def test_a_world_model_agent_is_model_based():
    learner = build_learner(config_of(TINY), observation_shape=(32, 32, 3), actions=ACTIONS)
    assert isinstance(learner, ModelBasedLearner)
    assert learner.has_world_model


def test_a_sac_agent_has_no_world_model():
    learner = build_learner(config_of(SAC), observation_shape=(NUMBERS,), actions=ACTIONS)
    assert isinstance(learner, SACLearner)
    assert not learner.has_world_model


def test_a_model_free_agent_has_one_of_its_own():
    learner = build_learner(config_of(MODEL_FREE), observation_shape=(32, 32, 3), actions=ACTIONS)
    assert isinstance(learner, ModelFreeLearner)
    assert learner.has_world_model


def test_a_playvirtual_agent_has_one_without_a_world_model():
    learner = build_learner(config_of(PLAYVIRTUAL), observation_shape=(NUMBERS,), actions=ACTIONS)
    assert isinstance(learner, PlayVirtualLearner)
    assert not learner.has_world_model


def test_other_kinds_do_not_import_stable_baselines():
    script = "import sys, ccwm.agents.export, ccwm.training.loop; sys.exit('stable_baselines3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
