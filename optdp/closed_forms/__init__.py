"""Published formulas, and those found here, as sympy expressions in `eps`, derived from their definitions."""
