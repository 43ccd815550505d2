// Plays the runs of an experiment step by step. After the last step a new run begins, a few times.
(function () {
  "use strict";
  var PAUSE = 250; // milliseconds between steps
  var RUNS = 6;

  // ``draw`` draws the charts, which ask for `cut`; ``run`` begins a new run, which comes by `take`.
  function player(experiment, acts) {
    var bar = document.getElementById("play");
    var button = bar.querySelector("button"), slider = bar.querySelector("input"), words = bar.querySelector("p");
    var outcome = null, timer = 0, left = 0;

    function go(step) {
      slider.value = String(step);
      words.textContent = outcome.steps[step - 1];
      slider.setAttribute("aria-valuetext", words.textContent);
    }

    function showBar() {
      bar.hidden = !outcome && !timer;
      button.textContent = timer ? "Pause" : "Play";
    }

    function stop() {
      clearInterval(timer);
      timer = 0;
      showBar();
    }

    function tick() {
      if (document.hidden) return stop();
      if (!outcome) return undefined; // the next run is not there yet
      var step = Number(slider.value);
      if (step < outcome.steps.length) {
        go(step + 1);
        return acts.draw();
      }
      left -= 1;
      if (!left) return stop();
      outcome = null;
      return acts.run();
    }

    function start() {
      left = RUNS;
      timer = setInterval(tick, PAUSE);
      if (outcome && Number(slider.value) === outcome.steps.length) go(1);
      showBar();
      acts.draw();
    }

    // The newest run, or none. It stands at its end, unless it is played.
    function take(found, from) {
      if (from !== experiment) return;
      outcome = found && found.steps.length ? found : null;
      if (found && !outcome) stop();
      if (outcome) {
        slider.max = String(outcome.steps.length);
        go(timer ? 1 : outcome.steps.length);
      } else {
        words.textContent = "";
      }
      showBar();
    }

    // The charts up to the step; older runs stay whole.
    function cut(charts) {
      var step = Number(slider.value);
      if (!outcome || step === outcome.steps.length) return;
      function change(n, points) {
        charts[n].series = charts[n].series.map(function (one) {
          return one.isFaint ? one : Object.assign({}, one, { points: points(one) });
        });
      }
      experiment.timelines.forEach(function (n) {
        change(n, function (one) { return one.points.filter(function (p) { return p[0] <= step; }); });
      });
      outcome.frames.forEach(function (frame) {
        change(frame.chart, function (one) { return one.label === frame.label ? frame.points[step - 1] : one.points; });
      });
    }

    button.addEventListener("click", function () { if (timer) stop(); else start(); });
    slider.addEventListener("input", function () {
      stop();
      if (!outcome) return;
      go(Number(slider.value));
      acts.draw();
    });
    return { cut: cut, stop: stop, take: take };
  }

  window.discreetPlayer = player;
})();
