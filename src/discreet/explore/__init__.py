"""The explorer: pages that show by dragging how differential privacy works.

`serve` shows them in a browser, `export` writes them as files for any web server, and `view` and
`outcome` give one view in Python, whose pictures `discreet.plots.charts` draws. Their data are made
up or public, and every number comes from `discreet` itself. To read the files in order:

1. `_page`: a page is a sentence, controls with a few values each, and a function from these values
   to a view: pictures, a table, a sentence, and the lines of Python that give the same numbers.
2. `pages/`: the pages. `_history`: a page's view after questions were asked on it.
3. `_rendering` (templates), `_server` (one answer for each view) with `_reserve` (slow outcomes,
   drawn beforehand), `_export` (all views as files).

The script in ``static/`` only draws: it computes no number of privacy. The pages need
``pip install 'discreet[explore]'``.
"""

from discreet.explore._export import export
from discreet.explore._page import View
from discreet.explore._server import serve
from discreet.explore.pages import outcome_of as outcome
from discreet.explore.pages import view_of as view

__all__ = ["View", "export", "outcome", "serve", "view"]
