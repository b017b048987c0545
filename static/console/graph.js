// Draws the graph of `console/graph.py` on a canvas: where each node stands was reckoned by the server. Everything that
// the picture says stands in the table below it, too.

const ZOOM = { least: 0.01, most: 2, step: 1.25 };
const SHOWN = { line: 0.2, name: 0.38, state: 0.6 }; // from which scale on borders, names and states are drawn
const NAME_CHARS = 30;
const MARKS = { refused: "✕", quarantined: "✕", withheld: "✕", missing: "?", stalled: "‖", waiting: "…", elsewhere: "↗", unused: "–" };
const DASHES = { missing: [6, 3], elsewhere: [6, 3], unused: [2, 3] };
const MAX_LISTED = 12;
const AT_ONCE = 100; // lines of one path
const KEPT = 120; // pixels of the picture that stay in sight
const [TYPE, NAME, STATE, LINE, EXISTS, MORE, X, Y] = [0, 1, 2, 3, 4, 5, 6, 7];

const section = document.getElementById("graph");
const picture = document.getElementById("graph-picture");
const canvas = picture?.querySelector("canvas");
const said = document.getElementById("graph-said");
const panel = document.getElementById("graph-chosen");
const find = document.getElementById("graph-find");

// What drives a line's direction, or is not to be seen, is shown as an escape, as the server does.
const HARMFUL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
const visible = (text) => text.replace(HARMFUL, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
const short = (text) => (text.length > NAME_CHARS ? `${text.slice(0, NAME_CHARS - 1)}…` : text);

function start(data) {
  const { nodes, edges, types, states } = data;
  const [nodeWidth, nodeHeight] = data.node;
  const uses = nodes.map(() => []), usedBy = nodes.map(() => []);
  for (const [from, to] of edges) { uses[from].push(to); usedBy[to].push(from); }
  const along = nodes.map((_, index) => index).sort((a, b) => nodes[a][X] - nodes[b][X] || nodes[a][Y] - nodes[b][Y]);
  const placeAlong = new Map(along.map((node, place) => [node, place]));
  const names = nodes.map((node) => short(visible(node[NAME])));
  const byState = states.map(() => []);
  nodes.forEach((node, index) => byState[node[STATE]].push(index));
  const focus = new Set(data.focus.length < nodes.length ? data.focus : []), told = new Set(data.told);

  // Drawn is a scene, somewhat larger than what is to be seen: to move it costs nothing, however much is in it.
  const scene = document.createElement("canvas"), paint = scene.getContext("2d"), glass = canvas.getContext("2d");
  let view = { x: 0, y: 0, scale: 1 }, drawn = { ...view, edgeX: 0, edgeY: 0, all: false }, stale = true;
  let chosen = -1, found = new Set(), width = 1, height = 1, ratio = 1, colours = {}, waiting = false;

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    colours = { ink: of("ink"), quiet: of("quiet"), line: of("strong-line"), ground: of("ground"), focus: of("focus"), plain: [of("paper"), of("strong-line")] };
    for (const tone of ["good", "warn", "bad", "busy"]) colours[tone] = [of(`${tone}-bg`), of(tone)];
    colours.quiet_tone = [of("off-bg"), of("off")];
  }
  const tone = (state) => colours[states[state][1] === "quiet" ? "quiet_tone" : states[state][1]] ?? colours.plain;

  function ask({ moved = false } = {}) {
    stale ||= !moved;
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(draw);
  }

  function edgePath(from, to, curved) {
    const fromX = nodes[from][X] + nodeWidth, fromY = nodes[from][Y] + nodeHeight / 2;
    const toX = nodes[to][X], toY = nodes[to][Y] + nodeHeight / 2;
    paint.moveTo(fromX, fromY);
    if (!curved) { paint.lineTo(toX, toY); return; }
    const bend = Math.max(Math.abs(toX - fromX) / 2, 24);
    paint.bezierCurveTo(fromX + bend, fromY, toX - bend, toY, toX, toY);
  }

  function draw() {
    waiting = false;
    const beyond = Math.abs(view.x - drawn.x) > drawn.edgeX || Math.abs(view.y - drawn.y) > drawn.edgeY;
    if (stale || (beyond && !drawn.all)) drawScene();
    glass.clearRect(0, 0, canvas.width, canvas.height);
    glass.drawImage(scene, Math.round(ratio * (view.x - drawn.x - drawn.edgeX)), Math.round(ratio * (view.y - drawn.y - drawn.edgeY)));
    section.dataset.drawn = String(nodes.length);
  }

  function drawScene() {
    const { x, y, scale } = view, edgeX = Math.round(width / 4), edgeY = Math.round(height / 4);
    const left = (-x - edgeX) / scale, top = (-y - edgeY) / scale;
    const right = left + (width + 2 * edgeX) / scale, bottom = top + (height + 2 * edgeY) / scale;
    drawn = { ...view, edgeX, edgeY, all: left <= 0 && top <= 0 && right >= data.size[0] && bottom >= data.size[1] };
    stale = false;
    const [wide, high] = [Math.round((width + 2 * edgeX) * ratio), Math.round((height + 2 * edgeY) * ratio)];
    if (scene.width !== wide || scene.height !== high) [scene.width, scene.height] = [wide, high];
    paint.setTransform(1, 0, 0, 1, 0, 0);
    paint.clearRect(0, 0, wide, high);
    paint.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * (x + edgeX), ratio * (y + edgeY));

    const inSight = ([from, to]) => {
      const a = nodes[from], b = nodes[to];
      return Math.max(a[X] + nodeWidth, b[X]) >= left && Math.min(a[X], b[X]) <= right && Math.max(a[Y], b[Y]) + nodeHeight >= top && Math.min(a[Y], b[Y]) <= bottom;
    };
    paint.strokeStyle = colours.line;
    paint.lineWidth = Math.max(1, 0.6 / scale);
    paint.globalAlpha = scale < SHOWN.line ? 0.35 : 0.8;
    // A few at a time: a path of thousands of lines is drawn many times slower than as many short ones.
    let lines = 0;
    paint.beginPath();
    for (const edge of edges) {
      if (!inSight(edge)) continue;
      edgePath(edge[0], edge[1], scale >= SHOWN.line);
      if (++lines % AT_ONCE === 0) { paint.stroke(); paint.beginPath(); }
    }
    paint.stroke();
    paint.globalAlpha = 1;
    if (chosen >= 0) {
      paint.strokeStyle = colours.focus;
      paint.lineWidth = Math.max(2.5, 1.5 / scale);
      paint.beginPath();
      for (const to of uses[chosen]) edgePath(chosen, to, true);
      for (const from of usedBy[chosen]) edgePath(from, chosen, true);
      paint.stroke();
    }

    const seen = ([,,,,,, nodeX, nodeY]) => nodeX + nodeWidth >= left && nodeX <= right && nodeY + nodeHeight >= top && nodeY <= bottom;
    byState.forEach((members, state) => {
      const [fill, edge] = tone(state);
      const word = states[state][0];
      // From afar a node is a dot: then it has the strong colour of its state.
      paint.fillStyle = scale < SHOWN.line ? edge : fill;
      for (const index of members) if (seen(nodes[index])) paint.fillRect(nodes[index][X], nodes[index][Y], nodeWidth, nodeHeight);
      if (scale < SHOWN.line) return;
      paint.beginPath();
      for (const index of members) if (seen(nodes[index])) paint.rect(nodes[index][X], nodes[index][Y], nodeWidth, nodeHeight);
      paint.setLineDash(DASHES[word] ?? []);
      paint.strokeStyle = edge;
      paint.lineWidth = Math.max(1, 0.8 / scale);
      paint.stroke();
      paint.setLineDash([]);
    });
    ring(told, colours.bad[1]);
    ring(found, colours.warn[1]);
    ring(focus, colours.focus);
    if (chosen >= 0) ring([chosen], colours.ink);
    if (scale >= SHOWN.name) for (const node of nodes.keys()) if (seen(nodes[node])) label(node, scale >= SHOWN.state);
  }

  function ring(some, colour) {
    paint.strokeStyle = colour;
    paint.lineWidth = Math.max(3, 2.5 / view.scale);
    paint.beginPath();
    for (const index of some) paint.rect(nodes[index][X] - 2, nodes[index][Y] - 2, nodeWidth + 4, nodeHeight + 4);
    paint.stroke();
  }

  function label(index, withState) {
    const node = nodes[index], [, edge] = tone(node[STATE]), mark = MARKS[states[node[STATE]][0]];
    const start = node[X] + (mark ? 24 : 8);
    if (mark) {
      paint.font = "bold 15px system-ui, sans-serif";
      paint.fillStyle = edge;
      paint.fillText(mark, node[X] + 7, node[Y] + 22);
    }
    paint.font = "600 12.5px system-ui, sans-serif";
    paint.fillStyle = colours.ink;
    paint.fillText(names[index], start, node[Y] + (withState ? 14 : 21), nodeWidth - (start - node[X]) - 6);
    if (!withState) return;
    paint.font = "10.5px system-ui, sans-serif";
    paint.fillStyle = colours.quiet;
    const more = node[MORE] > 0 ? ` · +${node[MORE]}` : "";
    paint.fillText(`${types[node[TYPE]]} · ${node[LINE]}${more}`, start, node[Y] + 28, nodeWidth - (start - node[X]) - 6);
  }

  // Where one looks.
  const clamp = (scale) => Math.min(Math.max(scale, ZOOM.least), ZOOM.most);
  function fit() {
    const scale = clamp(Math.min(width / data.size[0], height / data.size[1], 1));
    view = { scale, x: (width - data.size[0] * scale) / 2, y: (height - data.size[1] * scale) / 2 };
    ask();
  }
  // Something stays in sight, however far one moves: else nobody would know where the rest is.
  const inside = (start, length, room) => Math.min(Math.max(start, Math.min(KEPT, room / 2) - length), room - Math.min(KEPT, room / 2));
  function look(x, y, scale) {
    const moved = scale === view.scale;
    view = { scale, x: inside(x, data.size[0] * scale, width), y: inside(y, data.size[1] * scale, height) };
    ask({ moved });
  }
  function zoom(factor, atX = width / 2, atY = height / 2) {
    const scale = clamp(view.scale * factor), change = scale / view.scale;
    look(atX - (atX - view.x) * change, atY - (atY - view.y) * change, scale);
  }
  const move = (byX, byY) => look(view.x + byX, view.y + byY, view.scale);
  function show(index, scale = Math.max(view.scale, 0.8)) {
    const middleX = nodes[index][X] + nodeWidth / 2, middleY = nodes[index][Y] + nodeHeight / 2;
    const free = width - (panel.hidden || width < 2 * panel.offsetWidth ? 0 : panel.offsetWidth); // what stands beside it covers nothing
    view = { scale, x: free / 2 - middleX * scale, y: height / 2 - middleY * scale };
    ask();
  }
  function nearest() {
    const x = (width / 2 - view.x) / view.scale, y = (height / 2 - view.y) / view.scale;
    const far = ([,,,,,, nodeX, nodeY]) => (nodeX + nodeWidth / 2 - x) ** 2 + (nodeY + nodeHeight / 2 - y) ** 2;
    return nodes.reduce((best, node, index) => (far(node) < far(nodes[best]) ? index : best), 0);
  }
  function at(clientX, clientY) {
    const box = canvas.getBoundingClientRect();
    const x = (clientX - box.left - view.x) / view.scale, y = (clientY - box.top - view.y) / view.scale;
    return nodes.findIndex((node) => x >= node[X] && x <= node[X] + nodeWidth && y >= node[Y] && y <= node[Y] + nodeHeight);
  }

  // What is chosen: in the picture, in words, and beside it with links.
  const of = (index) => new URLSearchParams({ type: types[nodes[index][TYPE]], name: nodes[index][NAME] });
  const called = (index) => `${types[nodes[index][TYPE]]} ${visible(nodes[index][NAME])}`;
  function choose(index, { moving = true } = {}) {
    chosen = index;
    panel.replaceChildren();
    panel.hidden = index < 0;
    if (index < 0) { said.textContent = ""; ask(); return; }
    const node = nodes[index];
    said.textContent = `${called(index)}: ${node[LINE]}; refers to ${uses[index].length}, referred to by ${usedBy[index].length}${node[MORE] > 0 ? `, ${node[MORE]} references lead out of the picture` : ""}.`;
    fill(index);
    if (moving) show(index); else ask();
  }
  function element(tag, text, more = {}) {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    return Object.assign(made, more);
  }
  function fill(index) {
    const node = nodes[index], close = element("button", "Close", { type: "button", className: "btn btn-sm" });
    close.addEventListener("click", () => { choose(-1); picture.focus(); });
    const links = element("p", "", { className: "btn-list" });
    if (node[EXISTS]) {
      links.append(element("a", "Open its page", { className: "btn btn-sm", href: `${section.dataset.resource}?${of(index)}` }));
      links.append(element("a", "Who asks for it", { className: "btn btn-sm", href: `${section.dataset.resource}?${of(index)}&tab=clients` }));
    }
    links.append(element("a", "Only what is around it", { className: "btn btn-sm", href: `${section.dataset.graph}?${of(index)}` }), close);
    const title = element("h2", visible(node[NAME]), { className: "foreign" });
    panel.append(title, element("p", `${types[node[TYPE]]} · ${node[LINE]}`, { className: "quiet" }));
    for (const [words, ends] of [["Refers to", uses[index]], ["Referred to by", usedBy[index]]]) if (ends.length) panel.append(element("h3", words), list(ends));
    panel.append(links);
  }
  function list(ends) {
    const made = element("ul", "", { className: "tree" });
    for (const end of ends.slice(0, MAX_LISTED)) {
      const item = element("li"), button = element("button", called(end), { type: "button", className: "graph-end foreign" });
      button.addEventListener("click", () => { choose(end); picture.focus(); });
      item.append(button, ` ${nodes[end][LINE]}`);
      made.append(item);
    }
    if (ends.length > MAX_LISTED) made.append(element("li", `and ${ends.length - MAX_LISTED} more`));
    return made;
  }

  function step(key) {
    if (chosen < 0) return data.focus.length ? data.focus[0] : nearest();
    if (key === "ArrowRight") return uses[chosen][0] ?? chosen;
    if (key === "ArrowLeft") return usedBy[chosen][0] ?? chosen;
    const place = placeAlong.get(chosen) + (key === "ArrowDown" ? 1 : -1);
    return along[Math.min(Math.max(place, 0), along.length - 1)];
  }
  const PAN = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] };
  picture.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in PAN) { if (event.shiftKey) move(...PAN[event.key]); else choose(step(event.key)); }
    else if (event.key === "+" || event.key === "=") zoom(ZOOM.step);
    else if (event.key === "-") zoom(1 / ZOOM.step);
    else if (event.key === "0") fit();
    else if (event.key === "Escape" && chosen >= 0) choose(-1);
    else if (event.key === "Enter" && chosen >= 0 && nodes[chosen][EXISTS]) location.assign(`${section.dataset.resource}?${of(chosen)}`);
    else return;
    event.preventDefault();
  });

  // Dragging with one pointer, zooming with two.
  const pointers = new Map();
  let dragged = false;
  const spread = () => { const [a, b] = [...pointers.values()]; return Math.hypot(a.x - b.x, a.y - b.y) || 1; };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    dragged = pointers.size > 1;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const wide = pointers.size === 2 ? spread() : 0;
    const byX = event.clientX - before.x, byY = event.clientY - before.y;
    if (!dragged && Math.hypot(byX, byY) < 4) return;
    dragged = true;
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (wide) { const box = canvas.getBoundingClientRect(); zoom(spread() / wide, event.clientX - box.left, event.clientY - box.top); }
    else move(byX, byY);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (pointers.delete(event.pointerId) && !dragged) { choose(at(event.clientX, event.clientY), { moving: false }); picture.focus(); }
  });
  canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  // The wheel moves the page, unless the picture is what somebody is at.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== picture) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(event.deltaY < 0 ? ZOOM.step : 1 / ZOOM.step, event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  for (const button of section.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => {
    if (button.dataset.zoom === "fit") fit();
    else zoom(button.dataset.zoom === "in" ? ZOOM.step : 1 / ZOOM.step);
  });

  const lowered = nodes.map((node) => node[NAME].toLowerCase());
  find.addEventListener("input", () => {
    const text = find.value.trim().toLowerCase();
    found = new Set(text ? [...nodes.keys()].filter((index) => lowered[index].includes(text)) : []);
    said.textContent = text ? `${found.size} of ${nodes.length} fit. Enter goes to the next.` : "";
    ask();
  });
  find.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !found.size) return;
    event.preventDefault();
    const some = [...found];
    choose(some[(some.indexOf(chosen) + 1) % some.length]);
  });

  const counts = document.getElementById("graph-counts");
  if (counts) counts.hidden = true; // the legend says the same
  for (const [place, [, stateTone, label]] of states.entries()) {
    const mark = MARKS[states[place][0]];
    const badge = element("span", `${mark ? `${mark} ` : ""}${label} ${byState[place].length.toLocaleString("en")}`, { className: `state state-${stateTone}` });
    document.getElementById("graph-legend").append(badge, " ");
  }
  new MutationObserver(() => { readColours(); ask(); }).observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
  let placed = false;
  new ResizeObserver(() => {
    const box = picture.getBoundingClientRect();
    [width, height, ratio] = [box.width, box.height, window.devicePixelRatio || 1];
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (!placed) fit();
    // One resource among few others: near enough to be read.
    if (!placed && data.focus.length === 1 && view.scale < SHOWN.state) show(data.focus[0]);
    placed = true;
    ask();
  }).observe(picture);
  readColours();
  const many = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
  said.textContent = [`${many(nodes.length, "resource")} and ${many(edges.length, "reference")}.`, data.left_out].filter(Boolean).join(" ");
}

if (section) {
  section.hidden = false;
  try {
    const answer = await fetch(section.dataset.source, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(answer.statusText);
    start(await answer.json());
  } catch {
    said.textContent = "The picture cannot be drawn now; the table has the same.";
    picture.parentElement.hidden = true;
  }
}
