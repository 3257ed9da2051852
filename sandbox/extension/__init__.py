"""Turns the extensions that a candidate's Python asks for into shared objects, without running any of it here.

`recorder` runs the candidate's module in a confined child and notes what it wants built, `build` decides and
compiles through `compiler`, `loader` hands the results to the candidate inside its runner.
"""
