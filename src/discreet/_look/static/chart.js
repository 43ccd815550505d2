// Draws the charts of a view. Observable Plot draws the axes; they stay while their scales stay. The
// series on them are paths of our own, so that a drag only sets their "d". All numbers come with the
// view.
(function () {
  "use strict";
  var SVG = "http://www.w3.org/2000/svg";
  var DASHES = ["", "7 4", "2 3", "9 3 2 3", "1 4"];
  var BELOW = 36;
  var FRAMES = 24; // of one figure
  var made = 0;

  function colour(style) {
    return "var(--series-" + (style % 5) + ")";
  }

  function short(value) {
    var size = Math.abs(value);
    if (size >= 1e6) return (value / 1e6).toLocaleString("en") + "M";
    return size >= 1e4 ? value / 1e3 + "k" : value.toLocaleString("en");
  }

  function powers(low, high) {
    var found = [];
    for (var power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power += 1) {
      found.push(Number("1e" + power));
    }
    return found;
  }

  // Whether names in words, which say more than a part of them, are better written aslant.
  function isAslant(axis, width) {
    var names = axis.categories;
    return names.some(function (name) { return isNaN(name); }) && names.length * 18 < width - 66
      && apart(axis, width).length < names.length;
  }

  // Categories whose names fit beside one another: all, or each second, third, ... of them.
  function apart(axis, width) {
    var names = axis.categories, longest = Math.max.apply(null, names.map(function (name) { return name.length; }));
    var each = Math.max(1, Math.ceil((7 * longest + 8) * names.length / (width - 66)));
    return names.filter(function (_, at) { return at % each === 0; });
  }

  function scaleOf(axis, width) {
    if (axis.categories.length) {
      var isTilted = isAslant(axis, width);
      return {
        type: "band", domain: axis.categories, label: axis.label, padding: 0.15, tickRotate: isTilted ? -40 : 0,
        ticks: isTilted ? axis.categories : apart(axis, width)
      };
    }
    var found = { domain: [axis.low, axis.high], label: axis.label };
    found.ticks = width < 260 ? 3 : width < 420 ? 5 : 8;
    if (axis.is_log) {
      found.type = "log";
      found.ticks = powers(axis.low, axis.high);
      found.tickFormat = short;
    } else if (Math.max(Math.abs(axis.low), Math.abs(axis.high)) >= 10000) {
      found.tickFormat = short;
    }
    return found;
  }

  function element(name, attributes) {
    var found = document.createElementNS(SVG, name);
    Object.keys(attributes).forEach(function (key) { found.setAttribute(key, attributes[key]); });
    return found;
  }

  // The axes of a chart, and functions from values to pixels.
  function frame(chart, width) {
    var side = { top: 34, right: 14, bottom: BELOW + 6, left: width < 260 ? 40 : 52 };
    var height = Math.round(Math.max(width < 260 ? 150 : 220, Math.min(340, width * 0.55)));
    var x = scaleOf(chart.x, width), y = scaleOf(chart.y, width);
    if (x.tickRotate) {
      var longest = Math.max.apply(null, chart.x.categories.map(function (name) { return name.length; }));
      side.bottom = Math.round(BELOW + 4.6 * longest);
      height += side.bottom - BELOW - 6;
      x.labelOffset = side.bottom - 4;
    }
    if (chart.is_map) {
      side = { top: 1, right: 1, bottom: 1, left: 1 };
      height = width;
      x.axis = null;
      y.axis = null;
    } else {
      y.grid = true;
      y.labelArrow = "none";
      y.labelAnchor = "top";
      x.labelArrow = "none";
      x.labelAnchor = "center";
    }
    var svg = Plot.plot({
      width: width, height: height, marginLeft: side.left, marginRight: side.right,
      marginTop: side.top, marginBottom: side.bottom, x: x, y: y, className: "plot"
    });
    var style = svg.querySelector("style"); // the page's own sheet says the same
    if (style) style.remove();
    ["aria-label", "aria-hidden"].forEach(function (name) {
      // the picture has one name; its numbers are in the table
      Array.prototype.forEach.call(svg.querySelectorAll("[" + name + "]"), function (group) {
        group.removeAttribute(name);
      });
    });
    svg.setAttribute("role", "img");
    var across = svg.scale("x"), up = svg.scale("y"), step = across.bandwidth || 0;
    made += 1;
    var clip = element("clipPath", { id: "clip-" + made });
    clip.append(element("rect", {
      x: side.left - 6, y: side.top - 6, width: width - side.left - side.right + 12,
      height: height - side.top - side.bottom + 12
    }));
    var rules = element("g", {}), series = element("g", { "clip-path": "url(#clip-" + made + ")" });
    svg.append(clip, rules, series);
    if (chart.is_map) {
      svg.append(element("rect", {
        x: 0.5, y: 0.5, width: width - 1, height: height - 1, fill: "none", stroke: "currentColor",
        "stroke-opacity": 0.25
      }));
    }
    return {
      svg: svg, rules: rules, series: series, step: step, side: side, width: width, height: height,
      x: function (value) { return across.apply(value) + step / 2; },
      y: function (value) { return up.apply(value); }
    };
  }

  function round(value) {
    return Math.round(value * 10) / 10;
  }

  function circle(x, y, r) {
    return "M" + (x - r) + "," + y + "a" + r + "," + r + " 0 1,0 " + 2 * r + ",0a" + r + "," + r + " 0 1,0 " + -2 * r + ",0";
  }

  function triangle(x, y, r) {
    return "M" + x + "," + (y - r) + "l" + r + "," + 1.7 * r + "h" + -2 * r + "z";
  }

  // The path of a series, for each kind.
  var PATHS = {
    line: function (to, points) {
      return points.map(function (p, n) { return (n ? "L" : "M") + round(to.x(p[0])) + "," + round(to.y(p[1])); }).join("");
    },
    steps: function (to, points) {
      var d = "", before = null;
      points.forEach(function (p) {
        var x = round(to.x(p[0])), y = round(to.y(p[1]));
        d += before === null ? "M" + x + "," + y : "H" + round((before + x) / 2) + "V" + y + "H" + x;
        before = x;
      });
      return d;
    },
    dots: function (to, points, style) {
      var mark = style % 2 ? triangle : circle, r = style % 2 ? 6 : 4;
      return points.map(function (p) { return mark(round(to.x(p[0])), round(to.y(p[1])), r); }).join("");
    },
    points: function (to, points, style) {
      var mark = style % 2 ? triangle : circle, r = to.width < 260 ? 1.6 : 2.4;
      return points.map(function (p) { return mark(round(to.x(p[0])), round(to.y(p[1])), r); }).join("");
    },
    bars: function (to, points, style) {
      // two series of bars share a place; one alone stands in the middle
      var wide = to.step / 2 - 3, base = to.height - to.side.bottom;
      var from = to.bars < 2 ? -wide / 2 : style % 2 ? 1 : -wide - 1;
      return points.map(function (p) {
        var x = round(to.x(p[0]) + from), y = round(to.y(p[1]));
        return "M" + x + "," + base + "V" + y + "h" + round(wide) + "V" + base + "z";
      }).join("");
    },
    errors: function (to, points) {
      return points.map(function (p) {
        var x = round(to.x(p[0])), low = round(to.y(p[2])), high = round(to.y(p[3]));
        var dot = p[1] === null ? "" : circle(x, round(to.y(p[1])), 4); // an interval without a number
        return "M" + (x - 1) + "," + low + "h2V" + high + "h-2z" + dot;
      }).join("");
    },
    ticks: function (to, points) {
      var half = Math.min(to.step / 2, 40);
      return points.map(function (p) {
        return "M" + round(to.x(p[0]) - half) + "," + round(to.y(p[1])) + "h" + round(2 * half);
      }).join("");
    }
  };
  var FILLED = { dots: 1, points: 0.6, bars: 0.75, errors: 1 };

  function pathOf(series) {
    var path = element("path", {});
    var opacity = FILLED[series.kind];
    if (opacity) {
      path.setAttribute("fill", colour(series.style));
      path.setAttribute("fill-opacity", series.isFaint ? 0.25 : opacity);
    } else {
      path.setAttribute("fill", "none");
      path.setAttribute("stroke", colour(series.style));
      path.setAttribute("stroke-width", 2.2);
      path.setAttribute("stroke-opacity", series.isFaint ? 0.3 : 1);
      if (DASHES[series.style % 5] && series.kind !== "ticks") {
        path.setAttribute("stroke-dasharray", DASHES[series.style % 5]);
      }
    }
    return path;
  }

  function set(node, name, value) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }

  // The series of a chart, on axes that stand already.
  function drawSeries(to, chart) {
    var kinds = chart.series.map(function (one) { return one.kind + one.style + Boolean(one.isFaint); }).join();
    if (to.kinds !== kinds) {
      to.kinds = kinds;
      to.series.replaceChildren.apply(to.series, chart.series.map(pathOf));
    }
    to.bars = chart.series.filter(function (one) { return one.kind === "bars"; }).length;
    chart.series.forEach(function (one, n) {
      set(to.series.childNodes[n], "d", PATHS[one.kind](to, one.points, one.style));
    });
  }

  function drawRules(to, chart) {
    while (to.rules.childNodes.length > 2 * chart.rules.length) to.rules.lastChild.remove();
    chart.rules.forEach(function (rule, n) {
      if (to.rules.childNodes.length < 2 * n + 2) {
        to.rules.append(
          element("path", { stroke: "currentColor", "stroke-opacity": 0.55, fill: "none" }),
          element("text", { fill: "currentColor" })
        );
      }
      var line = to.rules.childNodes[2 * n], word = to.rules.childNodes[2 * n + 1];
      var isX = rule.axis === "x", at = round(isX ? to.x(rule.at) : to.y(rule.at));
      set(line, "d", isX
        ? "M" + at + "," + to.side.top + "V" + (to.height - to.side.bottom)
        : "M" + to.side.left + "," + at + "H" + (to.width - to.side.right));
      set(word, "text-anchor", isX ? "middle" : "end");
      set(word, "x", String(isX ? at : to.width - to.side.right));
      set(word, "y", String(isX ? to.side.top - 6 : at - 6));
      if (word.textContent !== rule.label) word.textContent = rule.label;
    });
  }

  function legend(chart) {
    var list = document.createElement("ul");
    list.className = "legend";
    chart.series.forEach(function (series) {
      if (!series.label || series.isFaint) return;
      var item = document.createElement("li");
      var sample = document.createElement("span");
      sample.className = "sample " + series.kind + " series-" + (series.style % 5);
      item.append(sample, series.label);
      list.append(item);
    });
    return list;
  }

  // Axes that a figure had before are used again: to draw them takes longer than all else.
  function framed(figure, key, chart, width) {
    var frames = figure.frames = figure.frames || new Map();
    if (!frames.has(key)) {
      if (frames.size >= FRAMES) frames.clear();
      frames.set(key, frame(chart, width));
    }
    return frames.get(key);
  }

  function write(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  // Shows a chart in its figure; what has not changed stays as it is.
  function show(figure, chart) {
    if (!figure.firstChild) {
      var caption = document.createElement("figcaption");
      caption.append(document.createElement("strong"), document.createElement("span"));
      figure.append(caption, document.createElement("div"), document.createElement("ul"));
      figure.classList.toggle("map", Boolean(chart.is_map));
    }
    // reading the width makes the browser lay out the page: only where nothing is drawn yet
    var width = figure.drawnAt || Math.max(120, Math.floor(figure.clientWidth || 600));
    var parts = figure.children;
    write(parts[0].children[0], chart.title);
    write(parts[0].children[1], chart.about);
    var key = JSON.stringify([chart.x, chart.y, Boolean(chart.is_map), width]);
    if (figure.key !== key) {
      figure.key = key;
      figure.frame = framed(figure, key, chart, width);
      parts[1].replaceChildren(figure.frame.svg);
    }
    set(figure.frame.svg, "aria-label", chart.title + ". " + chart.about);
    drawRules(figure.frame, chart);
    drawSeries(figure.frame, chart);
    var words = chart.series.map(function (one) { return one.label + one.kind + one.style; }).join();
    if (figure.words !== words) {
      figure.words = words;
      parts[2].replaceWith(legend(chart));
    }
    figure.chart = chart;
    figure.drawnAt = width;
  }

  // Draws a chart anew if its place has another width now.
  function fit(figure) {
    var width = figure.clientWidth;
    if (!figure.chart || width < 120 || Math.abs(width - figure.drawnAt) <= 1) return;
    figure.drawnAt = Math.floor(width);
    show(figure, figure.chart);
  }

  window.discreetChart = { show: show, fit: fit };
})();
