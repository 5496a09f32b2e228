import torch
from torch.testing import assert_close

from ccwm.structs import Gaussian, LatentState, Terms, stack


def state(*leading):
    """A state whose parts are all different: deter of 3, stoch of 2."""
    count = torch.Size(leading).numel()
    widths = {"deter": 3, "stoch": 2, "mean": 2, "std": 2}
    return LatentState(
        **{
            name: 100.0 * index + torch.arange(float(count * width)).reshape(*leading, width)
            for index, (name, width) in enumerate(widths.items())
        }
    )


def test_a_sample_is_mean_plus_std_times_noise():
    gaussian = Gaussian(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 3.0]))
    assert_close(gaussian.sample(torch.tensor([2.0, -1.0])), torch.tensor([2.0, -1.0]))  # 1 + 0.5·2, 2 − 3·1


def test_a_feature_is_stoch_then_deter():
    assert_close(state(1).feature, torch.tensor([[100.0, 101.0, 0.0, 1.0, 2.0]]))


def test_the_gaussian_of_a_state_is_its_mean_and_std():
    one = state(4)
    assert_close(tuple(one.gaussian), (one.mean, one.std))


def test_fold_undoes_flatten():
    whole = state(2, 5)
    flat = whole.flatten()
    assert flat.deter.shape == (10, 3)
    assert_close(flat.stoch[7], whole.stoch[1, 2])
    assert_close(tuple(flat.fold(2, 5)), tuple(whole))


def test_stacked_states_have_a_new_first_axis():
    one, other = state(4), state(4).map(lambda part: part + 1)
    both = stack([one, other])
    assert_close(tuple(both.map(lambda part: part[1])), tuple(other))


def test_a_detached_state_has_no_path_back():
    one = state(4).map(lambda part: part.requires_grad_())
    assert not any(part.requires_grad for part in one.detach())


def test_terms_add_up_by_name():
    one, two, three = (torch.tensor(float(n)) for n in (1, 2, 3))
    both = Terms({"model": one}, {"a": one}).plus(Terms({"model": two, "reverse": three}, {"b": two}))
    assert both == Terms({"model": three, "reverse": three}, {"a": one, "b": two})  # 1 + 2 = 3
