// Takes a receipt from a file that is dropped or chosen. The file goes nowhere but into the form.
(function () {
  "use strict";
  var drop = document.getElementById("drop");
  var text = document.getElementById("receipt");
  var tables = document.getElementById("table");
  drop.hidden = false;

  function take(file) {
    if (!file) return;
    if (file.size > text.maxLength) {
      text.value = "";
      text.setCustomValidity("This file is too large for this page: check it by discreet verify.");
      text.reportValidity();
      return;
    }
    file.text().then(function (found) {
      text.setCustomValidity("");
      text.value = found;
      choose(found);
      document.getElementById("receipt-form").requestSubmit();
    });
  }

  // A receipt names its table.
  function choose(found) {
    try {
      var name = JSON.parse(found).statement.assumptions.table;
      Array.prototype.forEach.call(tables.options, function (one) {
        if (one.value === name) tables.value = name;
      });
    } catch (error) {
      // the reader chooses the table
    }
  }

  document.getElementById("file").addEventListener("change", function (event) { take(event.target.files[0]); });
  text.addEventListener("input", function () { text.setCustomValidity(""); });
  ["dragover", "dragleave", "drop"].forEach(function (name) {
    document.addEventListener(name, function (event) {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
      if (name === "drop") take(event.dataTransfer.files[0]);
    });
  });
})();
