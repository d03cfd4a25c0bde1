// Puts the report together: reads the payload, fills the page, connects timeline, flame graph, tables and keys.

import { amount, counted, load, percent, sure, time, whole } from "./data.js";
import { FlameView } from "./flame.js";
import { plural, reasons } from "./gpu.js";
import { fillMemory, loadMemory } from "./memory_section.js";
import { drawDurations, drawPicture, drawSlow } from "./picture.js";
import { fillGpu, gpuPanel } from "./gpu_tables.js";
import { fillOperators } from "./operators.js";
import { contents, element, phases, place, table, waterfall } from "./tables.js";
import { TimelineView } from "./timeline.js";
import { View } from "./view.js";

const $ = (id) => document.getElementById(id);
const data = load();
if (data.memory) loadMemory(data.memory);
const view = new View(data.meta.duration_ns);

function theme(name) {
  document.documentElement.dataset.theme = name;
  view.changed("theme");
}
theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
$("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));

// The hover box follows the pointer and stays inside the window.
const tip = $("tip");
function hover(what, event, at) {
  const lines = what && describe(what, at);
  tip.hidden = !lines;
  if (!lines) return;
  tip.replaceChildren(...lines.map((line, index) => element(index ? "div" : "strong", {}, line)));
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - box.width - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, innerHeight - box.height - 8)}px`;
}

function describe(what, at) {
  if (what.type === "text") return what.lines;
  if (what.type === "mark") return [what.name, `event at ${time(what.start)}`];
  if (what.type === "step") {
    const some = data.steps.start.length < data.steps.all ? [`of ${whole(data.steps.all)} steps the page draws ${whole(data.steps.start.length)}, the longest of neighbours`] : [];
    return [`step ${data.steps.number(what.index) + 1}`, `${time(what.dur)}, from ${time(what.start)}`, ...some];
  }
  if (what.type === "counter") {
    const { time: times, value, title, unit } = what.counter;
    let nearest = 0;
    for (let i = 0; i < times.length && times[i] <= at; i++) nearest = i;
    const shown = value[nearest] < 0 ? "nothing" : unit === "reasons" ? reasons(value[nearest]) : amount(value[nearest], unit);
    return [title, `${shown} at ${time(times[nearest])}`];
  }
  if (what.type === "slice") {
    const many = what.count > 1 ? [`${what.count.toLocaleString("en")} short ${plural(what.kind)} drawn as one, mostly this${what.full < 1 ? `; busy ${percent(what.full, 1)} of it` : ""}`] : [];
    const caller = what.count === 1 ? timeline.links.caller(what.index, what.i) : null;
    const launched = caller ? [`launched ${time(what.start - caller.start)} before, by ${data.tracks[caller.track].title}`] : [];
    const waited = what.count === 1 && what.track.launched ? waits([{ track: what.index, i: what.i }]).map((wait) => wait.text) : [];
    return [what.name, ...many, `${what.kind} · ${time(what.dur)}, from ${time(what.start)}`, ...launched, ...waited, what.track.title];
  }
  if (what.type === "strip") {
    const { time: times, stack, state } = data.samples;
    let nearest = null;
    for (const i of what.of) if (nearest === null || Math.abs(times[i] - at) < Math.abs(times[nearest] - at)) nearest = i;
    if (nearest === null) return null;
    const frames = [];
    for (let frame = stack[nearest]; frame > 0 && frames.length < 12; frame = data.stacks.parent[frame]) {
      frames.push(`${data.names[data.stacks.name[frame]]}:${data.stacks.line[frame]}`);
    }
    return [`${state[nearest] & 2 ? "holds the GIL" : state[nearest] & 1 ? "running" : "waiting"} at ${time(times[nearest])}`, ...frames];
  }
  return null;
}

const timeline = new TimelineView($("timeline"), data, view, hover, (what) => {
  timeline.picked = what.type === "slice" ? what : null;
  if (what.dur) view.select([what.start, what.start + what.dur]);
});
const options = { idle: () => $("idle").checked, inverted: () => $("inverted").checked };
const flame = new FlameView($("flame"), data, view, hover, options);
for (const id of ["idle", "inverted"]) $(id).addEventListener("change", () => flame.rebuild());

// What waits waited for, in words: of those of which it is known.
function waits(boxes) {
  return boxes.flatMap((wait) => {
    const work = timeline.links.waitedFor(wait.track, wait.i);
    if (!work) return [];
    const own = data.tracks[wait.track].slices;
    const after = own.start[wait.i] + own.dur[wait.i] - work.start - work.dur;
    const ended = after >= 0 ? `, which ended ${time(after)} before the wait did` : "";
    const text = `${work.inferred ? "probably " : ""}waited for ${data.names[work.name]} on ${data.tracks[work.track].title}${ended}`;
    return [{ text, work }];
  });
}

// What the picked slice asked for and waited for, or who asked for the picked work, with the way there.
function links() {
  const { picked } = timeline;
  const host = $("selection-links");
  host.hidden = true;
  if (!picked || !data.devices.length) return;
  const go = (text, track, start, dur) => element("button", { type: "button", class: "link", onclick: () => goTo({ start, end: start + dur, track }) }, text);
  const forWork = (boxes) => waits(boxes).flatMap(({ text, work }) => [` It ${text}. `, go("Show that work", work.track, work.start, work.dur)]);
  const say = (...parts) => {
    host.hidden = false;
    host.replaceChildren(...parts);
  };
  if (picked.track.launched) {
    const caller = picked.count === 1 ? timeline.links.caller(picked.index, picked.i) : null;
    if (!caller) return say(picked.count > 1 ? "Several GPU operations drawn as one." : "Its launch was not recorded (it is from before the recording).");
    const box = timeline.links.boxOf(caller.track, caller.start);
    const s = data.tracks[caller.track].slices;
    // A box that stands for several has the name of one of them.
    const own = box >= 0 && s.kind[box] === 7 && s.count[box] === 1;
    const name = own ? data.names[s.name[box]] : "a call";
    const dur = own ? s.dur[box] : 0;
    const said = picked.kind === "wait" ? `The wait of ${name} on ${data.tracks[caller.track].title}. ` : `Launched by ${name} on ${data.tracks[caller.track].title}, ${time(picked.start - caller.start)} before it started. `;
    return say(said, go("Show the call", caller.track, caller.start, dur), ...forWork([{ track: picked.index, i: picked.i }]));
  }
  const { found, count, time: total, waits: waited } = timeline.links.launchedIn(picked.index, picked.start, picked.start + picked.dur, 60);
  // A scope may hold many waits: one is told of.
  const lines = forWork(waited.length === 1 ? waited : []);
  if (!count) return lines.length ? say(...lines) : undefined;
  const s = data.tracks[found[0].track].slices;
  say(`Launched inside it: ${counted(count, "GPU operation")}, ${time(total)} on the GPU. `, go("Show the first", found[0].track, s.start[found[0].i], s.dur[found[0].i]), ...lines);
}

function panel() {
  const range = view.selection;
  if (!range) timeline.picked = null;
  $("selection").hidden = !range;
  $("flame-range").textContent = range ? `for the selected ${time(range[1] - range[0])}` : "for the whole recording";
  if (!range) return;
  const { slices, functions, samples } = contents(data, range);
  $("selection-title").textContent = `${time(range[1] - range[0])} selected, from ${time(range[0])} to ${time(range[1])}`;
  const named = (row) => data.names[row.name];
  table($("selection-slices"), [
    { title: "slice", get: named },
    { title: "count", get: (row) => row.count, number: true },
    { title: "total", get: (row) => row.total, show: (row) => time(row.total), number: true },
  ], slices, { limit: 12, empty: "No slices in this range." });
  table($("selection-functions"), [
    { title: "running function", get: named },
    { title: "samples", get: (row) => row.count, show: (row) => percent(row.count, samples), bar: (row) => row.count / samples, number: true },
  ], functions, { limit: 12, empty: "No running samples in this range." });
  gpuPanel(data, $("selection-gpu"), range);
  links();
}

view.listen((changes) => {
  if (changes.selection) panel();
  if (changes.query && $("search").value !== view.query) $("search").value = view.query;
  if (changes.range || changes.selection || changes.query) remember();
});

// The address follows the view at once, but not in every frame of a drag: browsers refuse more than a hundred in a row.
const WRITES_A_SECOND = 8;
let written = 0;
let behind = false;
function remember() {
  behind = written >= WRITES_A_SECOND;
  if (behind) return;
  history.replaceState(null, "", view.toHash());
  if (written++) return;
  setTimeout(() => {
    written = 0;
    if (behind) remember();
  }, 1000);
}

// Findings jump to their evidence.
function goTo(evidence) {
  timeline.picked = null;
  const width = Math.max(evidence.end - evidence.start, view.duration / 1e6);
  view.show(evidence.start - width * 0.3, evidence.end + width * 0.3);
  view.select([evidence.start, evidence.end]);
  if (evidence.track !== undefined && evidence.track !== null) timeline.reveal(evidence.track);
  $("timeline-section").scrollIntoView({ behavior: "smooth" });
}

// What a gain rests on, where that is not simply the recorded time.
const GAIN_BY = { replay: ", by replay", bounded: ", bounds only", prior: ", from measurements elsewhere" };

function finding(found) {
  const gain = found.gain ? element("span", { class: "gain" }, `worth ${found.gain.low.toFixed(0)}–${found.gain.high.toFixed(0)} %`, element("small", {}, ` of the ${data.steps.dur.length ? "step" : "recording"}${GAIN_BY[found.gain.by] ?? ""}`)) : null;
  const evidence = found.evidence.map((item) => element("li", {}, item.text, " ",
    item.end > item.start ? element("button", { type: "button", class: "link", onclick: () => goTo(item) }, "show on the timeline") : null));
  const { where: at } = found;
  const named = [["module", at.module], ["kernel", at.kernel], ["call", at.api]].filter(([, name]) => name).map(([what, name]) => `${what} ${name}`);
  const where = [at.function, place(at.file, at.line), ...named].filter(Boolean).join(" · ");
  return element("article", { class: `finding ${found.severity}`, id: `finding-${found.code}` },
    element("header", {}, element("code", {}, found.code), element("h3", {}, found.title), gain),
    where ? element("p", { class: "where" }, where) : null,
    element("div", { class: "columns" },
      element("div", {}, element("h4", {}, "Evidence"), element("ul", {}, ...evidence)),
      element("div", {}, element("h4", {}, "What to do"), element("ul", {}, ...found.actions.map((action) => element("li", {}, action))),
        found.verify ? element("p", { class: "muted" }, `To check: ${found.verify}`) : null)),
    element("p", { class: "muted" }, `Confidence ${sure(found.confidence)}`));
}

// What the box of health says first.
const TRUST = ["losses", "clock", "GPU clock", "overhead", "replay"];
// The address holds the view: a jump inside the page must not replace it.
function toHealth(event) {
  event.preventDefault();
  $("health-section").scrollIntoView({ behavior: "smooth" });
}

function fill() {
  document.title = `${data.meta.command} · InferScope`;
  $("command").textContent = data.meta.command;
  $("context").textContent = data.meta.context;
  $("answer").replaceChildren(...data.answer.map((sentence) => element("p", {}, sentence)));
  $("cards").replaceChildren(...data.cards.map((card) => element("div", { class: "card" }, element("b", {}, card.value), element("span", {}, card.label))));
  $("findings").replaceChildren(...(data.findings.length ? data.findings.map(finding) : [element("p", { class: "muted" }, "No findings in this recording.")]));
  $("considered").replaceChildren(...data.considered.map((item) => element("li", {}, element("code", { title: item.title }, item.code), ` ${item.against}`)));
  $("considered-part").hidden = !data.considered.length;
  $("abstentions").replaceChildren(...data.abstentions.map((item) => element("li", {}, element("code", {}, item.code), ` ${item.reason}`)));
  $("abstained").hidden = !data.abstentions.length;
  $("health").replaceChildren(...data.health.map((line) => element("li", { class: line.state }, element("b", {}, line.label), ` ${line.text}`)));
  const chips = data.health.filter((line) => TRUST.includes(line.label.replace(":", "")));
  $("verdict").replaceChildren(
    ...(data.verdict.confidence > 0 ? [element("span", { class: "chip verdict" }, data.verdict.kind.replaceAll("_", " "), element("small", {}, ` ${sure(data.verdict.confidence)} sure`))] : []),
    ...chips.map((line) => element("a", { class: `chip ${line.state}`, href: "#health-section", title: line.text, onclick: toHealth }, line.label.replace(":", ""))));
  $("waterfall-section").hidden = !data.waterfall.length && !data.picture;
  $("picture-part").hidden = !data.picture;
  if (data.picture) drawPicture($("picture"), data.picture, goTo, hover);
  $("picture-title").textContent = data.picture?.title ?? "";
  $("slow-part").hidden = !data.slow;
  if (data.slow) drawSlow($, data.slow, goTo);
  $("durations").hidden = data.steps.dur.length < 2;
  const bars = data.slow && data.steps.dur.length > 1 ? drawDurations($("durations"), data.steps, data.slow, goTo, hover) : data.steps.all;
  const some = bars < data.steps.all ? ` Drawn: ${whole(bars)} of ${whole(data.steps.all)}, the longest of neighbours.` : "";
  $("steps-why").textContent = data.steps.dur.length ? `Steps: ${data.steps.why}.${some}` : "";
  $("waterfall-title").textContent = data.waterfall_title;
  if (data.waterfall.length) waterfall($("waterfall"), data.waterfall);
  $("phases").hidden = !data.phases.length;
  phases($("phases-rows"), data.phases, data.waterfall.reduce((sum, part) => sum + part.ns, 0));
  const search = (row) => {
    view.search(row.name);
    $("flame-section").scrollIntoView({ behavior: "smooth" });
  };
  const where = { title: "where", get: (row) => place(row.file, row.line) };
  const { active } = data.samples;
  const share = (title, get) => ({ title, get, show: (row) => percent(get(row), active), bar: (row) => get(row) / active, number: true });
  table($("functions"), [{ title: "function", get: (row) => row.name }, where, share("self", (row) => row.self), share("with callees", (row) => row.total)],
    data.functions, { filter: $("functions-filter"), onPick: search, empty: "No stacks were sampled." });
  table($("lines"), [{ title: "line", get: (row) => place(row.file, row.line) }, { title: "function", get: (row) => row.name }, share("self", (row) => row.self)],
    data.lines, { filter: $("lines-filter"), onPick: search, empty: "No stacks were sampled." });
  const nanos = (title, key) => ({ title, get: (row) => row[key], show: (row) => time(row[key]), number: true });
  const count = { title: "count", get: (row) => row.count, show: (row) => row.count.toLocaleString("en"), number: true };
  $("calls-section").hidden = !data.calls.length;
  table($("calls"), [{ title: "function", get: (row) => row.name }, where, nanos("self", "self"), nanos("total", "total"), count],
    data.calls, { filter: $("calls-filter"), onPick: search });
  $("scopes-section").hidden = !data.scopes.length;
  table($("scopes"), [{ title: "scope", get: (row) => row.name }, { title: "kind", get: (row) => row.kind }, nanos("total", "total"), count, nanos("p50", "p50"), nanos("p99", "p99"), nanos("max", "max")],
    data.scopes, { filter: $("scopes-filter"), onPick: search });
  const onTimeline = (row) => {
    view.search(row.name);
    $("timeline-section").scrollIntoView({ behavior: "smooth" });
  };
  fillGpu(data, $, onTimeline);
  fillOperators(data, $, onTimeline);
  fillMemory(data, $, view, hover);
  for (const link of document.querySelectorAll("nav a")) link.hidden = $(link.getAttribute("href").slice(1))?.hidden ?? true;
}

const KEYS = {
  w: () => view.zoom(0.6), s: () => view.zoom(1.6), a: () => view.pan(-0.25), d: () => view.pan(0.25),
  ArrowUp: () => view.zoom(0.6), ArrowDown: () => view.zoom(1.6), ArrowLeft: () => view.pan(-0.25), ArrowRight: () => view.pan(0.25),
  0: () => view.show(0, view.duration),
  z: () => view.selection && view.show(...view.selection),
  "/": () => $("search").focus(),
  "?": () => $("help").showModal(),
  Escape: () => { view.select(null); view.search(""); },
};
addEventListener("keydown", (event) => {
  if (event.target.matches("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const action = KEYS[event.key] ?? KEYS[event.key.toLowerCase()];
  if (!action) return;
  // Arrows scroll the page unless the timeline has the focus.
  if (event.key.startsWith("Arrow") && document.activeElement !== $("timeline")) return;
  event.preventDefault();
  action();
});
$("search").addEventListener("input", () => view.search($("search").value));
$("search").addEventListener("keydown", (event) => event.key === "Enter" && nextHit());
for (const [id, action] of [["zoom-in", KEYS.w], ["zoom-out", KEYS.s], ["fit", KEYS["0"]], ["clear", KEYS.Escape], ["help-open", KEYS["?"]]]) $(id).addEventListener("click", action);
$("help-close").addEventListener("click", () => $("help").close());
addEventListener("hashchange", () => view.fromHash(location.hash));

// Enter in the search goes from hit to hit, in time order.
function nextHit() {
  const query = view.query.toLowerCase();
  if (!query) return;
  let best = null;
  for (const [index, track] of data.tracks.entries()) {
    const s = track.slices;
    for (let i = 0; i < s.start.length; i++) {
      if (!data.names[s.name[i]].toLowerCase().includes(query)) continue;
      const after = view.selection ? s.start[i] > view.selection[0] : true;
      if (after && (!best || s.start[i] < best.start)) best = { start: s.start[i], end: s.start[i] + s.dur[i], track: index };
    }
  }
  if (best) goTo(best);
  else view.select(null);
}

fill();
if (!view.fromHash(location.hash)) view.show(0, view.duration);
panel();
document.documentElement.dataset.ready = "yes";
