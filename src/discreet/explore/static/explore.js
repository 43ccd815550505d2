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
  var remembering = 0;
  var running = {};
  var isMoving = false;
  var asked = []; // the steps that were taken, each with the question's name
  var counts = facts.history ? facts.history.counts : [];
  var resting = {}; // for each control whether it changes nothing
  var refused = null; // the step that the ledger refused just now
  var player = null;

  function input(control) {
    return form.elements[control.name];
  }

  function places() {
    return facts.controls.map(function (control) { return Number(input(control).value); });
  }

  function viewKey() {
    return places().concat(counts).join("-");
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
    var own = places().concat(counts).map(function (place, n) { return experiment.own[n] ? place : 0; }).join("-");
    if (!recorded) return get("outcomes/" + facts.name + "/" + experiment.name + "/" + own + ".json");
    var list = recorded.outcomes[experiment.name][own];
    var turn = (turns[experiment.name + own] || 0);
    turns[experiment.name + own] = turn + 1;
    return Promise.resolve(Object.assign({ recorded: list.length }, list[turn % list.length]));
  }

  // To set a text that stands already makes the browser lay out the page.
  function write(name, text) {
    var node = document.getElementById(name);
    if (node.textContent !== text) node.textContent = text;
  }

  function say(text, isRefused) {
    write("says", text);
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

  function forget() {
    asked = [];
    counts = facts.history ? facts.history.counts : [];
  }

  // The charts of the view, with the outcomes that belong on them. The last outcome is strong.
  function showCharts() {
    var room = document.getElementById("charts");
    var charts = shown.charts.map(function (chart) {
      return Object.assign({}, chart, { series: chart.series.slice() });
    });
    window.discreetHistory.draw(charts, asked.concat(refused || []));
    facts.experiments.forEach(function (experiment) {
      var list = (outcomes[experiment.name] || []).slice(-OVERLAID);
      list.forEach(function (outcome, n) {
        outcome.overlays.forEach(function (one) {
          var series = Object.assign({}, one.series, { isFaint: n < list.length - 1 });
          charts[one.chart].series.push(series);
        });
      });
    });
    if (player) player.cut(charts);
    room.classList.toggle("pairs", charts.length > 1 && charts.some(function (one) { return one.is_map; }));
    while (room.children.length > charts.length) room.lastChild.remove();
    while (room.children.length < charts.length) room.append(document.createElement("figure"));
    charts.forEach(function (chart, n) { window.discreetChart.show(room.children[n], chart); });
  }

  function show(found, refusal) {
    refused = refusal || null;
    var view = shown = facts.history ? window.discreetHistory.after(found, asked, refused) : found;
    say(view.says, view.is_refused);
    write("meaning", view.meaning);
    showIdle(view);
    showCharts();
    window.discreetTable.show(document.getElementById("table"), view);
    write("code", view.code);
    document.documentElement.dataset.at = viewKey();
  }

  // Controls that change nothing in this view rest.
  function showIdle(view) {
    facts.controls.forEach(function (control) {
      var isIdle = view.idle.indexOf(control.name) >= 0;
      if (resting[control.name] === isIdle) return;
      resting[control.name] = isIdle;
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
      if (input(control).getAttribute("aria-valuetext") === text) return;
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
    return viewAt(viewKey()).then(function (view) {
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
    clearTimeout(remembering);
    remembering = setTimeout(writeAddress, REST); // browsers limit how often the address may change
  }

  function writeAddress() {
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

  // Answers to the same question are drawn together.
  function topicOf() {
    return facts.history ? places()[facts.history.topic] : 0;
  }

  function unitOf(experiment, topic) {
    return facts.history ? facts.controls[facts.history.topic].texts[topic] : experiment.unit;
  }

  function showOutcomes(experiment) {
    var section = document.getElementById("e-" + experiment.name);
    var list = outcomes[experiment.name] || [];
    var topic = list.length ? list[list.length - 1].topic : 0;
    var drawn = list.filter(function (one) { return one.points.length && one.topic === topic; });
    section.hidden = !list.length;
    if (!drawn.length) {
      var empty = document.createElement("div");
      empty.className = "chart";
      section.querySelector(".chart").replaceWith(empty);
    } else {
      window.discreetChart.show(section.querySelector(".chart"), window.discreetOutcomes.chart(unitOf(experiment, topic), drawn));
    }
    section.querySelector(".tally").textContent = window.discreetOutcomes.tally(list);
    var lines = section.querySelector("ol");
    if (!list.length) {
      lines.replaceChildren();
      return;
    }
    var line = document.createElement("li");
    line.textContent = list[list.length - 1].says;
    lines.prepend(line);
  }

  function run(experiment) {
    var ticket = tickets[experiment.name] = {};
    var undo = function () { return Promise.resolve(); };
    var topic = topicOf(), paid = Promise.resolve(true);
    if (experiment.isCharged) {
      var before = asked, counted = counts;
      undo = function () {
        asked = before; // a question that was not answered does not count
        counts = counted;
        return move();
      };
      paid = charge(topic);
    }
    wait(experiment, true);
    paid.then(function (isPaid) {
      if (!isPaid) return null;
      return outcomeOf(experiment).then(function (outcome) {
        if (tickets[experiment.name] !== ticket) return; // its controls have moved since
        outcome = Object.assign({ topic: topic }, outcome);
        if (player) player.take(outcome, experiment);
        (outcomes[experiment.name] = outcomes[experiment.name] || []).push(outcome);
        showOutcomes(experiment);
        sayNewest(outcome.says + (outcome.says.slice(-1) === "." ? "" : "."));
        if (outcome.overlays.length) showCharts();
      });
    }).catch(function (error) {
      if (tickets[experiment.name] !== ticket) return null;
      if (player) player.stop();
      return undo().then(function () {
        say("No answer came: " + error.message + ". Is discreet explore still running?", true);
      });
    }).then(function () {
      if (tickets[experiment.name] === ticket) wait(experiment, false);
    });
  }

  // Takes the view's step: the question is counted, or the ledger refuses it.
  function charge(topic) {
    var price = places()[facts.history.price];
    return viewAt(viewKey()).then(function (view) {
      if (view.step.refusal) {
        sayNewest("");
        show(view, view.step);
        return false;
      }
      var name = facts.controls[facts.history.topic].texts[topic];
      asked = asked.concat(Object.assign({ topic: name }, view.step));
      counts = counts.map(function (count, n) { return count + Number(n === price); });
      return move().then(function (found) {
        if (!found) throw new Error("the question was not sent");
        return true;
      });
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
    if (player) player.take(null, experiment);
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
        if (!experiment.own[n] || experiment.isCharged) return;
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
    if (player) player.stop();
    var start = facts.start.split("-");
    facts.controls.forEach(function (control, n) { input(control).value = start[n]; });
    facts.experiments.forEach(clear);
    forget();
    move();
    facts.experiments.forEach(begin);
  });
  facts.experiments.forEach(function (experiment) {
    form.querySelector('[data-name="' + experiment.name + '"]').addEventListener("click", function () {
      run(experiment);
    });
  });

  facts.experiments.forEach(function (experiment) {
    if (!experiment.timelines.length) return;
    player = window.discreetPlayer(experiment, {
      draw: showCharts,
      run: function () { run(experiment); }
    });
  });

  // Escape hides an explanation, until the pointer or the focus comes to one again.
  function hush(isHushed) {
    return function (event) {
      if (isHushed ? event.key === "Escape" : event.target.closest(".tip")) {
        form.classList.toggle("hushed", isHushed);
      }
    };
  }
  document.addEventListener("keydown", hush(true));
  form.addEventListener("pointerover", hush(false));
  form.addEventListener("focusin", hush(false));

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
  }).observe(document.querySelector(".desk"));

  function sameFixed(before) {
    return facts.controls.every(function (control, n) {
      return facts.history.fixed.indexOf(control.name) < 0 || before[n] === places()[n];
    });
  }

  addEventListener("hashchange", function () {
    var before = places();
    recall();
    if (facts.history && !sameFixed(before)) {
      forget();
      facts.experiments.forEach(clear);
    }
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
