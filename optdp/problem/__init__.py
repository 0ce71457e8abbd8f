"""What is to be solved, and what it is made of: privacy, domains, losses, objectives, families. What other rooms use."""

from optdp.problem.constraints import Constraint, Outputs, Unbiased
from optdp.problem.density import Density
from optdp.problem.domains import (
    Alphabet,
    Ball,
    Box,
    Circle,
    Domain,
    DomainLike,
    Integers,
    Interval,
    Line,
    OneHot,
    Sphere,
    as_domain,
    as_interval,
    listed,
    symbol_array,
)  # fmt: skip
from optdp.problem.families import Additive, AffineWindow, AllMechanisms, Composite, Family, Piecewise, Rule, Windows
from optdp.problem.losses import Absolute, DistanceLoss, Loss, LossLike, Squared, as_loss
from optdp.problem.metrics import Apart, Distances, Graph, Metric, MetricLDP, Points, as_metric
from optdp.problem.objectives import At, Average, BayesRisk, Objective, Quantile, WorstCase
from optdp.problem.priors import Prior, PriorLike, places
from optdp.problem.privacy import GDP, KL, LDP, LIP, RDP, ApproxDP, Curve, Divergence, Privacy, Profile
from optdp.problem.problem import Problem
from optdp.problem.shapes import Quartic, Rectangle, Shape, Steps, Triangle, base_name
from optdp.problem.tasks import Aggregate

__all__ = [
    "GDP", "KL", "LDP", "LIP", "RDP", "Absolute", "Additive", "AffineWindow", "Aggregate", "AllMechanisms",
    "Alphabet", "Apart", "ApproxDP", "At", "Average", "Ball", "BayesRisk", "Box", "Circle", "Composite",
    "Constraint", "Curve", "Density", "DistanceLoss", "Distances", "Divergence", "Domain", "DomainLike", "Family", "Graph",
    "Integers", "Interval", "Line", "Loss", "LossLike", "Metric", "MetricLDP", "Objective", "OneHot", "Outputs", "Piecewise",
    "Points", "Prior", "PriorLike", "Privacy", "Problem", "Profile", "Quantile", "Quartic", "Rectangle", "Rule", "Shape",
    "Sphere", "Squared", "Steps", "Triangle", "Unbiased", "Windows", "WorstCase", "as_domain", "as_interval",
    "as_loss", "as_metric", "base_name", "listed", "places", "symbol_array",
]  # fmt: skip
