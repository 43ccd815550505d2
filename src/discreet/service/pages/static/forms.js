// Says that a form was sent, and sends it once: some answers take seconds.
(function () {
  "use strict";
  var sent = [];
  document.addEventListener("submit", function (event) {
    var form = event.target, button = event.submitter;
    if (form.id === "question") return; // it says so itself
    if (sent.indexOf(form) >= 0) { event.preventDefault(); return; }
    sent.push(form);
    if (!button) return;
    button.dataset.text = button.textContent;
    setTimeout(function () { // its value is sent, too
      button.textContent = "One moment…";
      button.disabled = true;
    });
  });
  window.addEventListener("pageshow", function (event) {
    if (!event.persisted) return;
    sent = [];
    Array.prototype.forEach.call(document.querySelectorAll("[data-text]"), function (button) {
      button.textContent = button.dataset.text;
      button.disabled = false;
    });
  });
})();
