"""From aten graph to program: one function per operator, found in a table by its name."""
