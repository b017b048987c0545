// Choosing several rows of a list: how many are chosen, all of a page at once, and ranges with Shift. The form is sent,
// and every box is ticked, without it.
"use strict";

for (const form of document.querySelectorAll("form[data-picking]")) {
  const boxes = [...form.querySelectorAll("input[name=pick]")];
  const count = form.querySelector("[data-picked]");
  const every = form.querySelector("[data-pick-all]");
  const all = form.querySelector("input[name=all]");
  let last = null;

  function tell() {
    const picked = boxes.filter((box) => box.checked).length;
    count.textContent = all?.checked ? "" : `${picked} chosen`;
    every.textContent = picked === boxes.length ? "None on this page" : "All on this page";
  }

  // A click comes of the space bar, too; Shift goes with it.
  form.addEventListener("click", (event) => {
    const at = boxes.indexOf(event.target);
    if (at < 0) return;
    if (event.shiftKey && last !== null) {
      for (const box of boxes.slice(Math.min(at, last), Math.max(at, last) + 1)) box.checked = event.target.checked;
    }
    last = at;
  });
  form.addEventListener("change", tell);
  every.addEventListener("click", () => {
    const checked = boxes.some((box) => !box.checked);
    for (const box of boxes) box.checked = checked;
    tell();
  });
  count.hidden = every.hidden = false;
  tell();
}
