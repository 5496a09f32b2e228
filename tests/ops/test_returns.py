import torch
from torch.testing import assert_close

from ccwm.ops.returns import discount_weights, generalised_advantage, lambda_return


def column(*values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


REWARD, DISCOUNT, VALUE = column(1, 2, 50), column(0.5, 0.5, 50), column(3, 4, 6)


def test_lambda_zero_is_the_one_step_target():
    got = lambda_return(REWARD, DISCOUNT, VALUE, lam=0.0)
    assert_close(got, column(3, 5))  # 1 + 0.5·4, 2 + 0.5·6; the last reward and discount lie beyond the horizon


def test_lambda_one_is_the_discounted_sum_of_rewards():
    got = lambda_return(REWARD, DISCOUNT, VALUE, lam=1.0)
    assert_close(got, column(3.5, 5))  # 2 + 0.5·6 = 5, 1 + 0.5·5


def test_lambda_in_between_mixes_value_and_return():
    got = lambda_return(REWARD, DISCOUNT, VALUE, lam=0.25)
    assert_close(got, column(3.125, 5))  # 1 + 0.5·(0.75·4 + 0.25·5)


def test_an_ended_episode_takes_nothing_from_later():
    got = lambda_return(REWARD, column(0, 0.5, 0.5), VALUE, lam=0.25)
    assert_close(got, column(1, 5))


def test_columns_do_not_mix():
    other = column(7, -1, 2)
    both = lambda_return(
        torch.cat([REWARD, other], 1), torch.cat([DISCOUNT] * 2, 1), torch.cat([VALUE] * 2, 1), lam=0.9
    )
    assert_close(both[:, :1], lambda_return(REWARD, DISCOUNT, VALUE, lam=0.9))
    assert_close(both[:, 1:], lambda_return(other, DISCOUNT, VALUE, lam=0.9))


def test_advantages_follow_their_recursion():
    # δ = 1 + 0.5·4 − 3 = 0,  2 + 0.5·6 − 4 = 1;  A_1 = 1,  A_0 = 0 + 0.5·0.25·1
    assert_close(generalised_advantage(REWARD, DISCOUNT, VALUE, lam=0.25), column(0.125, 1))


def test_weights_are_products_of_earlier_discounts():
    # A step that probably ended the episode (0.1) discounts what follows it, not itself.
    assert_close(discount_weights(column(0.9, 0.1, 0.9, 0.9)), column(1, 0.9, 0.09, 0.081))
