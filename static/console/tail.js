// The live tail: reads server-sent events and shows the newest first. Whatever clients said is put in as text.
const SHOWN = 300; // events in the page, and as many that wait while it is paused
const SHOW_EVERY_MS = 250;
const SAY_EVERY_MS = 2000; // a screen reader is not told of each event
const FIRST_PAUSE_S = 1;
const LONGEST_PAUSE_S = 15;
const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false };

const part = document.getElementById("tail");
const list = document.getElementById("tail-list");
const state = document.getElementById("tail-state");
const nothing = document.getElementById("tail-nothing");
const pauseButton = document.getElementById("tail-pause");

let paused = false;
let waiting = []; // in order, the oldest first
let lost = 0; // of those that wait
let link = "Connecting…";
let lastId = "";

const wait = (seconds) => new Promise((done) => { setTimeout(done, seconds * 1000); });

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function anchor(href, text) {
  const made = element("a", "foreign", text);
  made.href = href;
  return made;
}

function about(event) {
  const names = element("span", "tail-names");
  if (event.wildcard) names.append(element("code", "", `every ${event.type}`));
  for (const name of event.names) {
    names.append(anchor(`${part.dataset.resource}?type=${encodeURIComponent(event.type)}&name=${encodeURIComponent(name)}`, name));
  }
  if (event.name_count > event.names.length) names.append(element("span", "quiet", `and ${event.name_count - event.names.length} more`));
  if (event.removed.length) names.append(element("span", "quiet foreign", `removed: ${event.removed.join(", ")}`));
  return names;
}

function line(event) {
  const made = element("li", `tail-${event.kind}`);
  const time = element("time", "mono", new Date(event.at).toLocaleTimeString([], CLOCK));
  time.dateTime = event.at;
  time.title = event.at;
  made.append(time, document.getElementById(`tail-${event.kind}`).content.cloneNode(true));
  made.append(anchor(part.dataset.client.replace("CLIENT", encodeURIComponent(event.client)), event.node_id || event.client));
  if (event.type) made.append(element("span", "quiet", event.type), about(event));
  if (event.version) made.append(element("span", "quiet", `version ${event.version}`));
  if (event.kind === "error") for (const each of event.errors) made.append(element("div", "tail-text foreign", `${each.status} ${each.name}: ${each.text}`));
  if (event.text) made.append(element("div", "tail-text foreign", event.text));
  return made;
}

function gap(text) {
  return element("li", "tail-gap quiet", text);
}

function keep(what) {
  waiting.push(what);
  if (waiting.length > SHOWN) { waiting.shift(); lost += 1; }
}

function show() {
  if (paused || (!waiting.length && !lost)) return;
  if (lost) list.prepend(gap(`${lost} more were not shown: too many at once for this page.`));
  const lines = waiting.map((each) => (typeof each === "string" ? gap(each) : line(each)));
  list.prepend(...lines.reverse());
  waiting = [];
  lost = 0;
  while (list.childElementCount > SHOWN) list.lastElementChild.remove();
  nothing.hidden = true;
}

function say() {
  const count = waiting.length + lost;
  const words = paused ? `Paused: ${count} waiting. ${link}` : link;
  if (state.textContent !== words) state.textContent = words;
}

function connected(text) {
  link = text;
  say();
}

function take(name, id, text) {
  if (id) lastId = id;
  if (!text) return true;
  const said = JSON.parse(text);
  if (name === "state") {
    if (said.unseen_s) keep(`For ${said.unseen_s} s nothing was seen: the connection was made anew.`);
    const some = said.processes === 1 ? "1 ADS process tells" : `${said.processes} ADS processes tell`;
    connected(said.processes ? `Live: ${some}.` : "No ADS process hears: none runs, or none reaches the broker.");
  } else if (name === "left_out") {
    keep(`${said.count} events were left out: too many at once.`);
  } else if (name === "end") {
    connected(said.again ? `${said.reason} Connecting again…` : said.reason);
    return said.again;
  } else {
    keep(said);
  }
  return true;
}

// One answer, until it ends; says whether to ask again.
async function follow(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return true;
    const blocks = (text + value).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").filter((each) => !each.startsWith(":"))
        .map((each) => [each.slice(0, each.indexOf(": ")), each.slice(each.indexOf(": ") + 2)]));
      if (!take(fields.event, fields.id, fields.data)) return false;
    }
  }
}

async function watch() {
  let pause = FIRST_PAUSE_S;
  for (;;) {
    try {
      const headers = { Accept: "text/event-stream", ...(lastId && { "Last-Event-ID": lastId }) };
      const answer = await fetch(part.dataset.source, { headers });
      if (answer.ok) {
        pause = FIRST_PAUSE_S;
        if (!await follow(answer)) return;
      } else {
        const problem = await answer.json();
        const again = answer.status === 429 || answer.status >= 500;
        connected(again ? `${problem.detail} Trying again.` : problem.detail);
        if (!again) return;
      }
    } catch {
      connected("The server does not answer. Trying again.");
    }
    await wait(pause);
    pause = Math.min(2 * pause, LONGEST_PAUSE_S);
  }
}

pauseButton.addEventListener("click", () => {
  paused = !paused;
  pauseButton.setAttribute("aria-pressed", String(paused));
  pauseButton.querySelector("span").textContent = paused ? "Go on" : "Pause";
  show();
  say();
});

document.getElementById("tail-clear").addEventListener("click", () => {
  list.replaceChildren();
  nothing.hidden = false;
});

part.hidden = false;
setInterval(show, SHOW_EVERY_MS);
setInterval(say, SAY_EVERY_MS);
watch();
