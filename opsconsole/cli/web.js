// Keys go to the console without a click first.
window.addEventListener("load", () => document.querySelector(".xterm-helper-textarea").focus());
