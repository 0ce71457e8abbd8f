"""The only place that imports a solver: HiGHS (`lp`), cvxpy (`conic`), Pyomo with SCIP, Gurobi and Ipopt (`nlp`)."""

from optdp.solvers.lp import Highs, LinearProgram, LinearResult, LinearSolver, LinearStatus, Session, read

__all__ = ["Highs", "LinearProgram", "LinearResult", "LinearSolver", "LinearStatus", "Session", "read"]
