"""Policies write kernels turn by turn; each turn is built, verified and profiled, and the verdict is what they see."""
