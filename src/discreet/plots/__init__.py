"""Pictures of answers, of privacy losses and of private training.

`_answers` draws an answer's numbers with their intervals, by panels (`_answer_panel`).
`_losses` draws a privacy loss: its profile, its trade-off curve, its growth under repetition.
`_audits` draws the result of an audit: claimed and measured.
`_training` draws the results of an example. `_charts` draws charts that are given as values
(`_chart_values`), such as those of the explorer's pages. `_style` holds colours, axes and labels.

The pictures need Matplotlib (``pip install 'discreet[plots]'``), which is imported when the first
one is drawn. Each function draws on the given axes, or on those of a new figure, and
returns them.
"""

from discreet.plots._answers import answer
from discreet.plots._audits import audit
from discreet.plots._chart_values import Axis, Chart, RuleLine, Series
from discreet.plots._charts import chart, charts
from discreet.plots._losses import composition, profile, trade_off
from discreet.plots._training import boundaries

__all__ = [
    "Axis",
    "Chart",
    "RuleLine",
    "Series",
    "answer",
    "audit",
    "boundaries",
    "chart",
    "charts",
    "composition",
    "profile",
    "trade_off",
]
