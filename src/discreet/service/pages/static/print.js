// The button that prints a statement.
(function () {
  "use strict";
  var button = document.getElementById("print");
  button.hidden = false;
  button.addEventListener("click", function () { window.print(); });
})();
