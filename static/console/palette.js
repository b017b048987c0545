// The list below a search box, and the command palette. The server says what stands in the list; each option is a link,
// and nothing is changed by following one. htmx asks while somebody types, and drops a question that a newer one follows.
"use strict";

(() => {
  const palette = document.getElementById("palette");
  if (!palette) return; // nobody is signed in

  function boxOf(input) {
    const options = document.getElementById(input.dataset.suggestions);
    return { input, options, say: options.parentElement.querySelector("[role=status]"), chosen: null };
  }

  const boxes = [...document.querySelectorAll("input[data-suggestions]")].map(boxOf);

  const all = (box) => [...box.options.querySelectorAll("[role=option]")];
  const isShown = (box) => !box.options.hidden && all(box).length > 0;
  // An answer to what is in the box now, and not to what was.
  const isFresh = (box) => box.options.querySelector("[data-for]")?.dataset.for === box.input.value;

  function choose(box, option) {
    box.chosen?.setAttribute("aria-selected", "false");
    box.chosen = option;
    if (!option) return box.input.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    box.input.setAttribute("aria-activedescendant", option.id);
  }

  function show(box) {
    box.options.hidden = false;
    box.input.setAttribute("aria-expanded", "true");
    box.input.setAttribute("aria-controls", `${box.input.id}-list`);
  }

  function hide(box) {
    choose(box, null);
    box.options.hidden = true;
    box.input.setAttribute("aria-expanded", "false");
    box.input.removeAttribute("aria-controls");
  }

  function say(box, words) {
    if (box.say.textContent !== words) box.say.textContent = words;
  }

  function answered(box) {
    const list = box.options.querySelector("[role=listbox]");
    if (!list) return;
    box.chosen = null;
    list.id = `${box.input.id}-list`;
    const options = all(box);
    options.forEach((option, place) => { option.id = `${list.id}-${place}`; });
    const note = box.options.querySelector(".options-note")?.textContent ?? "";
    say(box, `${note} ${options.length} suggestion${options.length === 1 ? "" : "s"}.`.trim());
    if (document.activeElement !== box.input) return;
    show(box);
    choose(box, box.input.dataset.first !== undefined ? options[0] : null);
  }

  function failed(box) {
    const note = document.createElement("p");
    note.className = "options-note";
    note.textContent = "There are no suggestions at present. Enter searches nevertheless.";
    box.options.replaceChildren(note);
    box.chosen = null;
    say(box, note.textContent);
  }

  function fill(box, words) {
    box.input.value = words;
    box.input.focus();
    htmx.trigger(box.input, "ask");
  }

  function move(box, step) {
    const options = all(box);
    const place = options.indexOf(box.chosen);
    const from = place < 0 && step < 0 ? options.length : place;
    choose(box, options[(from + step + options.length) % options.length]);
  }

  function pressed(box, event) {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (isShown(box)) move(box, event.key === "ArrowDown" ? 1 : -1);
      else if (box.input.value) htmx.trigger(box.input, "ask");
    } else if (event.key === "Enter" && isShown(box) && box.chosen && isFresh(box)) {
      event.preventDefault();
      box.chosen.click();
    } else if (event.key === "Escape" && isShown(box) && !palette.open) {
      event.preventDefault();
      hide(box);
    }
  }

  for (const box of boxes) {
    box.input.setAttribute("role", "combobox");
    box.input.setAttribute("aria-autocomplete", "list");
    hide(box);
    box.input.addEventListener("keydown", (event) => pressed(box, event));
    box.input.addEventListener("input", () => { if (!box.input.value && box.input.dataset.first === undefined) hide(box); });
    box.options.addEventListener("htmx:afterSwap", () => answered(box));
    for (const each of ["htmx:sendError", "htmx:responseError"]) box.input.addEventListener(each, () => failed(box));
    // The box keeps the focus, so that typing goes on.
    box.options.addEventListener("mousedown", (event) => event.preventDefault());
    box.options.addEventListener("click", (event) => {
      const option = event.target.closest("[data-fill]");
      if (!option) return;
      event.preventDefault();
      fill(box, option.dataset.fill);
    });
  }

  const typed = boxes.find((box) => !palette.contains(box.input));
  typed.input.addEventListener("blur", () => hide(typed));

  const inPalette = boxes.find((box) => palette.contains(box.input));

  function toggled() {
    if (palette.open) return palette.close();
    for (const open of document.querySelectorAll("dialog[open]")) open.close();
    palette.showModal();
  }

  // However it was opened: by its button, or by its keys.
  new MutationObserver(() => { if (palette.open) fill(inPalette, ""); else hide(inPalette); })
    .observe(palette, { attributeFilter: ["open"] });
  palette.querySelector("[data-close]").addEventListener("click", () => palette.close());
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });

  document.addEventListener("keydown", (event) => {
    const isAsked = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    if (!isAsked || event.defaultPrevented) return;
    event.preventDefault();
    toggled();
  });
})();
