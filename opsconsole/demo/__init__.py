"""A small living cluster on loopback: real SSH servers, the real hostkit, real processes; only the GPUs are
simulated."""
