// Draws one chart of a view with Observable Plot. All numbers come with the view.
(function () {
  "use strict";
  var DASHES = ["", "7 4", "2 3", "9 3 2 3", "1 4"];
  var BELOW = 36;

  function colour(style) {
    return "var(--series-" + (style % 5) + ")";
  }

  function points(series) {
    return series.points;
  }

  function marksOf(series, axes) {
    var stroke = colour(series.style);
    var dash = DASHES[series.style % DASHES.length];
    var common = { x: "0", y: "1", clip: true };
    switch (series.kind) {
      case "band":
        return [Plot.areaY(points(series), {
          x: "0", y1: "1", y2: "2", fill: stroke, fillOpacity: 0.25, clip: true
        })];
      case "bars":
        return [Plot.barY(points(series), {
          x: "0", y: "1", fill: stroke, fillOpacity: 0.75,
          insetLeft: series.style % 2 ? 14 : 3, insetRight: series.style % 2 ? 3 : 14
        })];
      case "steps":
        return [Plot.line(points(series), Object.assign({
          stroke: stroke, strokeWidth: 2, strokeDasharray: dash, curve: "step"
        }, common))];
      case "dots":
        return [Plot.dot(points(series), Object.assign({ fill: stroke, r: 4 }, common))];
      case "errors":
        return [
          Plot.ruleX(points(series), { x: "0", y1: "2", y2: "3", stroke: stroke, strokeWidth: 2 }),
          Plot.dot(points(series), { x: "0", y: "1", fill: stroke, r: 4 })
        ];
      case "ticks":
        return [Plot.tickY(points(series), { x: "0", y: "1", stroke: stroke, strokeWidth: 2.5 })];
      default:
        return [Plot.line(points(series), Object.assign({
          stroke: stroke, strokeWidth: 2, strokeDasharray: dash
        }, common))];
    }
  }

  function rules(chart) {
    var marks = [];
    chart.rules.forEach(function (rule) {
      var line = { stroke: "currentColor", strokeOpacity: 0.55, strokeWidth: 1 };
      var word = { text: [rule.label], fill: "currentColor" };
      if (rule.axis === "x") {
        marks.push(Plot.ruleX([rule.at], line));
        marks.push(Plot.text([rule.at], Object.assign(word, {
          x: [rule.at], frameAnchor: "top", dy: -10
        })));
      } else {
        marks.push(Plot.ruleY([rule.at], line));
        marks.push(Plot.text([rule.at], Object.assign(word, {
          y: [rule.at], frameAnchor: "right", textAnchor: "end", dy: -8
        })));
      }
    });
    return marks;
  }

  function short(value) {
    if (value >= 1e6) return value / 1e6 + "M";
    return value >= 1e4 ? value / 1e3 + "k" : value.toLocaleString("en");
  }

  function powers(low, high) {
    var found = [];
    for (var power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power += 1) {
      found.push(Number("1e" + power));
    }
    return found;
  }

  function scale(axis, width) {
    if (axis.categories.length) {
      return { type: "band", domain: axis.categories, label: axis.label, padding: 0.15 };
    }
    var found = { domain: [axis.low, axis.high], label: axis.label, ticks: width < 420 ? 5 : 8 };
    if (axis.is_log) {
      found.type = "log";
      found.ticks = powers(axis.low, axis.high);
      found.tickFormat = short;
    } else if (axis.high >= 10000) {
      found.tickFormat = short;
    }
    return found;
  }

  function draw(chart, width) {
    var marks = [].concat.apply([], chart.series.map(function (series) {
      return marksOf(series, chart);
    }));
    var height = Math.round(Math.max(220, Math.min(340, width * 0.55)));
    var y = scale(chart.y, width);
    y.grid = true;
    y.labelArrow = "none";
    y.labelAnchor = "top";
    var x = scale(chart.x, width);
    x.labelArrow = "none";
    x.labelAnchor = "center";
    var svg = Plot.plot({
      width: width, height: height, marginLeft: 52, marginRight: 14, marginTop: 34,
      marginBottom: BELOW + 6, x: x, y: y, className: "plot", marks: rules(chart).concat(marks)
    });
    var style = svg.querySelector("style"); // the page's own sheet says the same
    if (style) style.remove();
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", chart.title + ". " + chart.about);
    Array.prototype.forEach.call(svg.querySelectorAll("[aria-label]"), function (group) {
      group.removeAttribute("aria-label"); // the picture has one name; its numbers are in the table
    });
    Array.prototype.forEach.call(svg.querySelectorAll("[aria-hidden]"), function (group) {
      group.removeAttribute("aria-hidden");
    });
    return svg;
  }

  function legend(chart) {
    var list = document.createElement("ul");
    list.className = "legend";
    chart.series.forEach(function (series) {
      if (!series.label) return;
      var item = document.createElement("li");
      var sample = document.createElement("span");
      sample.className = "sample " + series.kind + " series-" + (series.style % 5);
      item.append(sample, series.label);
      list.append(item);
    });
    return list;
  }

  // Shows a chart in its figure; what has not changed stays as it is.
  function show(figure, chart) {
    var width = Math.max(280, Math.floor(figure.clientWidth || 600));
    if (!figure.firstChild) {
      var caption = document.createElement("figcaption");
      var title = document.createElement("strong");
      var about = document.createElement("span");
      caption.append(title, about);
      figure.append(caption, document.createElement("div"), document.createElement("ul"));
    }
    figure.chart = chart;
    var parts = figure.children;
    if (parts[0].children[0].textContent !== chart.title) parts[0].children[0].textContent = chart.title;
    if (parts[0].children[1].textContent !== chart.about) parts[0].children[1].textContent = chart.about;
    parts[1].replaceChildren(draw(chart, width));
    var words = chart.series.map(function (one) { return one.label + one.kind + one.style; }).join();
    if (figure.words !== words) {
      figure.words = words;
      parts[2].replaceWith(legend(chart));
    }
    figure.drawnAt = width;
  }

  window.discreetChart = { show: show };
})();
