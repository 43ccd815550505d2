// Draws the charts of a page. Each figure holds its chart as JSON; the same numbers are in a table.
(function () {
  "use strict";
  var figures = Array.prototype.slice.call(document.querySelectorAll("figure[data-chart]"));
  figures.forEach(function (figure) {
    window.discreetChart.show(figure, JSON.parse(figure.dataset.chart));
  });
  if (!figures.length) return;
  var sizes = new ResizeObserver(function () { figures.forEach(window.discreetChart.fit); });
  figures.forEach(function (figure) { sizes.observe(figure); });
})();
