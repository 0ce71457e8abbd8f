"""What users sample from: the optimal mechanisms and the published baselines."""

from optdp.mechanisms.additive import AdditiveMechanism as AdditiveMechanism
from optdp.mechanisms.base import Mechanism as Mechanism
from optdp.mechanisms.baselines.clamped import ClampedLaplace as ClampedLaplace
from optdp.mechanisms.baselines.clamped import ClampedStaircase as ClampedStaircase
from optdp.mechanisms.baselines.noise import noise_baselines as noise_baselines
from optdp.mechanisms.baselines.unbiased import UNBIASED as UNBIASED
from optdp.mechanisms.baselines.windows import BASELINES as BASELINES
from optdp.mechanisms.baselines.windows import clamped_laplace as clamped_laplace
from optdp.mechanisms.baselines.windows import clamped_staircase as clamped_staircase
from optdp.mechanisms.baselines.windows import pm as pm
from optdp.mechanisms.baselines.windows import ptt as ptt
from optdp.mechanisms.baselines.windows import sw as sw
from optdp.mechanisms.baselines.windows import uniform as uniform
from optdp.mechanisms.composite import CompositeMechanism as CompositeMechanism
from optdp.mechanisms.equaliser import EqualiserMechanism as EqualiserMechanism
from optdp.mechanisms.finite import FiniteMechanism as FiniteMechanism
from optdp.mechanisms.kernel import KernelMechanism as KernelMechanism
from optdp.mechanisms.kernel import two_point as two_point
from optdp.mechanisms.lip import LIPMechanism as LIPMechanism
from optdp.mechanisms.multidimensional import OneCoordinate as OneCoordinate
from optdp.mechanisms.noise import AdditiveNoise as AdditiveNoise
from optdp.mechanisms.piecewise import PiecewiseMechanism as PiecewiseMechanism
from optdp.mechanisms.varying_window import VaryingWindow as VaryingWindow
