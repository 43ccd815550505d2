// Says that a form was sent, and sends it once: some answers take seconds.
(function () {
  "use strict";
  var sent = [];

  // The seconds that have passed, where it takes some: somebody who waits sees that it goes on.
  function count(button, text) {
    var line = document.createElement("p"), start = Date.now();
    line.className = "hint progress";
    line.setAttribute("role", "status");
    line.textContent = text;
    var seconds = document.createElement("span");
    seconds.setAttribute("aria-hidden", "true");
    line.append(" ", seconds);
    button.after(line);
    return { line: line, timer: setInterval(function () {
      seconds.textContent = Math.round((Date.now() - start) / 1000) + " s";
    }, 1000) };
  }

  document.addEventListener("submit", function (event) {
    var form = event.target, button = event.submitter;
    if (form.id === "question") return; // it says so itself
    if (sent.some(function (one) { return one.form === form; })) { event.preventDefault(); return; }
    var one = { form: form };
    sent.push(one);
    if (!button) return;
    button.dataset.text = button.textContent;
    if (form.dataset.sent) one.progress = count(button, form.dataset.sent);
    setTimeout(function () { // its value is sent, too
      button.textContent = "One moment…";
      button.disabled = true;
    });
  });
  window.addEventListener("pageshow", function (event) {
    if (!event.persisted) return;
    sent.forEach(function (one) {
      if (!one.progress) return;
      clearInterval(one.progress.timer);
      one.progress.line.remove();
    });
    sent = [];
    Array.prototype.forEach.call(document.querySelectorAll("[data-text]"), function (button) {
      button.textContent = button.dataset.text;
      button.disabled = false;
    });
  });
})();
