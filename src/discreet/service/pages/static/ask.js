// The form for a question: an editor in place of the text field, sliders, and a forecast while one
// types. The server makes the forecast; without this script a button asks for it.
(function () {
  "use strict";
  var PAUSE = 500; // milliseconds without a change, before a forecast is asked for
  var form = document.getElementById("question");
  var area = document.getElementById("sql");
  var words = JSON.parse(document.getElementById("words").textContent);
  var pay = document.getElementById("pay");
  var editor = null;
  var waiting = 0;
  var turn = 0;
  var isSent = false;
  var mayPay = pay.dataset.never !== "yes";

  // The editor

  function completions() {
    var found = words.columns.map(function (one) {
      return { label: one.name, apply: one.sql, type: "variable", detail: one.about, boost: 2 };
    });
    found.push({ label: words.table.name, apply: words.table.sql, type: "type", detail: "table", boost: 1 });
    words.functions.forEach(function (name) {
      found.push({ label: name, type: "function", detail: "function" });
    });
    ["SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "AS", "AND", "OR", "NOT", "CASE", "WHEN",
      "THEN", "ELSE", "END", "BETWEEN", "IN", "IS NULL", "IS NOT NULL"].forEach(function (name) {
      found.push({ label: name, type: "keyword" });
    });
    return found;
  }

  function makeEditor() {
    if (!window.Editor) return;
    var host = document.createElement("div");
    host.id = "editor";
    editor = window.Editor.create(host, {
      text: area.value,
      label: document.getElementById("sql-label").textContent,
      describedBy: "Completions open while you type; Escape closes them, and Tab leaves the editor.",
      hint: area.placeholder,
      completions: completions(),
      changed: function (text) {
        area.value = text;
        foreseeSoon();
      }
    });
    area.after(host);
    area.hidden = true;
    area.required = false; // the browser could not show what it complains about
    document.getElementById("sql-label").addEventListener("click", function () { editor.focus(); });
  }

  function showPlace() {
    var place = document.getElementById("place");
    if (!editor) return;
    if (place) {
      editor.mark(Number(place.dataset.start), Number(place.dataset.end));
      place.hidden = true; // it is marked in the editor
    }
    else editor.clear();
  }

  // The forecast

  function foreseeSoon() {
    clearTimeout(waiting);
    turn += 1;
    disagree();
    waiting = setTimeout(foresee, PAUSE);
  }

  // The shown price is not that of the changed question: without it the server shows another one.
  function disagree() {
    var agreed = form.elements.agreed;
    var tooMuch = document.getElementById("too-much");
    if (agreed) agreed.remove();
    if (tooMuch) tooMuch.remove();
    section().setAttribute("aria-busy", "true");
    showPrice();
  }

  function foresee() {
    var now = turn;
    if (!area.value.trim()) section().removeAttribute("aria-busy");
    if (!area.value.trim() || isSent) return;
    var fields = new FormData(form);
    fields.append("part", "forecast");
    section().setAttribute("aria-busy", "true");
    fetch(document.getElementById("foresee").formAction, {
      method: "POST", body: new URLSearchParams(fields), redirect: "error", cache: "no-store"
    }).then(function (answer) {
      return answer.text().then(function (text) { show(text, answer.status); });
    }).catch(function () {
      section().removeAttribute("aria-busy");
      if (now === turn) say("No forecast came: the service can’t be reached.");
    });

    function show(text, status) {
      if (now !== turn) return; // another change came meanwhile
      var found = new DOMParser().parseFromString(text, "text/html").getElementById("forecast");
      if (!found) { // the session ended, or the service is busy
        section().removeAttribute("aria-busy");
        say(status === 401
          ? "Your session has ended. Go on by the button: after you have signed in, your question is still there."
          : "No forecast came: the service is busy, or has another problem. Change the question, or use the button.");
        return;
      }
      section().replaceWith(document.adoptNode(found));
      showPlace();
      showWrong();
      showPrice();
    }
  }

  function section() {
    return document.getElementById("forecast");
  }

  function say(text) {
    var line = document.createElement("p");
    line.className = "hint failed";
    line.textContent = text;
    section().replaceChildren(line);
    showPrice();
  }

  function showPrice() {
    var agreed = form.elements.agreed, isTooMuch = Boolean(document.getElementById("too-much"));
    pay.textContent = agreed ? "Pay " + agreed.value + " and ask" : isTooMuch ? "Too expensive" : "Show the price";
    pay.disabled = !mayPay || isTooMuch || isSent;
  }

  // Marks the field that the forecast's refusal names.
  function showWrong() {
    var wrong = section().dataset.wrong;
    ["epsilon", "within", "group_size", "delta"].forEach(function (name) {
      var field = form.elements[name], isWrong = name === wrong;
      if (isWrong) field.setAttribute("aria-describedby", "refusal");
      else field.removeAttribute("aria-describedby");
      if (isWrong) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
    });
  }

  // The price: a number, and a slider over powers of ten

  function slider(name, low, decades) {
    var field = document.getElementById(name), range = document.getElementById(name + "-slider");
    range.hidden = false;
    function follow() {
      var value = Number(field.value);
      if (!(value > 0)) return;
      var at = (Math.log10(value) - low) / decades * 60;
      range.value = String(Math.max(0, Math.min(60, Math.round(at))));
      range.setAttribute("aria-valuetext", field.value);
    }
    range.addEventListener("input", function () {
      var value = Math.pow(10, low + Number(range.value) / 60 * decades);
      field.value = String(Number(value.toPrecision(2)));
      range.setAttribute("aria-valuetext", field.value);
      foreseeSoon();
    });
    field.addEventListener("input", follow);
    follow();
  }

  function showWay() {
    var by = form.elements.by.value;
    Array.prototype.forEach.call(form.querySelectorAll("[data-by]"), function (one) {
      one.hidden = one.dataset.by !== by;
    });
  }

  document.getElementById("foresee").hidden = true; // the price is shown while one types
  makeEditor();
  slider("epsilon", -3, 4);
  slider("within", -2, 6);
  showWay();
  showPlace();
  showPrice();
  form.addEventListener("input", function (event) {
    if (event.target.name === "by") showWay();
    foreseeSoon();
  });
  form.addEventListener("submit", function (event) {
    if (isSent) { event.preventDefault(); return; } // and the service pays one request once
    if (!area.value.trim()) {
      event.preventDefault();
      say("Write a question first.");
      return;
    }
    isSent = true;
    pay.textContent = form.elements.agreed ? "Waiting for the answer…" : "Waiting for the price…";
    setTimeout(function () { pay.disabled = true; }); // its value is sent, too
  });
  window.addEventListener("pageshow", function (event) {
    if (event.persisted) { isSent = false; showPrice(); }
  });
  Array.prototype.forEach.call(document.querySelectorAll("a[data-sql]"), function (example) {
    example.addEventListener("click", function (event) {
      event.preventDefault();
      area.value = example.dataset.sql;
      if (editor) { editor.set(area.value); editor.focus(); }
      foreseeSoon();
    });
  });
  // what the server refused stays until the question changes
  if (area.value.trim() && !section().querySelector("#price, .refused")) foresee();
})();
