"""The store: journal, snapshots, lease and requests of one cluster, in one SQLite file."""
