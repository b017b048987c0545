// Pictures over time, drawn by uPlot from the tables that pages have anyway. A cursor moves with the pointer or, once the
// picture has the focus, with the arrow keys, and says what stands where it is.
"use strict";

const CHART_PX = 190;
const PAGE_STEPS = 10;
const drawn = new Map();

function numbersOf(figure) {
  const rows = [...figure.querySelectorAll("tbody tr")].reverse();
  const columns = figure.querySelectorAll("thead th.number").length;
  const data = [rows.map((row) => Number(row.querySelector("th").dataset.x))];
  for (let column = 0; column < columns; column += 1) {
    data.push(rows.map((row) => {
      const text = row.querySelectorAll("td")[column].textContent;
      return text === "?" ? null : Number(text);
    }));
  }
  return { data, labels: rows.map((row) => row.querySelector("th").textContent) };
}

// Colours and dashes are those of the legend, so that both are said once, in the style sheet.
function strokes(figure) {
  return [...figure.querySelectorAll(".chart-key line")].map((line) => {
    const style = getComputedStyle(line);
    const dash = style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(",").map(parseFloat);
    return { stroke: style.stroke, dash, width: parseFloat(style.strokeWidth) };
  });
}

function namesOf(figure) {
  return [...figure.querySelectorAll("thead th.number")].map((head) => head.textContent);
}

function twoDigits(number) { return String(number).padStart(2, "0"); }

function clockText(seconds, days) {
  const at = new Date(seconds * 1000);
  const time = `${twoDigits(at.getUTCHours())}:${twoDigits(at.getUTCMinutes())}`;
  return days ? `${at.getUTCDate()}. ${time}` : time;
}

function said(figure, chart, place) {
  const { labels, data } = chart.numbers;
  const values = namesOf(figure).map((name, column) => {
    const value = data[column + 1][place];
    return `${name} ${value === null ? "not known" : value}`;
  });
  return `${labels[place]}: ${values.join(", ")}`;
}

function optionsOf(figure, numbers, width) {
  const ink = getComputedStyle(figure).getPropertyValue("--quiet").trim();
  const line = getComputedStyle(figure).getPropertyValue("--line").trim();
  const xs = numbers.data[0];
  const days = xs[xs.length - 1] - xs[0] > 86400;
  const clock = figure.dataset.clock !== undefined;
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  return {
    width, height: CHART_PX,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { size: 7 } },
    scales: { x: { time: clock }, y: { range: (_plot, _low, high) => [0, Math.max(high * 1.05, 1)] } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    axes: [
      { ...axis, space: 60, size: 30, values: (_plot, ticks) => ticks.map((each) => clock ? clockText(each, days) : `${each} s`) },
      { ...axis, size: 46, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000] },
    ],
    series: [{}, ...strokes(figure).map((each) => ({ ...each, spanGaps: false, points: { show: alone, size: 5 }, paths: stepped }))],
    hooks: { setCursor: [(plot) => tell(figure, plot.cursor.idx)] },
  };
}

const stepped = (plot, column, first, last) => uPlot.paths.stepped({ align: 1 })(plot, column, first, last);

// A line shows nothing of a number between two gaps; a point does.
function alone(plot, column) {
  const values = plot.data[column];
  return values.some((value, place) => value !== null && (values[place - 1] ?? null) === null && (values[place + 1] ?? null) === null);
}

function tell(figure, place) {
  const chart = drawn.get(figure);
  if (chart === undefined) return;
  chart.place = place ?? null;
  const text = chart.place === null ? "" : said(figure, chart, chart.place);
  const here = figure.querySelector("[data-here]");
  if (here.textContent !== text) here.textContent = text;
}

function moveTo(figure, place) {
  const { plot, numbers } = drawn.get(figure);
  const xs = numbers.data[0];
  const to = Math.min(Math.max(place, 0), xs.length - 1);
  plot.setCursor({ left: plot.valToPos(xs[to], "x"), top: 0 });
  tell(figure, to);
}

const MOVES = {
  ArrowLeft: (place) => place - 1, ArrowRight: (place) => place + 1,
  PageUp: (place) => place - PAGE_STEPS, PageDown: (place) => place + PAGE_STEPS,
  Home: () => 0, End: (_place, count) => count - 1,
};

function pressed(figure, event) {
  const move = MOVES[event.key];
  if (move === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const chart = drawn.get(figure);
  const count = chart.numbers.data[0].length;
  moveTo(figure, chart.place === null ? count - 1 : move(chart.place, count));
}

function draw(figure) {
  const box = figure.querySelector("[data-plot]");
  const before = drawn.get(figure);
  before?.plot.destroy();
  const numbers = before?.numbers ?? numbersOf(figure);
  const plot = new uPlot(optionsOf(figure, numbers, box.clientWidth), numbers.data, box);
  drawn.set(figure, { plot, numbers, place: null });
  if (before !== undefined) return;
  const title = figure.querySelector("h2");
  box.tabIndex = 0;
  box.setAttribute("role", "application");
  box.setAttribute("aria-roledescription", "picture over time");
  box.setAttribute("aria-label", `${title.textContent}; arrow keys move through time`);
  box.setAttribute("aria-describedby", `${title.id}-says`);
  box.addEventListener("keydown", (event) => pressed(figure, event));
  new ResizeObserver(() => {
    const chart = drawn.get(figure);
    if (chart && box.clientWidth > 0 && chart.plot.width !== box.clientWidth) chart.plot.setSize({ width: box.clientWidth, height: CHART_PX });
  }).observe(box);
}

function drawAll() {
  for (const [figure, { plot }] of drawn) if (!figure.isConnected) { plot.destroy(); drawn.delete(figure); }
  for (const figure of document.querySelectorAll("figure[data-chart]")) if (!drawn.has(figure)) draw(figure);
}

document.addEventListener("htmx:afterSwap", drawAll);
new MutationObserver(() => { for (const figure of [...drawn.keys()]) draw(figure); })
  .observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
drawAll();
