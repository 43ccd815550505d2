// Sends a file of rows to the service, and then shows it among the files to choose.
(function () {
  "use strict";
  var room = document.getElementById("upload");
  var says = document.getElementById("upload-says");
  var button = document.getElementById("send");
  room.hidden = false;

  // The name as the service takes it: letters, digits, _ and -, without blanks and further dots.
  function plain(name) {
    var end = name.lastIndexOf(".");
    var stem = name.slice(0, end).replace(/[^A-Za-z0-9_-]+/g, "_").replace(/^[_-]+|_+$/g, "");
    return (stem || "rows").slice(0, 100) + name.slice(end).toLowerCase();
  }

  button.addEventListener("click", function () {
    var file = document.getElementById("rows").files[0];
    if (!file) {
      says.textContent = "Choose a file first.";
      return;
    }
    button.disabled = true;
    var name = plain(file.name);
    says.textContent = "Uploading " + file.name + (name === file.name ? "" : " as " + name) + "…";
    fetch("/desk/files/" + encodeURIComponent(name), {
      method: "POST", body: file, redirect: "error",
      headers: { "Content-Type": "application/octet-stream", "X-Form-Key": room.dataset.key }
    }).then(function (answer) {
      if (answer.ok) {
        location.assign("/desk/declare?chosen=" + encodeURIComponent(name));
        return null;
      }
      return answer.text().then(function (text) {
        var found = new DOMParser().parseFromString(text, "text/html").querySelector("[role=alert]");
        throw new Error(found ? found.textContent.trim() : "the service answered " + answer.status);
      });
    }).catch(function (error) {
      button.disabled = false;
      says.textContent = "Not uploaded: " + error.message;
    });
  });
})();
