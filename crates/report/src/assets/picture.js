// The median step as lanes, the durations of all steps, and what made the slow ones slow.

import { percent, time, whole } from "./data.js";
import { element, table } from "./tables.js";

const PICTURE_WIDTH = 10000;

// The page has one empty picture, which knows the namespace of all: no address stands in a page that needs no network.
function svgNode(tag, attributes) {
  const node = document.createElementNS(document.getElementById("shape").namespaceURI, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

// The word for each class with its time: also what a reader without eyes for colours goes by.
function laneCaption(lane, dur) {
  return lane.classes.map((one) => {
    const said = element("span", one.top ? { title: `mostly in ${one.top}` } : {}, element("i", { class: `k-${one.code}` }), `${one.word} `,
      element("b", {}, time(one.ns)), ` ${percent(one.ns, dur)}`);
    return said;
  });
}

function laneBar(picture, lane, goTo, hover) {
  const said = lane.classes.map((one) => `${one.word} ${time(one.ns)}`).join(", ");
  const svg = svgNode("svg", { viewBox: `0 0 ${PICTURE_WIDTH} 100`, preserveAspectRatio: "none", role: "img", "aria-label": `${lane.title}: ${said}` });
  for (const [from, dur, place, full, below] of lane.runs) {
    const one = lane.classes[place];
    const x = (PICTURE_WIDTH * from) / picture.dur;
    const box = svgNode("rect", { x, y: 100 - full - below, width: Math.max((PICTURE_WIDTH * dur) / picture.dur, 8), height: full, class: `k-${one.code}` });
    const lines = [one.word, `${time(dur)} at ${time(from)} of the step${full < 100 ? `, ${full} % of it` : ""}`, ...(one.top ? [`mostly in ${one.top}`] : []), "click: show on the timeline"];
    box.addEventListener("mousemove", (event) => hover({ type: "text", lines }, event));
    box.addEventListener("mouseleave", (event) => hover(null, event));
    box.addEventListener("click", () => goTo({ start: picture.start + from, end: picture.start + from + dur, track: picture.track }));
    svg.append(box);
  }
  return svg;
}

export function drawPicture(host, picture, goTo, hover) {
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => element("span", {}, share ? time(picture.dur * share) : "0"));
  const show = element("button", { type: "button", class: "link", onclick: () => goTo({ start: picture.start, end: picture.start + picture.dur, track: picture.track }) }, "show it on the timeline");
  host.replaceChildren(
    element("p", { class: "muted" }, `${time(picture.dur)}, starts at ${time(picture.start)} of the recording: `, show),
    element("div", { class: "picture" }, ...picture.lanes.flatMap((lane) => [
      element("span", { class: "lane-title" }, lane.title), laneBar(picture, lane, goTo, hover), element("div", { class: "legend" }, ...laneCaption(lane, picture.dur)),
    ]), element("div", { class: "ruler" }, ...ticks)));
}

// How long each step took, in their order; of too many, the longest of neighbours. Gives how many are drawn.
export function drawDurations(host, steps, slow, goTo, hover) {
  const columns = Math.min(steps.dur.length, 200);
  const from = (column) => Math.floor((column * steps.dur.length) / columns);
  const longest = Array.from({ length: columns }, (_, column) => {
    let best = from(column);
    for (let i = best; i < Math.max(from(column + 1), best + 1); i++) if (steps.dur[i] > steps.dur[best]) best = i;
    return best;
  });
  // Warm-up may take a thousand times as long: what is above three times the slow ones is cut, and says so.
  const measured = longest.map((i) => steps.dur[i]).filter((_, column) => steps.warmup[longest[column]] === 0);
  const top = measured.reduce((most, dur) => Math.max(most, dur), 1);
  host.replaceChildren(...longest.map((i) => {
    const warm = steps.warmup[i] > 0;
    const state = warm ? "warm" : slow.limit && steps.dur[i] >= slow.limit ? "slow" : "";
    const column = element("i", { class: state });
    column.style.height = `${Math.max(100 * Math.min(steps.dur[i] / top, 1), 2)}%`;
    const lines = [`step ${steps.number(i) + 1}: ${time(steps.dur[i])}`, ...(warm ? ["warm-up, in no number"] : []), ...(steps.dur[i] > top ? ["cut: it is longer than drawn"] : []), "click: show on the timeline"];
    column.addEventListener("mousemove", (event) => hover({ type: "text", lines }, event));
    column.addEventListener("mouseleave", (event) => hover(null, event));
    column.addEventListener("click", () => goTo({ start: steps.start[i], end: steps.start[i] + steps.dur[i] }));
    return column;
  }));
  host.classList.toggle("many", columns > 80);
  return columns;
}

export function drawSlow($, slow, goTo) {
  $("slow-sentence").textContent = slow.sentence;
  const most = slow.rows.reduce((most, row) => Math.max(most, Math.abs(row.slow - row.usual)), 1);
  const more = (row) => row.slow - row.usual;
  const signed = (ns) => `${ns < 0 ? "−" : "+"}${time(Math.abs(ns))}`;
  if (slow.rows.length) {
    table($("slow-rows"), [
      { title: "what", get: (row) => row.what, show: (row) => element("span", { class: "path" }, row.side === "thread" ? `thread: ${row.what}` : row.what) },
      { title: "where", get: (row) => row.at, show: (row) => element("span", { class: "path" }, row.at) },
      { title: "more", get: (row) => Math.abs(more(row)), show: (row) => signed(more(row)), bar: (row) => Math.abs(more(row)) / most, number: true },
      { title: "slow steps", get: (row) => row.slow, show: (row) => time(row.slow), number: true },
      { title: "typical steps", get: (row) => row.usual, show: (row) => time(row.usual), number: true },
    ], slow.rows, { limit: 8 });
  }
  const number = (value) => whole(Number(value.toFixed(1)));
  const facts = slow.counts.map((one) => element("span", {}, `${one.what}: ${number(one.slow)} instead of ${number(one.usual)}`));
  const jumps = slow.steps.map((step) => element("button", { type: "button", class: "link", onclick: () => goTo(step) }, step.text));
  $("slow-facts").replaceChildren(...facts, ...(jumps.length ? [element("span", {}, "show the slowest: ", ...jumps.flatMap((jump, i) => (i ? [" ", jump] : [jump])))] : []));
}
