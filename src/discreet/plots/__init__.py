"""Pictures of privacy losses (their profile, what an attacker can tell, what repetition costs) and
of what private training found.

They need Matplotlib, which comes with ``pip install 'discreet[plots]'`` and is imported when the
first picture is drawn. Each function draws on the axes it is given, or on a new figure's, and
returns them.
"""

from discreet.plots._losses import composition, profile, trade_off
from discreet.plots._training import boundaries

__all__ = ["boundaries", "composition", "profile", "trade_off"]
