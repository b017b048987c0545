// The editor: CodeMirror over the plain text field, and the server's verdict while somebody types. The text field stays
// what is sent; without this script the form works as it is.
import {
  autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap, Compartment, defaultKeymap, drawSelection,
  EditorState, EditorView, foldGutter, foldKeymap, HighlightStyle, highlightActiveLine, highlightActiveLineGutter, history,
  historyKeymap, indentOnInput, json, keymap, lineNumbers, lintGutter, lintKeymap, searchKeymap, setDiagnostics,
  syntaxHighlighting, tags, yaml,
} from "../vendor/codemirror.min.js";

const QUIET_MS = 400;
const MOST = 200; // suggestions in one answer
const form = document.getElementById("editor");
const field = document.getElementById("text");
const verdict = document.getElementById("verdict");

// Custom properties reach into the shadow root, so both themes colour it.
const theme = EditorView.theme({
  "&": { backgroundColor: "var(--paper)", color: "var(--ink)", border: "1px solid var(--strong-line)", borderRadius: "5px", fontSize: ".875rem" },
  "&.cm-focused": { outline: "3px solid var(--focus)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "ui-monospace, 'SF Mono', Menlo, Consolas, monospace", maxHeight: "calc(100vh - 14rem)", overflow: "auto" },
  ".cm-content, .cm-gutter": { minHeight: "26rem" },
  ".cm-gutters": { backgroundColor: "var(--band)", color: "var(--quiet)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--busy-bg) 55%, transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--focus) 28%, transparent) !important" },
  ".cm-tooltip": { backgroundColor: "var(--paper)", color: "var(--ink)", border: "1px solid var(--line)", maxWidth: "40rem" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "3px 8px", fontFamily: "ui-monospace, monospace" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--tblr-primary)", color: "#fff" },
  ".cm-completionDetail": { color: "var(--quiet)", fontStyle: "normal", marginLeft: "1rem" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-panels": { backgroundColor: "var(--band)", color: "var(--ink)" },
  ".cm-textfield, .cm-button": { backgroundColor: "var(--paper)", backgroundImage: "none", color: "var(--ink)", border: "1px solid var(--strong-line)" },
});
const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--busy)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--quiet)", fontStyle: "italic" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

const language = new Compartment();
const isJson = (text) => /^\s*[{[]/.test(text);
let spokenJson = isJson(field.value);
let timer = 0;
let asked = 0;

function languageOf(jsonText) { return jsonText ? json() : yaml(); }

// What may be written where the cursor is; the server knows every field of every type. None is chosen until an arrow key
// says so: Enter stays the end of a line.
async function complete(context) {
  const text = context.state.doc.sliceString(0, context.pos);
  const after = context.state.doc.sliceString(context.pos);
  if (!context.explicit && !/[\w@"'.\/]$|: $/.test(text)) return null;
  const body = new URLSearchParams({ action: "complete", before: text, after, csrfmiddlewaretoken: form.elements.csrfmiddlewaretoken.value });
  let found;
  try {
    const answer = await fetch(location.href, { method: "POST", body, headers: { "X-Parley-Part": "1" } });
    found = await answer.json();
  } catch {
    return null;
  }
  if (context.aborted || !found.options.length) return null;
  return {
    from: context.pos - found.word.length,
    // A list that was cut is asked for again with every letter.
    validFor: found.options.length < MOST ? /^[^\s"'#{}[\],]*$/ : undefined,
    options: found.options.map(({ label, kind, detail, plain }) => ({
      label, detail, type: { field: "property", value: "enum", type: "type", name: "variable" }[kind],
      apply: kind === "field" ? written(label) : kind === "name" ? named(label, plain) : label,
    })),
  };
}

// A key as it is written: in JSON its quotes are there, in YAML it ends with a colon and "@type" needs quotes.
function written(label) {
  return (editor, completion, from, to) => {
    const quoted = /["']/.test(editor.state.doc.sliceString(from - 1, from));
    const quote = label.startsWith("@") && !quoted && !spokenJson ? '"' : "";
    const insert = spokenJson || quoted ? label : `${quote}${label}${quote}: `;
    editor.dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length }, userEvent: "input.complete" });
  };
}

// A name as it is written: YAML wants quotes around some.
function named(label, plain) {
  return (editor, completion, from, to) => {
    const quoted = /["']/.test(editor.state.doc.sliceString(from - 1, from));
    const insert = spokenJson ? JSON.stringify(label).slice(1, -1) : quoted ? label : plain;
    editor.dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length }, userEvent: "input.complete" });
  };
}

const host = document.createElement("div");
host.className = "editor-host";
field.before(host);
field.hidden = true;
const shadow = host.attachShadow({ mode: "open" });
const view = new EditorView({
  parent: shadow,
  root: shadow,
  state: EditorState.create({
    doc: field.value,
    extensions: [
      lineNumbers(), foldGutter(), lintGutter(), history(), drawSelection(), indentOnInput(), bracketMatching(),
      closeBrackets(), autocompletion({ override: [complete], icons: false, selectOnOpen: false, interactionDelay: 0 }), highlightActiveLine(), highlightActiveLineGutter(), syntaxHighlighting(colours), theme,
      language.of(languageOf(spokenJson)),
      EditorView.contentAttributes.of({ "aria-label": "Manifest, YAML or JSON", spellcheck: "false", tabindex: "0" }),
      keymap.of([
        { key: "Mod-Enter", run: () => { send("save"); return true; } },
        ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...lintKeymap,
      ]),
      EditorView.updateListener.of((update) => { if (update.docChanged) changed(); }),
    ],
  }),
});

function changed() {
  field.value = view.state.doc.toString();
  const nowJson = isJson(field.value);
  if (nowJson !== spokenJson) {
    spokenJson = nowJson;
    view.dispatch({ effects: language.reconfigure(languageOf(nowJson)) });
  }
  clearTimeout(timer);
  timer = setTimeout(() => send("check"), QUIET_MS);
}

// The findings on the page become markers on their lines.
function mark() {
  const doc = view.state.doc;
  const found = [...verdict.querySelectorAll(".finding[data-line]")].map((item) => {
    const line = doc.line(Math.min(Math.max(Number(item.dataset.line), 1), doc.lines));
    const from = Math.min(line.from + Math.max(Number(item.dataset.column) - 1, 0), line.to);
    const severity = item.classList.contains("finding-error") ? "error" : item.classList.contains("finding-warning") ? "warning" : "info";
    const words = [".code", "p", ".hint"].map((part) => item.querySelector(part)?.textContent ?? "");
    return { from, to: line.to, severity, source: words[0], message: [...new Set(words.slice(1))].filter(Boolean).join(" ") };
  });
  found.sort((one, other) => one.from - other.from);
  view.dispatch(setDiagnostics(view.state, found));
}

function goTo(number) {
  const line = view.state.doc.line(Math.min(Math.max(number, 1), view.state.doc.lines));
  view.dispatch({ selection: { anchor: line.from }, effects: EditorView.scrollIntoView(line.from, { y: "center" }) });
  view.focus();
}

async function send(action) {
  clearTimeout(timer);
  const mine = ++asked;
  const body = new URLSearchParams(new FormData(form));
  body.set("action", action);
  verdict.classList.add("waiting");
  try {
    const answer = await fetch(location.href, { method: "POST", body, headers: { "X-Parley-Part": "1" }, redirect: "manual" });
    if (answer.status === 201) { location.assign(answer.headers.get("Location")); return; }
    if (mine !== asked) return;
    if (answer.type === "opaqueredirect" || !answer.headers.get("Content-Type")?.startsWith("text/html")) { form.submit(); return; }
    // From this server, made by the template of the same page; nothing in it is somebody's markup.
    verdict.innerHTML = await answer.text();
    mark();
    if (action === "check" && document.getElementById("form").open) fill();
  } catch {
    verdict.textContent = "The server does not answer. What you wrote is still here; try again in a moment.";
  } finally {
    if (mine === asked) verdict.classList.remove("waiting");
  }
}

// The form of the common fields. The server writes what was filled in into the text, which the editor takes over as one
// step that can be undone, and answers the form for the new text.
const fields = document.getElementById("fields");
let filling = Promise.resolve();
let shownFields = "";

function fill(row = "") {
  filling = filling.then(() => fillNow(row));
}

async function fillNow(row) {
  const sent = new FormData(form);
  const body = new URLSearchParams(sent);
  body.set("action", "fields");
  if (row) body.set("row", row);
  let found;
  try {
    const answer = await fetch(location.href, { method: "POST", body, headers: { "X-Parley-Part": "1" } });
    found = await answer.json();
  } catch {
    return; // what was filled in stays in its field, and goes along with the next question
  }
  if (field.value.replaceAll("\r\n", "\n") !== sent.get("text").replaceAll("\r\n", "\n")) return; // somebody went on writing
  if (found.text !== undefined) takeOver(found.text);
  showFields(found.fields, sent);
}

function takeOver(text) {
  const before = view.state.doc.toString();
  if (text === before) return;
  const most = Math.min(before.length, text.length);
  let from = 0;
  while (from < most && before[from] === text[from]) from += 1;
  let same = 0;
  while (same < most - from && before[before.length - 1 - same] === text[text.length - 1 - same]) same += 1;
  const changes = { from, to: before.length - same, insert: text.slice(from, text.length - same) };
  view.dispatch({ changes, effects: EditorView.scrollIntoView(from, { y: "center" }) });
}

const inputs = () => [...fields.querySelectorAll("[name^='field:']")];
const inputOf = (name) => fields.querySelector(`[name="${CSS.escape(name)}"]`);

// Whoever goes on filling in keeps the focus, and what was written since; that goes along with the next question.
function showFields(html, sent) {
  if (html === shownFields) return;
  shownFields = html;
  const since = inputs().filter((each) => each.value !== (sent.get(each.name) ?? each.value));
  const active = fields.contains(document.activeElement) ? document.activeElement : null;
  const place = [...fields.querySelectorAll("button")].indexOf(active);
  fields.innerHTML = html; // from this server, made by the template of the same page
  for (const { name, value } of since) if (inputOf(name)) inputOf(name).value = value;
  if (!active) return;
  const buttons = fields.querySelectorAll("button");
  (place < 0 ? inputOf(active.name) : buttons[Math.min(place, buttons.length - 1)])?.focus();
}

// Also what was carried over, of which the browser reports no change.
function fillWhatWasTyped() {
  if (inputs().some((each) => each.value !== inputOf(each.name.replace("field:", "was:"))?.value)) fill();
}

verdict.addEventListener("change", (event) => { if (event.target.name === "replace") send("check"); });
fields.addEventListener("change", (event) => { if (event.target.matches("select")) fill(); });
fields.addEventListener("focusout", fillWhatWasTyped);
document.getElementById("form").addEventListener("toggle", (event) => { if (event.target.open) fill(); });

// The names that can be referred to; one that is pressed is written where the cursor is.
async function listNames() {
  const body = new URLSearchParams(new FormData(form));
  body.set("action", "names");
  const found = document.getElementById("names-found");
  try {
    const answer = await fetch(location.href, { method: "POST", body, headers: { "X-Parley-Part": "1" } });
    // From this server, made by the template of the same page; nothing in it is somebody's markup.
    found.innerHTML = await answer.text();
    pressable(found);
  } catch {
    found.textContent = "The server does not answer. What you wrote is still here; try again in a moment.";
  }
}

function pressable(found) {
  for (const name of found.querySelectorAll("[data-name]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "name-to-write";
    name.replaceWith(button);
    button.append(name);
    button.title = "Write it where the cursor is";
    button.addEventListener("click", () => {
      view.dispatch(view.state.replaceSelection(name.dataset.name), { userEvent: "input" });
      view.focus();
    });
  }
}
pressable(document.getElementById("names-found"));

form.addEventListener("submit", (event) => {
  if (event.submitter?.hasAttribute("formaction")) return; // to another page, with the text
  event.preventDefault();
  if (event.submitter?.value === "names") return listNames();
  if (event.submitter?.name === "row") return fill(event.submitter.value);
  if (event.submitter?.value === "fields") return fill();
  filling.then(() => send(event.submitter?.value ?? "check")); // with what was just filled in
});
document.getElementById("named").addEventListener("keydown", (event) => {
  if (event.key === "Enter") { event.preventDefault(); listNames(); }
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-goto]");
  if (link) { event.preventDefault(); goTo(Number(link.dataset.goto)); }
});
document.querySelector("label[for=text]").addEventListener("click", () => view.focus());
mark();
if (!verdict.querySelector(".verdict") && !document.querySelector(".problem")) send("check");

// A link may lead to a line: an incident's, to what the refused revision changed.
const wantedLine = /^#line-(\d{1,7})$/.exec(location.hash);
if (wantedLine) goTo(Number(wantedLine[1]));
