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
  var tickets = {};
  var timers = {};
  var OVERLAID = 6; // outcomes at once
  var REST = 200; // milliseconds
  var SPOKEN_REST = 600;
  var speaking = 0;
  var running = {};
  var isMoving = false;

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
    document.getElementById("box").classList.toggle("refused", Boolean(isRefused));
    // a screen reader hears where a drag ends, not each view on the way
    clearTimeout(speaking);
    speaking = setTimeout(function () {
      document.getElementById("spoken").textContent = text;
    }, SPOKEN_REST);
  }

  // The newest outcome stands in the same box.
  function sayNewest(text) {
    document.getElementById("newest").textContent = text;
  }

  // The old picture fades while a view or an outcome is computed.
  function showBusy() {
    var isBusy = isMoving || Object.keys(running).length > 0;
    document.querySelector(".stage").setAttribute("aria-busy", String(isBusy));
  }

  function cells(line, row, isHead) {
    while (line.cells.length > row.length) line.lastChild.remove();
    row.forEach(function (text, n) {
      var cell = line.cells[n];
      if (!cell) {
        cell = document.createElement(isHead || n === 0 ? "th" : "td");
        if (cell.tagName === "TH") cell.scope = isHead ? "col" : "row";
        line.append(cell);
      }
      if (cell.textContent !== text) cell.textContent = text;
    });
  }

  function showTable(view) {
    var table = document.getElementById("table");
    var body = table.tBodies[0];
    cells(table.tHead.rows[0], view.heads, true);
    while (body.rows.length > view.rows.length) body.lastElementChild.remove();
    view.rows.forEach(function (row, n) { cells(body.rows[n] || body.insertRow(), row, false); });
  }

  // The charts of the view, with the outcomes that belong on them. The last outcome is strong.
  function showCharts() {
    var room = document.getElementById("charts");
    var charts = shown.charts.map(function (chart) {
      return Object.assign({}, chart, { series: chart.series.slice() });
    });
    facts.experiments.forEach(function (experiment) {
      var list = (outcomes[experiment.name] || []).slice(-OVERLAID);
      list.forEach(function (outcome, n) {
        outcome.overlays.forEach(function (one) {
          var series = Object.assign({}, one.series, { isFaint: n < list.length - 1 });
          charts[one.chart].series.push(series);
        });
      });
    });
    room.classList.toggle("pairs", charts.length > 1 && charts.some(function (one) { return one.is_map; }));
    while (room.children.length > charts.length) room.lastChild.remove();
    while (room.children.length < charts.length) room.append(document.createElement("figure"));
    charts.forEach(function (chart, n) { window.discreetChart.show(room.children[n], chart); });
  }

  function show(view) {
    shown = view;
    say(view.says, view.is_refused);
    showIdle(view);
    showCharts();
    showTable(view);
    document.getElementById("code").textContent = view.code;
    document.documentElement.dataset.at = places().join("-");
  }

  // Controls that change nothing in this view rest.
  function showIdle(view) {
    facts.controls.forEach(function (control) {
      var isIdle = view.idle.indexOf(control.name) >= 0;
      Array.prototype.forEach.call(form.querySelectorAll('[name="' + control.name + '"]'), function (one) {
        one.disabled = isIdle;
        one.closest(".control").classList.toggle("idle", isIdle);
      });
    });
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
    // most views are there at once; nothing fades for these
    var fading = setTimeout(function () { isMoving = true; showBusy(); }, REST);
    var rest = function () {
      clearTimeout(fading);
      if (turn !== latest) return;
      isMoving = false;
      showBusy();
    };
    return viewAt(places().join("-")).then(function (view) {
      rest();
      if (turn === latest) show(view);
      return view;
    }).catch(function (error) {
      rest();
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

  function outcomeChart(experiment, list) {
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
      y: { label: experiment.unit, low: low - air, high: high + air, categories: [] },
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
    var drawn = list.filter(function (one) { return one.points.length; });
    section.hidden = !list.length;
    if (!drawn.length) {
      var empty = document.createElement("div");
      empty.className = "chart";
      section.querySelector(".chart").replaceWith(empty);
    } else {
      window.discreetChart.show(section.querySelector(".chart"), outcomeChart(experiment, drawn));
    }
    section.querySelector(".tally").textContent = tally(list);
    var lines = section.querySelector("ol");
    if (!list.length) {
      lines.replaceChildren();
      return;
    }
    var line = document.createElement("li");
    line.textContent = list[list.length - 1].says;
    lines.prepend(line);
  }

  // How many guesses of each kind were right, with Wilson's interval of their share at 95 %.
  function tally(list) {
    var right = {}, all = {}, bounds = {};
    list.forEach(function (outcome) {
      outcome.guesses.forEach(function (one) {
        all[one.label] = (all[one.label] || 0) + 1;
        right[one.label] = (right[one.label] || 0) + Number(one.is_right);
        bounds[one.label] = one.bound;
      });
    });
    return Object.keys(all).map(function (label) {
      var ends = shareInterval(right[label], all[label]);
      return label + ": right " + right[label] + " of " + all[label] + " times, so its share is " +
        ends.join(" to ") + " %" + (bounds[label] ? " (" + bounds[label] + ")" : "");
    }).join("; ");
  }

  function shareInterval(right, all) {
    var z = 1.96, share = right / all, under = 1 + z * z / all;
    var middle = (share + z * z / (2 * all)) / under;
    var half = z * Math.sqrt(share * (1 - share) / all + z * z / (4 * all * all)) / under;
    return [middle - half, middle + half].map(function (end) {
      return String(Math.round(100 * Math.min(Math.max(end, 0), 1)));
    });
  }

  function same(list, outcome) {
    var drawn = list.filter(function (one) { return one.points.length; });
    var size = outcome.points.length;
    return !drawn.length || !size || drawn[0].points.length === size;
  }

  function run(experiment) {
    var before = Promise.resolve(shown);
    var ticket = tickets[experiment.name] = {};
    var undo = function () {};
    if (experiment.advances) {
      var slider = form.elements[experiment.advances];
      if (shown.is_refused) return;
      var standing = slider.value;
      undo = function () {
        slider.value = standing; // what was not answered does not count
        return move();
      };
      slider.value = String(Math.min(Number(slider.value) + 1, Number(slider.max)));
      before = move();
    }
    wait(experiment, true);
    before.then(function (view) {
      if (!view) throw new Error("the question was not sent");
      if (view.is_refused) return null;
      return outcomeOf(experiment).then(function (outcome) {
        if (tickets[experiment.name] !== ticket) return; // its controls have moved since
        var list = outcomes[experiment.name] || [];
        if (!same(list, outcome)) clear(experiment);
        (outcomes[experiment.name] = outcomes[experiment.name] || []).push(outcome);
        showOutcomes(experiment);
        sayNewest(outcome.says + (outcome.says.slice(-1) === "." ? "" : "."));
        if (outcome.overlays.length) showCharts();
      });
    }).catch(function (error) {
      return undo().then(function () {
        say("No answer came: " + error.message + ". Is discreet explore still running?", true);
      });
    }).then(function () {
      if (tickets[experiment.name] === ticket) wait(experiment, false);
    });
  }

  function wait(experiment, isWaiting) {
    var button = form.querySelector('[data-name="' + experiment.name + '"]');
    var hadFocus = document.activeElement === button;
    button.classList.toggle("waits", isWaiting);
    button.disabled = isWaiting;
    if (isWaiting) {
      if (!recorded && experiment.busy) sayNewest(experiment.busy);
      running[experiment.name] = hadFocus ? "focus" : "other";
    } else {
      if (running[experiment.name] === "focus" && document.activeElement === document.body) button.focus();
      delete running[experiment.name];
      if (document.getElementById("newest").textContent === experiment.busy) sayNewest("");
    }
    showBusy();
  }

  function clear(experiment) {
    if (!(outcomes[experiment.name] || []).length) return;
    outcomes[experiment.name] = [];
    sayNewest("");
    showOutcomes(experiment);
  }

  // An immediate experiment runs once the controls rest; recorded outcomes come at once.
  function begin(experiment) {
    tickets[experiment.name] = null;
    if (running[experiment.name]) wait(experiment, false);
    clearTimeout(timers[experiment.name]);
    if (!experiment.isImmediate) return;
    if (recorded) run(experiment);
    else timers[experiment.name] = setTimeout(function () { run(experiment); }, REST);
  }

  // Other values of an experiment's own controls begin a new series of outcomes.
  function clearAfter(name) {
    facts.controls.forEach(function (control, n) {
      if (control.name !== name) return;
      facts.experiments.forEach(function (experiment) {
        if (!experiment.own[n]) return;
        clear(experiment);
        begin(experiment);
      });
    });
  }

  form.addEventListener("input", function (event) {
    move();
    clearAfter(event.target.name);
  });
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("reset", function (event) {
    event.preventDefault();
    facts.start.split("-").forEach(function (place, n) { input(facts.controls[n]).value = place; });
    facts.experiments.forEach(clear);
    move();
    facts.experiments.forEach(begin);
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
    Array.prototype.forEach.call(document.querySelectorAll("figure, .chart"), window.discreetChart.fit);
  }).observe(document.getElementById("charts"));

  addEventListener("hashchange", function () {
    var before = places();
    recall();
    move();
    places().forEach(function (place, n) {
      if (place !== before[n]) clearAfter(facts.controls[n].name);
    });
  });

  recall();
  show(shown);
  move();
  facts.experiments.forEach(begin);
})();
