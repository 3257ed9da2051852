"""The trusted half of the sandbox: seeds, inputs, truth, clock and verdict. Never loads anything of a candidate's."""
