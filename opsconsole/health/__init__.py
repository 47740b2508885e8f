"""Hardware health, pure: what hosts say, what that means by which rule, and with which evidence (docs/health.md)."""
