"""Reaching the hosts: one SSH connection and one agent session each. Decides nothing about what runs there."""
