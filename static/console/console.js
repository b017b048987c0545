// What pages gain from scripts. Every page reads, and every form is sent, without them.
"use strict";

const NOW_S = 5;
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];

// The words of controlplane/console/times.py.
function relative(then, now) {
  const seconds = (now - then) / 1000;
  const distance = Math.abs(seconds);
  if (distance < NOW_S) return "just now";
  const [unit, length] = UNITS.find(([, size]) => distance >= size) ?? ["second", 1];
  const count = Math.floor(distance / length);
  const words = `${count} ${unit}${count === 1 ? "" : "s"}`;
  return seconds >= 0 ? `${words} ago` : `in ${words}`;
}

function tick() {
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const words = relative(new Date(time.dateTime), Date.now());
    if (time.textContent !== words) time.textContent = words;
  }
}

// In which zone pages show times to whoever chose none (controlplane/console/pages.py, `zone_of`).
function tellZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || document.cookie.split("; ").includes(`browser_zone=${zone}`)) return;
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `browser_zone=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;
}

function prepare(root) {
  for (const button of root.querySelectorAll("[data-copy], [data-open], [data-pause]")) button.hidden = false;
}

async function copied(button) {
  const label = button.querySelector("span");
  const before = label.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    label.textContent = "Copied";
  } catch {
    label.textContent = "Not possible here";
  }
  setTimeout(() => { label.textContent = before; }, 1500);
}

// What refreshes by itself stands still while somebody has paused it, is in it with the keyboard, or looks elsewhere.
let paused = false;

function pause(button) {
  paused = !paused;
  button.setAttribute("aria-pressed", String(paused));
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.target.closest("[data-live]");
  if (part && (paused || document.hidden || part.contains(document.activeElement))) event.preventDefault();
});

// The same again is not put in: a live region would be read out once more, with nothing new in it.
const shown = new Map();

document.addEventListener("htmx:beforeSwap", (event) => {
  if (!event.target.closest("[data-live]")) return;
  const { pathInfo: { requestPath }, serverResponse } = event.detail;
  if (shown.get(requestPath) === serverResponse) event.detail.shouldSwap = false;
  shown.set(requestPath, serverResponse);
});

// What a form would do is not known any more once its question has no answer.
for (const failed of ["htmx:sendError", "htmx:responseError"]) {
  document.addEventListener(failed, ({ target }) => {
    if (target.matches("[data-foreseen]")) target.textContent = "What clients would lose is not known at present: there was no answer.";
  });
}

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (menu !== except) menu.open = false;
}

function isTyping(target) {
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.shadowRoot !== null;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.copy !== undefined) copied(button);
  if (button?.dataset.pause !== undefined) pause(button);
  if (button?.dataset.open !== undefined) document.getElementById(button.dataset.open).showModal();
  closeMenus(event.target.closest("details.menu"));
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const menu = document.querySelector("details.menu[open]");
    closeMenus(null);
    menu?.querySelector("summary").focus();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.key === "/") {
    const search = document.getElementById("search");
    if (search) { event.preventDefault(); search.focus(); search.select(); }
  } else if (event.key === "?") {
    const keys = document.getElementById("keys");
    if (keys && !keys.open) { event.preventDefault(); keys.showModal(); }
  }
});

// A select or check box that filters does so at once; the button is for who has no scripts.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-auto]");
  if (form && event.target.matches("select, input[type=checkbox]")) form.requestSubmit();
});

document.addEventListener("htmx:afterSwap", (event) => { prepare(event.target); tick(); });
tellZone();
prepare(document);
tick();
setInterval(tick, 10000);
document.querySelector("[data-focus]")?.focus();
