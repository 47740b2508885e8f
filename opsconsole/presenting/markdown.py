"""Foreign text in Markdown: names and reasons stay text, whatever they look like."""

from __future__ import annotations

import re

from opsconsole.presenting.text import clean

SPECIAL = re.compile(r"[\\`*_\[\]<>|~&#@$!]|(?<=http):|(?<=https):|(?<=ftp):|(?<=www)\.", re.IGNORECASE)


def escaped(text: str, most: int = 300) -> str:
    """One line that reads as it was written: no emphasis, link, entity, HTML or mention comes of it."""
    return SPECIAL.sub(r"\\\g<0>", clean(text, most).strip())
