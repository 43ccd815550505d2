// Columns that are typed about are chosen: bounds and keys of others are not declared. A box that is
// cleared empties its column's fields, and fills them again when it is ticked.
(function () {
  "use strict";
  var FACTS = /^(lower|upper|keys)-/;

  function facts(column) {
    return Array.prototype.filter.call(column.querySelectorAll("input"), function (one) { return FACTS.test(one.name); });
  }

  Array.prototype.forEach.call(document.querySelectorAll("fieldset.column"), function (column) {
    var box = column.querySelector("input[type=checkbox]");
    column.addEventListener("input", function (event) {
      if (FACTS.test(event.target.name) && event.target.value.trim()) box.checked = true;
    });
    box.addEventListener("change", function () {
      facts(column).forEach(function (one) {
        if (box.checked) {
          if (!one.value) one.value = one.dataset.typed || "";
        } else {
          one.dataset.typed = one.value;
          one.value = "";
        }
      });
    });
  });
})();
