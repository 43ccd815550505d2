// The colours: those of the system, light, or dark. It runs before the page is drawn.
(function () {
  "use strict";
  var order = ["system", "light", "dark"];
  var chosen = "system";
  try {
    chosen = localStorage.getItem("discreet-colours") || "system";
  } catch (error) {
    // no storage, as in some private windows
  }
  if (order.indexOf(chosen) < 0) chosen = "system";

  function show() {
    if (chosen === "system") document.documentElement.removeAttribute("data-colours");
    else document.documentElement.setAttribute("data-colours", chosen);
    var button = document.getElementById("theme");
    if (button) button.textContent = "Colours: " + chosen;
  }

  show();
  document.addEventListener("DOMContentLoaded", function () {
    var button = document.getElementById("theme");
    button.hidden = false;
    button.addEventListener("click", function () {
      chosen = order[(order.indexOf(chosen) + 1) % order.length];
      try {
        localStorage.setItem("discreet-colours", chosen);
      } catch (error) {
        // the choice lasts for this page only
      }
      show();
    });
    show();
  });
})();
