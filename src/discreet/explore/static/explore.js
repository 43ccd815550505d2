// Moves a page from view to view. Views come from the server, or in an export from data/PAGE.js.
(function () {
  "use strict";
  var facts = JSON.parse(document.getElementById("facts").textContent);
  var recorded = window.discreetRecorded || null;
  var form = document.getElementById("controls");
  var views = new Map([[facts.start, Promise.resolve(facts.view)]]);
  var shown = facts.view;
  var latest = 0;
  var outcomes = {};
  var turns = {};

  function input(control) {
    return form.elements[control.name];
  }

  function places() {
    return facts.controls.map(function (control) { return Number(input(control).value); });
  }

  function get(path) {
    return fetch(path).then(function (answer) {
      if (!answer.ok) throw new Error("the explorer's server answered " + answer.status);
      return answer.json();
    });
  }

  function viewAt(key) {
    if (!views.has(key)) {
      var found = recorded
        ? Promise.resolve(recorded.views[recorded.at[key]])
        : get("views/" + facts.name + "/" + key + ".json");
      found.catch(function () { views.delete(key); });
      views.set(key, found);
    }
    return views.get(key);
  }

  function outcomeOf(experiment) {
    var own = places().map(function (place, n) { return experiment.own[n] ? place : 0; }).join("-");
    if (!recorded) return get("outcomes/" + facts.name + "/" + experiment.name + "/" + own + ".json");
    var list = recorded.outcomes[experiment.name][own];
    var turn = (turns[experiment.name + own] || 0);
    turns[experiment.name + own] = turn + 1;
    return Promise.resolve(list[turn % list.length]);
  }

  function say(text, isRefused) {
    var says = document.getElementById("says");
    says.textContent = text;
    says.classList.toggle("refused", Boolean(isRefused));
  }

  function cells(row, tag, scope) {
    return row.map(function (text, n) {
      var cell = document.createElement(n === 0 || tag === "th" ? "th" : "td");
      if (cell.tagName === "TH") cell.scope = scope;
      cell.textContent = text;
      return cell;
    });
  }

  function showTable(view) {
    var table = document.getElementById("table");
    var head = document.createElement("tr");
    head.append.apply(head, cells(view.heads, "th", "col"));
    table.tHead.replaceChildren(head);
    table.tBodies[0].replaceChildren.apply(table.tBodies[0], view.rows.map(function (row) {
      var line = document.createElement("tr");
      line.append.apply(line, cells(row, "td", "row"));
      return line;
    }));
  }

  function showCharts(charts) {
    var room = document.getElementById("charts");
    while (room.children.length > charts.length) room.lastChild.remove();
    charts.forEach(function (chart, n) {
      if (!room.children[n]) room.append(document.createElement("figure"));
      window.discreetChart.show(room.children[n], chart);
    });
  }

  function show(view) {
    shown = view;
    say(view.says, view.is_refused);
    showCharts(view.charts);
    showTable(view);
    document.getElementById("code").textContent = view.code;
    document.documentElement.dataset.at = places().join("-");
  }

  function showControls() {
    facts.controls.forEach(function (control) {
      if (!control.isSlider) return;
      var text = control.texts[Number(input(control).value)];
      document.getElementById("o-" + control.name).textContent = text;
      input(control).setAttribute("aria-valuetext", text);
    });
  }

  // Shows the view of the controls. Answers that come late are left out.
  function move() {
    showControls();
    remember();
    var turn = ++latest;
    return viewAt(places().join("-")).then(function (view) {
      if (turn === latest) show(view);
      return view;
    }).catch(function (error) {
      say("This view can’t be shown: " + error.message + ". Is discreet explore still running?", true);
    });
  }

  // The values of the controls stand in the address, so that a view can be linked to.
  function remember() {
    var words = facts.controls.map(function (control) {
      return control.name + "=" + encodeURIComponent(control.texts[Number(input(control).value)]);
    });
    try {
      history.replaceState(null, "", "#" + words.join("&"));
    } catch (error) {
      // some browsers refuse this for files
    }
  }

  function recall() {
    var given = new URLSearchParams(location.hash.slice(1));
    facts.controls.forEach(function (control) {
      var place = control.texts.indexOf(given.get(control.name));
      if (place >= 0) input(control).value = String(place);
    });
  }

  // Experiments

  function outcomeChart(list) {
    var last = list[list.length - 1].points;
    var isMany = last.length > 1;
    var points = isMany ? last : list.slice(-20).map(function (one, n) {
      return Object.assign({}, one.points[0], { label: String(Math.max(list.length - 20, 0) + n + 1) });
    });
    var ends = [];
    points.forEach(function (one) { ends.push(one.low, one.high, one.truth); });
    var low = Math.min.apply(null, ends), high = Math.max.apply(null, ends);
    var air = (high - low) * 0.08 || 1;
    var labels = points.map(function (one) { return one.label; });
    return {
      title: isMany ? "The last answer" : "Answers",
      about: "Dots are noisy answers with their 95 % intervals; short lines are the numbers without noise.",
      x: { label: isMany ? "" : "answer", categories: labels },
      y: { label: "value", low: low - air, high: high + air, categories: [] },
      series: [
        { label: "without noise", kind: "ticks", style: 1, points: points.map(function (one) {
          return [one.label, one.truth];
        }) },
        { label: "answer and interval", kind: "errors", style: 0, points: points.map(function (one) {
          return [one.label, one.value, one.low, one.high];
        }) }
      ],
      rules: []
    };
  }

  function showOutcomes(experiment) {
    var section = document.getElementById("e-" + experiment.name);
    var list = outcomes[experiment.name] || [];
    section.hidden = !list.length;
    if (!list.length) {
      var empty = document.createElement("div");
      empty.className = "chart";
      section.querySelector(".chart").replaceWith(empty);
      section.querySelector("ol").replaceChildren();
      return;
    }
    var line = document.createElement("li");
    line.textContent = list[list.length - 1].says;
    section.querySelector("ol").prepend(line);
    var drawn = list.filter(function (one) { return one.points.length; });
    if (drawn.length) window.discreetChart.show(section.querySelector(".chart"), outcomeChart(drawn));
  }

  function same(list, outcome) {
    var drawn = list.filter(function (one) { return one.points.length; });
    var size = outcome.points.length;
    return !drawn.length || !size || drawn[0].points.length === size;
  }

  function run(experiment) {
    var before = Promise.resolve(shown);
    if (experiment.advances) {
      var slider = form.elements[experiment.advances];
      if (shown.is_refused) return;
      slider.value = String(Math.min(Number(slider.value) + 1, Number(slider.max)));
      before = move();
    }
    before.then(function (view) {
      if (!view || view.is_refused) return null;
      return outcomeOf(experiment).then(function (outcome) {
        var list = outcomes[experiment.name] || [];
        if (!same(list, outcome)) clear(experiment);
        (outcomes[experiment.name] = outcomes[experiment.name] || []).push(outcome);
        showOutcomes(experiment);
      });
    }).catch(function (error) {
      say("No answer came: " + error.message + ". Is discreet explore still running?", true);
    });
  }

  function clear(experiment) {
    outcomes[experiment.name] = [];
    showOutcomes(experiment);
  }

  // Other values of an experiment's own controls begin a new series of outcomes.
  function clearAfter(name) {
    facts.controls.forEach(function (control, n) {
      if (control.name !== name) return;
      facts.experiments.forEach(function (experiment) {
        if (experiment.own[n]) clear(experiment);
      });
    });
  }

  form.addEventListener("input", function (event) {
    clearAfter(event.target.name);
    move();
  });
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("reset", function (event) {
    event.preventDefault();
    facts.start.split("-").forEach(function (place, n) { input(facts.controls[n]).value = place; });
    facts.experiments.forEach(clear);
    move();
  });
  facts.experiments.forEach(function (experiment) {
    form.querySelector('[data-name="' + experiment.name + '"]').addEventListener("click", function () {
      run(experiment);
    });
  });

  var copy = document.getElementById("copy");
  copy.hidden = false;
  copy.addEventListener("click", function () {
    var code = document.getElementById("code");
    var done = function () { copy.textContent = "Copied"; };
    var select = function () {
      getSelection().selectAllChildren(code);
      copy.textContent = "Selected: press Ctrl+C";
    };
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select);
    else select();
  });

  // Pictures fit the width of their place.
  new ResizeObserver(function () {
    Array.prototype.forEach.call(document.querySelectorAll("figure, .chart"), function (figure) {
      if (figure.chart && Math.abs(figure.clientWidth - figure.drawnAt) > 1 && figure.clientWidth >= 280) {
        window.discreetChart.show(figure, figure.chart);
      }
    });
  }).observe(document.getElementById("charts"));

  recall();
  show(shown);
  move();
})();
