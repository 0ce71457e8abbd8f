"""One file per design problem, each readable beside the paper it comes from."""
