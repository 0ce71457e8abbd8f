"""The only place that knows solvers by name. A solver's answer is a hint: certificates decide."""
