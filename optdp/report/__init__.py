"""Tables, plots and pages made from solutions. Nothing here solves anything by itself."""
