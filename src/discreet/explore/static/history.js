// A page after questions were asked on it, one after another. Each step came with a view.
(function () {
  "use strict";
  // The view with the questions asked so far; the server's view knows only how many there were.
  function after(view, asked, refusal) {
    var all = refusal ? asked.concat(refusal) : asked;
    var list = "asked = [" + all.map(function (step) { return step.price; }).join(", ") + "]";
    return Object.assign({}, view, {
      is_refused: Boolean(refusal),
      says: refusal ? refusal.refusal : view.says,
      rows: view.rows.concat(asked.map(function (step, n) {
        return [n + 1 + ". " + step.topic].concat(step.row);
      })),
      code: view.code.replace(/asked = \[.*\]/, list) +
        (refusal ? "# the refusal: " + refusal.ledger_words + "\n" : "")
    });
  }

  // A step's points continue the series of the same label.
  function addPoints(charts, one) {
    var series = charts[one.chart].series;
    var place = series.findIndex(function (each) { return each.label === one.series.label; });
    if (place < 0) series.push(one.series);
    else {
      series[place] = Object.assign({}, series[place], { points: series[place].points.concat(one.series.points) });
    }
  }

  function draw(charts, steps) {
    steps.forEach(function (step) {
      step.overlays.forEach(function (one) { addPoints(charts, one); });
    });
  }

  window.discreetHistory = { after: after, draw: draw };
})();
