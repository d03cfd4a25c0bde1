// The GPU sections: what each device did in a step, and the tables of kernels, copies, API calls and layers.

import { amount, counted, percent, time, whole } from "./data.js";
import { devicesIn } from "./gpu.js";
import { element, place, table } from "./tables.js";

// A kernel returns nothing: its name does not need to say so.
const bare = (name) => name.replace(/^void /, "");

// Busy shares of the steps, one after the other; of too many the lowest of neighbours.
function perStep({ all, number, busy }) {
  if (busy.length < 2) return null;
  const bars = Array.from(busy, (share, place) => {
    const bar = element("i", { title: `step ${whole(number[place] + 1)}: ${percent(share, 1000)}` });
    bar.style.height = `${Math.max(share / 10, 1)}%`;
    return bar;
  });
  const title = busy.length < all ? `Busy share of the steps: ${whole(busy.length)} of ${whole(all)}, the lowest of neighbours` : "Busy share of each step";
  return element("div", {}, element("h4", {}, title),
    element("div", { class: busy.length > 80 ? "per-step many" : "per-step", role: "img", "aria-label": title }, ...bars));
}

// The mean step as one bar: kernels, copies that no kernel hides, and why it is idle for the rest.
function device(row, { window, of_steps }) {
  const parts = [
    ["kernel", "kernels", row.kernel],
    ["copy", "exposed copies", row.exposed],
    ...(row.idle.length ? row.idle.map((one) => [`k-${one.code}`, `idle: ${one.cause}`, one.ns]) : [["idle", "idle", Math.max(row.window - row.busy, 0)]]),
  ].filter(([, , ns]) => ns > 0);
  const bar = element("div", { class: "shares" }, ...parts.map(([kind, label, ns]) => {
    const part = element("span", { class: `share ${kind}`, title: `${label}: ${time(ns)}, ${percent(ns, row.window)}` });
    part.style.width = `${(100 * ns) / Math.max(row.window, 1)}%`;
    return part;
  }));
  const said = parts.map(([kind, label, ns]) => element("span", {}, element("i", { class: `share ${kind}` }), `${label} ${time(ns)} (${percent(ns, row.window)})`));
  const gaps = `Before the first work ${time(row.leading)}, after the last ${time(row.trailing)}; ${counted(row.kernels, "kernel")}${row.steps > 1 ? ` in ${whole(row.steps)} steps` : ""}.`;
  return element("article", { class: "device" },
    element("header", {}, element("h3", {}, row.title), element("b", { class: "busy" }, percent(row.busy, row.window)), element("span", { class: "muted" }, `busy ${window}`)),
    row.about ? element("p", { class: "muted" }, row.about) : null,
    bar, element("div", { class: "legend" }, ...said),
    element("p", { class: "muted" }, gaps),
    row.idle.length ? idle(row, of_steps) : null,
    perStep(row.per_step));
}

// Why it had nothing to do, most first; with the busy time it is the whole step.
function idle(row, ofSteps) {
  const host = element("div", { class: "idle-causes" });
  table(host, [
    { title: "idle time by cause", get: (one) => one.cause },
    { title: ofSteps ? "of a step" : "time", get: (one) => one.ns, show: (one) => time(one.ns), number: true },
    { title: "share", get: (one) => one.ns, show: (one) => percent(one.ns, row.window), bar: (one) => one.ns / Math.max(row.window, 1), number: true },
    { title: "mostly in", get: (one) => one.top, show: (one) => element("span", { class: "path" }, one.top) },
  ], row.idle, { limit: 15 });
  return host;
}

export function fillGpu(data, $, search) {
  const { gpu } = data;
  for (const id of ["gpu-section", "kernels-section", "copies-section", "apis-section", "layers-section", "ranges-section", "gpu-legend"]) $(id).hidden = !gpu;
  document.body.classList.toggle("gpu", Boolean(gpu));
  if (!gpu) return;
  $("gpu-devices").replaceChildren(...gpu.devices.map((row) => device(row, gpu)));
  $("gpu-facts").replaceChildren(...gpu.facts.map((fact) => element("li", {}, fact)));
  const nanos = (title, key) => ({ title, get: (row) => row[key], show: (row) => time(row[key]), number: true });
  const count = { title: "count", get: (row) => row.count, show: (row) => whole(row.count), number: true };
  const name = (title) => ({ title, get: (row) => row.name, show: (row) => element("span", { class: "symbol", title: row.name }, bare(row.name)) });
  const path = (title, get) => ({ title, get, show: (row) => element("span", { class: "path" }, get(row)) });
  // Columns in which nothing was recorded are left out.
  const some = (rows, column) => (rows.some((row) => column.get(row) !== "" && column.get(row) !== null) ? [column] : []);
  table($("kernels"), [
    name("kernel"),
    nanos("total", "total"),
    { title: "share", get: (row) => row.share, show: (row) => percent(row.share, 1), bar: (row) => row.share, number: true },
    count, nanos("mean", "mean"), nanos("p95", "p95"),
    ...some(gpu.kernels, { title: "grid", get: (row) => row.grid, whole: true }),
    ...some(gpu.kernels, { title: "block", get: (row) => row.block, whole: true }),
    ...some(gpu.kernels, { title: "registers", get: (row) => row.registers ?? "", number: true }),
    ...some(gpu.kernels, { title: "shared memory", get: (row) => row.shared ?? "", show: (row) => (row.shared === null ? "" : amount(row.shared, "bytes")), number: true }),
    ...some(gpu.kernels, path("launched from", (row) => place(row.file, row.line))),
    ...some(gpu.kernels, path("layer", (row) => row.layer)),
  ], gpu.kernels, { filter: $("kernels-filter"), onPick: search, limit: 25, empty: "No kernels recorded." });
  $("kernels-note").textContent = gpu.kernels.length ? `${time(gpu.kernel_ns)} of kernel time in the recording` : "";
  $("copies-section").hidden = !gpu.copies.length;
  table($("copies"), [
    { title: "what", get: (row) => row.label }, nanos("total", "total"), count,
    { title: "bytes", get: (row) => row.bytes, show: (row) => amount(row.bytes, "bytes"), number: true },
    { title: "achieved", get: (row) => row.speed, show: (row) => `${row.speed.toFixed(row.speed < 10 ? 2 : 1)} GB/s`, number: true },
    { title: "exposed", get: (row) => row.exposed, show: (row) => time(row.exposed), bar: (row) => row.exposed / Math.max(row.total, 1), number: true },
  ], gpu.copies, {});
  $("apis-section").hidden = !gpu.apis.length;
  table($("apis"), [{ title: "call", get: (row) => row.name }, nanos("total", "total"), count, nanos("mean", "mean"), nanos("p95", "p95")],
    gpu.apis, { filter: $("apis-filter"), onPick: search, limit: 25 });
  $("layers-section").hidden = !gpu.layers.length;
  const ways = (title, key) => ({ title, get: (row) => row[key], show: (row) => (row[key] ? whole(row[key]) : "–"), number: true });
  const used = (key) => gpu.layers.some((row) => row[key] > 0);
  table($("layers"), [
    { title: "layer", get: (row) => row.name }, nanos("GPU time", "total"),
    { title: "of kernel time", get: (row) => row.total, show: (row) => percent(row.total, gpu.kernel_ns), bar: (row) => row.total / Math.max(gpu.kernel_ns, 1), number: true },
    { title: "kernels", get: (row) => row.kernels, show: (row) => whole(row.kernels), number: true },
    ...[["launched inside it", "direct"], ["by the same sequence", "by_sequence"], ["as captured in a graph", "by_capture"]].filter(([, key]) => used(key)).map(([title, key]) => ways(title, key)),
  ], gpu.layers, { filter: $("layers-filter"), onPick: search, limit: 25 });
  $("ranges-section").hidden = !gpu.ranges.length;
  table($("ranges"), [
    { title: "range", get: (row) => row.name }, { title: "kind", get: (row) => row.kind }, nanos("GPU time", "total"),
    { title: "kernels", get: (row) => row.kernels, show: (row) => whole(row.kernels), number: true },
  ], gpu.ranges, { filter: $("ranges-filter"), onPick: search, limit: 25 });
}

// The selected range: how busy each device was in it, and its kernels.
export function gpuPanel(data, host, range) {
  const length = Math.max(range[1] - range[0], 1);
  host.hidden = !data.devices.length;
  host.replaceChildren(...devicesIn(data, range).map(({ device, busy, exact, kernels }) => {
    const rows = element("div", {});
    const total = kernels.reduce((sum, row) => sum + row.total, 0);
    table(rows, [
      { title: "kernel", get: (row) => (row.name < 0 ? "(other kernels)" : data.names[row.name]), show: (row) => element("span", { class: "symbol" }, row.name < 0 ? "(other kernels)" : bare(data.names[row.name])) },
      { title: "total", get: (row) => row.total, show: (row) => time(row.total), bar: (row) => row.total / Math.max(total, 1), number: true },
      { title: "count", get: (row) => row.count, show: (row) => whole(row.count), number: true },
    ], kernels, { limit: 8, empty: "No kernels in this range." });
    const about = exact ? "" : "about ";
    return element("div", {}, element("h4", {}, `${device.title}: busy ${about}${percent(busy, length)} of the range (${time(busy)})`), rows);
  }));
}
