// The outcomes of experiments: their chart, and how many guesses were right.
(function () {
  "use strict";
  function chart(unit, list) {
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
      y: { label: unit, low: low - air, high: high + air, categories: [] },
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

  // How many guesses of each kind were right, with Wilson's interval of their share at 95 %. Recorded
  // outcomes return in turn; each one counts once.
  function tally(list) {
    var right = {}, all = {}, bounds = {};
    var recorded = list.length ? list[list.length - 1].recorded : 0;
    var isRepeated = recorded && list.length > recorded;
    list.slice(recorded ? -recorded : 0).forEach(function (outcome) {
      outcome.guesses.forEach(function (one) {
        all[one.label] = (all[one.label] || 0) + 1;
        right[one.label] = (right[one.label] || 0) + Number(one.is_right);
        bounds[one.label] = one.bound;
      });
    });
    return Object.keys(all).map(function (label) {
      var ends = shareInterval(right[label], all[label]);
      return label + ": right " + right[label] + " of " + all[label] + " times, which means " +
        ends.join(" to ") + " % in the long run" + (bounds[label] ? " (proven: " + bounds[label] + ")" : "");
    }).join("; ") + (isRepeated && Object.keys(all).length ? ". All recorded outcomes were shown" : "");
  }

  function shareInterval(right, all) {
    var z = 1.96, share = right / all, under = 1 + z * z / all;
    var middle = (share + z * z / (2 * all)) / under;
    var half = z * Math.sqrt(share * (1 - share) / all + z * z / (4 * all * all)) / under;
    return [middle - half, middle + half].map(function (end) {
      return String(Math.round(100 * Math.min(Math.max(end, 0), 1)));
    });
  }

  window.discreetOutcomes = { chart: chart, tally: tally };
})();
