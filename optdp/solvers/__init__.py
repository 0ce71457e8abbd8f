"""The only place that imports a solver: HiGHS (`lp`), cvxpy (`conic`), Pyomo with SCIP, Gurobi and Ipopt (`nlp`)."""

from optdp.solvers.lp import Highs as Highs
from optdp.solvers.lp import LinearProgram as LinearProgram
from optdp.solvers.lp import LinearResult as LinearResult
from optdp.solvers.lp import LinearSolver as LinearSolver
from optdp.solvers.lp import LinearStatus as LinearStatus
from optdp.solvers.lp import Session as Session
from optdp.solvers.lp import read as read
