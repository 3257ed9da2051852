"""Returns and advantages from rewards alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

MIN_EPISODES = 2
"""Fewer episodes than this have nobody to be compared with."""


def returns_to_go(rewards: Sequence[float], gamma: float) -> tuple[float, ...]:
    """The discounted sum of each reward and the later ones: R_t = r_t + gamma R_{t+1}; one number a reward."""
    returns: list[float] = []
    running = 0.0
    for reward in reversed(rewards):
        running = reward + gamma * running
        returns.append(running)
    return tuple(reversed(returns))


def group_advantages(episodes: Sequence[Sequence[float]]) -> list[tuple[float | None, ...]]:
    """Each step's return-to-go against its group, in units of the group's deviation.

    `episodes` holds the returns-to-go of each episode of one group. Mean and (population) deviation are taken over
    all steps of all episodes, as Kevin does (arXiv 2507.11948): like is compared with like, and the advantages of a
    group add up to zero with unit variance. The mean of whole episodes' returns would call every late step bad,
    because fewer rewards remain to it. All null for fewer than two episodes with a step, or where all are equal.
    """
    steps = [value for episode in episodes for value in episode]
    rivals = sum(1 for episode in episodes if episode)
    if rivals < MIN_EPISODES or min(steps) == max(steps):
        return [(None,) * len(episode) for episode in episodes]
    mean = math.fsum(steps) / len(steps)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in steps) / len(steps))
    return [tuple((value - mean) / deviation for value in episode) for episode in episodes]
