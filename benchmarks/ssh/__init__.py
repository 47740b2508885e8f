"""The figures of reaching many hosts: `python -m benchmarks.ssh.replayed`, `python -m benchmarks.ssh.real_agents`."""
