// The memory section around its canvas: the packed columns, the legends, and the tables of who holds the peak and the end.

import { counted, percent, unpack, whole } from "./data.js";
import { INKS, MemoryView, inBytes } from "./memory.js";
import { element, table } from "./tables.js";

// Packed columns become numbers, once.
export function loadMemory(memory) {
  const curve = (one) => one && { time: unpack(one.time, true), value: unpack(one.value, true) };
  for (const device of memory.devices) {
    device.time = unpack(device.time, true);
    device.used = unpack(device.used, true);
    for (const part of device.parts) part.bytes = unpack(part.bytes, true);
  }
  for (const allocator of memory.allocators) {
    allocator.in_use = curve(allocator.in_use);
    allocator.reserved = curve(allocator.reserved);
    const b = allocator.blocks;
    if (!b) continue;
    for (const column of ["start", "end", "time", "bottom"]) b[column] = unpack(b[column], true);
    for (const column of ["bytes", "place", "step", "category", "ends", "points"]) b[column] = unpack(b[column]);
    b.drawn = curve(b.drawn);
    b.rest = curve(b.rest);
    b.first = new Float64Array(b.points.length + 1);
    for (let i = 0; i < b.points.length; i++) b.first[i + 1] = b.first[i] + b.points[i];
  }
}

function inkLegend(names, colour) {
  return names.map(([ink, opacity, text]) => {
    const square = element("i", {});
    square.style.background = colour(ink);
    square.style.opacity = opacity;
    return element("span", {}, square, text);
  });
}

function holderTable(host, rows, all) {
  table(host, [
    { title: "line", get: (row) => row.place },
    { title: "bytes", get: (row) => row.bytes, show: (row) => `${inBytes(row.bytes)} · ${percent(row.bytes, all)}`, bar: (row) => row.bytes / all, number: true },
    { title: "blocks", get: (row) => row.blocks, show: (row) => whole(row.blocks), number: true },
    { title: "largest", get: (row) => row.largest, show: (row) => inBytes(row.largest), number: true },
  ], rows, { limit: 12, empty: "No blocks." });
}

export function fillMemory(data, $, view, hover) {
  $("memory-section").hidden = !data.memory;
  if (!data.memory) return null;
  const { devices, allocators, left_out: leftOut, ordered_only: ordered } = data.memory;
  const canvas = $("memory");
  const shown = new MemoryView(canvas, data, view, hover, (what) => what.dur && view.select([what.start, what.start + what.dur]));
  const colour = (ink) => `var(--${ink})`;
  const parts = devices.flatMap((device) => [
    element("p", { class: "muted" }, `${device.title}: ${device.note}`),
    element("div", { class: "legend" }, ...inkLegend(device.parts.toReversed().map((part) => [part.ink, part.opacity, part.label]), colour)),
  ]);
  $("memory-devices").replaceChildren(...parts);
  const choose = $("memory-allocator");
  choose.hidden = allocators.length < 2;
  choose.replaceChildren(...allocators.map((one, index) => element("option", { value: index }, one.title)));
  const fill = () => {
    const one = allocators[shown.chosen];
    canvas.hidden = shown.empty;
    $("memory-tables").hidden = !one;
    $("memory-blocks-note").textContent = [one?.blocks?.note, ordered ? "Times were not recorded: the axis counts events." : "", ...leftOut].filter(Boolean).join(". ");
    if (!one) return;
    const places = one.blocks ? one.blocks.places.slice(0, INKS).map((name, at) => [`s${at}`, 1, name]) : [];
    const more = one.blocks && one.blocks.places.length > INKS ? [["muted", 1, `${counted(one.blocks.places.length - INKS, "more line")}`]] : [];
    const rest = one.blocks?.rest.time.length ? [["idle", 1, "not drawn one by one"]] : [];
    $("memory-legend-title").hidden = !places.length;
    $("memory-legend").replaceChildren(...inkLegend([...places, ...more, ...rest], colour));
    $("memory-facts").replaceChildren(...one.facts.map((fact) => element("li", {}, fact)));
    $("memory-peak-title").textContent = `At the peak: ${inBytes(one.peak_bytes)}`;
    $("memory-end-title").textContent = `At the end: ${inBytes(one.end_bytes)}`;
    holderTable($("memory-peak"), one.peak, one.peak_bytes);
    holderTable($("memory-end"), one.end, one.end_bytes);
  };
  choose.addEventListener("change", () => {
    shown.choose(Number(choose.value));
    fill();
  });
  canvas.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) shown.zoomHeight(1.0015 ** event.deltaY, event.clientY - canvas.getBoundingClientRect().top);
  });
  canvas.addEventListener("dblclick", (event) => {
    const box = canvas.getBoundingClientRect();
    const what = shown.find(event.clientX - box.left, event.clientY - box.top);
    if (what?.bytes) shown.zoomTo(what);
  });
  $("memory-all").addEventListener("click", () => {
    shown.reset();
    view.show(0, view.duration);
  });
  fill();
  return shown;
}
