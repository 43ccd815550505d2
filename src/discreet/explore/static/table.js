// The numbers of a view as a table.
(function () {
  "use strict";
  function cells(line, row, isHead) {
    while (line.cells.length > row.length) line.lastChild.remove();
    row.forEach(function (text, n) {
      var cell = line.cells[n];
      if (!cell) {
        cell = document.createElement(isHead || n === 0 ? "th" : "td");
        if (cell.tagName === "TH") cell.scope = isHead ? "col" : "row";
        line.append(cell);
      }
      if (cell.textContent !== text) cell.textContent = text;
    });
  }

  // What has not changed stays as it is.
  function show(table, view) {
    var body = table.tBodies[0];
    cells(table.tHead.rows[0], view.heads, true);
    while (body.rows.length > view.rows.length) body.lastElementChild.remove();
    view.rows.forEach(function (row, n) { cells(body.rows[n] || body.insertRow(), row, false); });
  }

  window.discreetTable = { show: show };
})();
