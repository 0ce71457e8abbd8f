"""The figure of docs/places.md: python docs/figures/places_rectangle.py"""

from pathlib import Path

import optdp
from optdp.report.plots import figure_of, save_figure

if __name__ == "__main__":
    best = optdp.solve_kernel(3.0, domain=optdp.Box((0, 0), (4, 3)), rtol=0.01)
    save_figure(figure_of(best.plot()), Path(__file__).with_name("places-rectangle.png"))
