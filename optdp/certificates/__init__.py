"""Checks in exact arithmetic. Nothing here imports a solver, and nothing here trusts one."""
