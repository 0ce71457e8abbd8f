"""Published claims, decided by program: each function returns a verdict, the numbers on both sides, and its grounds."""
