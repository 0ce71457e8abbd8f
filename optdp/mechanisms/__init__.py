"""What users sample from: the optimal mechanisms, and the published baselines in `optdp.mechanisms.baselines`."""
