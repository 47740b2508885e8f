"""The console as people have it: a process on a pseudo-terminal, with real SSH servers and a real store."""
