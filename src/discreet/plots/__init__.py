"""Pictures of answers, of privacy losses and of private training.

`_answers` draws an answer's numbers with their intervals.
`_losses` draws a privacy loss: its profile, its trade-off curve, its growth under repetition.
`_training` draws the results of an example. `_style` holds colours, axes and labels.

The pictures need Matplotlib (``pip install 'discreet[plots]'``), which is imported when the first
one is drawn. Each function draws on the given axes, or on those of a new figure, and
returns them.
"""

from discreet.plots._answers import answer
from discreet.plots._losses import composition, profile, trade_off
from discreet.plots._training import boundaries

__all__ = ["answer", "boundaries", "composition", "profile", "trade_off"]
