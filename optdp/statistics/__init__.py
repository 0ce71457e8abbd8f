"""What a curator learns from private outputs: estimates of the inputs, and simulations of surveys."""
