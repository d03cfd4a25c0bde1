// The canvas of the memory section: what a device's bytes are for, what an allocator holds, and its blocks over time. It shares its visible range and
// selection with the timeline; blocks zoom in height too.

import { amount, lowerBound, tick, time, whole } from "./data.js";
import { listenToPointer } from "./pointer.js";

const MEMORY_GUTTER = 190;
const MEMORY_RULER = 24;
const STACK = 150;
const LEVELS = 84;
const BLOCKS = 340;
const RSS = 56;
export const INKS = 12;
const MOST_RSS = 4;
export const inBytes = (value) => amount(value, "bytes");

// The value that holds at a time; 0 before the first.
function levelAt({ time: times, value }, at) {
  const after = lowerBound(times, at + 0.5);
  return after ? value[after - 1] : 0;
}

export class MemoryView {
  constructor(canvas, data, view, onHover, onPick) {
    Object.assign(this, { canvas, data, view, onHover, onPick });
    this.context = canvas.getContext("2d");
    this.chosen = 0;
    // Of the blocks: how many times higher than the lane their picture is, and how far down it is moved.
    this.high = 1;
    this.scroll = 0;
    this.layout();
    this.measure();
    listenToPointer(this, MEMORY_RULER);
    new ResizeObserver(() => this.draw()).observe(canvas);
    view.listen(() => this.draw());
  }

  layout() {
    this.lanes = [];
    let y = MEMORY_RULER;
    const add = (lane, height) => {
      this.lanes.push({ ...lane, y, height });
      y += height + 10;
    };
    for (const device of this.data.memory.devices) if (device.time.length) add({ type: "stack", device }, STACK);
    const allocator = this.data.memory.allocators[this.chosen];
    if (allocator?.in_use) add({ type: "levels", allocator }, LEVELS);
    if (allocator?.blocks) add({ type: "blocks", blocks: allocator.blocks }, BLOCKS);
    let shown = 0;
    for (const group of this.data.groups) {
      for (const index of group.counters) {
        const counter = this.data.counters[index];
        if (counter.title === "memory (RSS)" && shown++ < MOST_RSS) add({ type: "rss", counter, title: group.title }, RSS);
      }
    }
    this.empty = this.lanes.every((lane) => lane.type === "rss");
    this.canvas.style.height = `${y}px`;
  }

  choose(index) {
    this.chosen = index;
    this.high = 1;
    this.scroll = 0;
    this.layout();
    this.draw();
  }

  measure() {
    this.width = this.canvas.clientWidth;
    this.gutter = this.width < 560 ? 96 : MEMORY_GUTTER;
  }

  x(ns) { return this.gutter + ((ns - this.view.start) / (this.view.end - this.view.start)) * (this.width - this.gutter); }
  ns(x) { return this.view.start + ((x - this.gutter) / (this.width - this.gutter)) * (this.view.end - this.view.start); }

  // About the pointer, as with the time.
  zoomHeight(factor, y) {
    const lane = this.lanes.find((one) => one.type === "blocks" && y >= one.y && y <= one.y + one.height);
    if (!lane) return;
    const before = this.high;
    this.high = Math.min(Math.max(this.high / factor, 1), 2000);
    this.scroll = ((this.scroll + y - lane.y) * this.high) / before - (y - lane.y);
    this.draw();
  }

  reset() {
    this.high = 1;
    this.scroll = 0;
    this.draw();
  }

  colours() {
    const { theme } = document.documentElement.dataset;
    if (this.colour && this.theme === theme) return this.colour;
    this.theme = theme;
    const style = getComputedStyle(this.canvas);
    const names = ["text", "muted", "line", "panel", "accent", "select", "idle", ...Array.from({ length: INKS }, (_, at) => `s${at}`)];
    return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  draw() {
    const { canvas, context: c, view } = this;
    const scale = devicePixelRatio || 1;
    this.measure();
    const [w, h] = [this.width, canvas.clientHeight];
    if (!w || !h) return;
    canvas.width = Math.round(w * scale);
    canvas.height = Math.round(h * scale);
    c.setTransform(scale, 0, 0, scale, 0, 0);
    this.scroll = Math.max(0, Math.min(this.scroll, BLOCKS * (this.high - 1)));
    this.colour = this.colours();
    c.fillStyle = this.colour.panel;
    c.fillRect(0, 0, w, h);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    this.grid(h);
    for (const lane of this.lanes) {
      c.save();
      c.beginPath();
      c.rect(this.gutter, lane.y, w - this.gutter, lane.height);
      c.clip();
      this[lane.type](lane);
      c.restore();
      this.names(lane);
    }
    if (view.selection) {
      const [a, b] = view.selection.map((ns) => Math.max(this.x(ns), this.gutter));
      c.fillStyle = this.colour.select;
      c.fillRect(a, MEMORY_RULER, Math.max(b - a, 0), h);
    }
  }

  grid(height) {
    const { context: c, colour, view } = this;
    const rough = (view.end - view.start) / Math.max(2, (this.width - this.gutter) / 110);
    const base = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * base).find((n) => n >= rough);
    c.strokeStyle = colour.line;
    c.textAlign = "left";
    for (let at = Math.ceil(view.start / step) * step; at <= view.end; at += step) {
      const x = Math.round(this.x(at)) + 0.5;
      c.beginPath();
      c.moveTo(x, MEMORY_RULER - 6);
      c.lineTo(x, height);
      c.stroke();
      c.fillStyle = colour.muted;
      c.fillText(this.data.memory.ordered_only ? whole(Math.round(at)) : tick(at, step), x + 4, MEMORY_RULER / 2);
    }
  }

  // Left of a lane: what it is, and the values at its edges.
  names(lane) {
    const { context: c, colour } = this;
    c.fillStyle = colour.line;
    c.fillRect(0, lane.y + lane.height + 4, this.width, 1);
    c.textAlign = "left";
    let y = lane.y + 9;
    for (const [text, strong] of this.said(lane)) {
      c.font = `${strong ? "600 " : ""}11px system-ui, sans-serif`;
      c.fillStyle = strong ? colour.text : colour.muted;
      for (let rest = text; rest; y += 14) {
        let letters = rest.length;
        while (letters > 4 && c.measureText(rest.slice(0, letters)).width > this.gutter - 14) letters--;
        const space = letters < rest.length ? rest.lastIndexOf(" ", letters) : letters;
        const cut = space > 4 ? space : letters;
        c.fillText(rest.slice(0, cut), 8, y);
        rest = rest.slice(cut).trimStart();
      }
    }
    c.font = "11px system-ui, sans-serif";
  }

  said(lane) {
    if (lane.type === "stack") return [[lane.device.title, true], [`at most ${inBytes(Math.max(...lane.device.used))}`]];
    if (lane.type === "rss") return [["Process (RSS)", true], [lane.title], [`at most ${inBytes(this.most(lane.counter.value))}`]];
    if (lane.type === "levels") {
      const { in_use: used, reserved } = lane.allocator;
      return [[lane.allocator.title, true], [`in use: at most ${inBytes(this.most(used.value))}`], ...(reserved ? [[`reserved (line): at most ${inBytes(this.most(reserved.value))}`]] : [])];
    }
    const { peak } = lane.blocks;
    const bottom = peak * (1 - (this.scroll + BLOCKS) / (BLOCKS * this.high));
    const range = this.high > 1 ? `${inBytes(Math.max(bottom, 0))} to ${inBytes(peak * (1 - this.scroll / (BLOCKS * this.high)))}` : `0 to ${inBytes(peak)}`;
    return [["Blocks over time", true], [range], ["ctrl-wheel: zoom time and height; double click: zoom to a block"]];
  }

  most(values) {
    return values.reduce((most, value) => Math.max(most, value), 0);
  }

  stack({ device, y, height }) {
    const { context: c, colour } = this;
    const most = Math.max(this.most(device.used), 1);
    const at = (value) => y + height - (value / most) * (height - 4);
    const below = new Float64Array(device.time.length);
    // One reading has no width of its own: it is a bar.
    const alone = device.time.length === 1;
    const xs = alone ? [this.x(device.time[0]) - 3, this.x(device.time[0]) + 3] : Array.from(device.time, (ns) => this.x(ns));
    const of = (i) => (alone ? 0 : i);
    for (const part of device.parts) {
      c.beginPath();
      xs.forEach((x, i) => c.lineTo(x, at(below[of(i)] + part.bytes[of(i)])));
      for (let i = xs.length - 1; i >= 0; i--) c.lineTo(xs[i], at(below[of(i)]));
      part.bytes.forEach((value, i) => (below[i] += value));
      c.globalAlpha = part.opacity;
      c.fillStyle = colour[part.ink];
      c.fill();
    }
    c.globalAlpha = 1;
  }

  // A line of values that hold until the next.
  stairs({ time: times, value }, at, fill) {
    const { context: c, view } = this;
    const from = Math.max(0, lowerBound(times, view.start) - 1);
    const to = Math.min(times.length, lowerBound(times, view.end) + 1);
    if (to <= from) return;
    c.beginPath();
    let before = at(value[from]);
    const left = this.x(times[from]);
    c.moveTo(left, fill ?? before);
    c.lineTo(left, before);
    for (let i = from + 1; i < to; i++) {
      const x = this.x(times[i]);
      c.lineTo(x, before);
      before = at(value[i]);
      c.lineTo(x, before);
    }
    const right = this.x(to < times.length ? times[to] : this.view.duration);
    c.lineTo(right, before);
    if (fill !== undefined) c.lineTo(right, fill);
  }

  levels({ allocator, y, height }) {
    const { context: c, colour } = this;
    const { in_use: used, reserved } = allocator;
    const most = Math.max(this.most(used.value), reserved ? this.most(reserved.value) : 0, 1);
    const at = (value) => y + height - (value / most) * (height - 6);
    this.stairs(used, at, y + height);
    c.fillStyle = colour.s0;
    c.globalAlpha = 0.55;
    c.fill();
    c.globalAlpha = 1;
    if (!reserved) return;
    this.stairs(reserved, at);
    c.strokeStyle = colour.s1;
    c.lineWidth = 1.5;
    c.stroke();
    c.lineWidth = 1;
  }

  rss({ counter, y, height }) {
    const { context: c, colour } = this;
    const most = Math.max(this.most(counter.value), 1);
    c.beginPath();
    counter.time.forEach((ns, i) => c.lineTo(this.x(ns), y + height - (counter.value[i] / most) * (height - 6)));
    c.strokeStyle = colour.s2;
    c.lineWidth = 1.4;
    c.stroke();
    c.lineWidth = 1;
  }

  // Where a number of bytes lies in the lane of the blocks.
  height(lane, value) {
    return lane.y + BLOCKS * this.high - this.scroll - (value / lane.blocks.peak) * BLOCKS * this.high;
  }

  ink(place) {
    return place < INKS ? this.colour[`s${place}`] : this.colour.muted;
  }

  blocks(lane) {
    const { context: c, view } = this;
    const { blocks: b } = lane;
    for (let i = 0; i < b.start.length; i++) {
      if (b.end[i] < view.start || b.start[i] > view.end) continue;
      c.fillStyle = this.ink(b.place[i]);
      c.globalAlpha = this.pointed === i ? 1 : 0.86;
      let widest = [0, 0, 0, 0];
      for (let point = b.first[i]; point < b.first[i + 1]; point++) {
        const until = point + 1 < b.first[i + 1] ? b.time[point + 1] : b.end[i];
        if (until < view.start || b.time[point] > view.end) continue;
        const left = Math.max(this.x(b.time[point]), this.gutter);
        const wide = Math.min(this.x(until), this.width) - left;
        const top = this.height(lane, b.bottom[point] + b.bytes[i]);
        const tall = this.height(lane, b.bottom[point]) - top;
        if (top > lane.y + lane.height || top + tall < lane.y) continue;
        // A gap tells neighbours of one line apart, where there is room for it.
        const gap = tall > 4 ? 0.8 : 0;
        c.fillRect(left, top, Math.max(wide, 0.6), Math.max(tall - gap, 0.3));
        if (wide > widest[2]) widest = [left, Math.max(top, lane.y), wide, Math.min(top + tall, lane.y + lane.height) - Math.max(top, lane.y)];
      }
      c.globalAlpha = 1;
      const [left, top, wide, tall] = widest;
      if (wide > 90 && tall > 13) {
        c.fillStyle = "#10182b";
        c.textAlign = "left";
        const text = `${inBytes(b.bytes[i])} ${b.places[b.place[i]]}`;
        const letters = Math.floor((wide - 10) / 6.2);
        c.fillText(text.length > letters ? `${text.slice(0, letters - 1)}…` : text, left + 5, top + tall / 2);
      }
    }
    this.rest(lane);
  }

  // What is not drawn one by one lies on top.
  rest(lane) {
    const { drawn, rest } = lane.blocks;
    if (!rest.time.length) return;
    const { context: c, view } = this;
    const moments = [...drawn.time, ...rest.time].sort((a, b) => a - b);
    c.fillStyle = this.colour.idle;
    for (let i = 0; i < moments.length; i++) {
      const until = moments[i + 1] ?? view.duration;
      if (until < view.start || moments[i] > view.end || until === moments[i]) continue;
      const bottom = levelAt(drawn, moments[i]);
      const value = levelAt(rest, moments[i]);
      const top = this.height(lane, bottom + value);
      if (value) c.fillRect(this.x(moments[i]), top, Math.max(this.x(until) - this.x(moments[i]), 0.6), this.height(lane, bottom) - top);
    }
  }

  // The block that lies at a place.
  blockAt(lane, x, y) {
    const { blocks: b } = lane;
    const at = this.ns(x);
    for (let i = 0; i < b.start.length; i++) {
      if (b.start[i] > at || b.end[i] < at) continue;
      let point = b.first[i];
      while (point + 1 < b.first[i + 1] && b.time[point + 1] <= at) point++;
      if (y <= this.height(lane, b.bottom[point]) && y >= this.height(lane, b.bottom[point] + b.bytes[i])) return i;
    }
    return -1;
  }

  moment(ns) {
    return this.data.memory.ordered_only ? `event ${whole(ns)}` : time(ns);
  }

  // What is under the pointer, in words; with begin and duration where it can be selected.
  find(x, y) {
    const lane = this.lanes.find((one) => y >= one.y && y <= one.y + one.height);
    if (!lane || x < this.gutter) return this.point(-1);
    const at = this.ns(x);
    if (lane.type === "blocks") {
      const i = this.blockAt(lane, x, y);
      this.point(i);
      if (i >= 0) return this.block(lane.blocks, i);
      const rest = levelAt(lane.blocks.rest, at);
      return rest ? { type: "text", lines: [`${inBytes(rest)} in blocks that are not drawn one by one`, `at ${this.moment(Math.max(at, 0))}`] } : null;
    }
    this.point(-1);
    if (lane.type === "levels") {
      const { in_use: used, reserved } = lane.allocator;
      const lines = [lane.allocator.title, `${inBytes(levelAt(used, at))} in use`, ...(reserved ? [`${inBytes(levelAt(reserved, at))} reserved`] : []), `at ${this.moment(Math.max(at, 0))}`];
      return { type: "text", lines };
    }
    const { time: times, value } = lane.type === "rss" ? lane.counter : { time: lane.device.time, value: lane.device.used };
    let nearest = Math.min(lowerBound(times, at), times.length - 1);
    if (nearest > 0 && at - times[nearest - 1] < times[nearest] - at) nearest--;
    const head = [lane.type === "rss" ? "Memory of the process (RSS)" : lane.device.title, `${inBytes(value[nearest])} at ${time(times[nearest])}`];
    const parts = lane.type === "rss" ? [] : lane.device.parts.toReversed().filter((part) => part.bytes[nearest] > 0);
    return { type: "text", lines: [...head, ...parts.map((part) => `${inBytes(part.bytes[nearest])} ${part.label}`)] };
  }

  point(block) {
    if (this.pointed === block) return null;
    this.pointed = block;
    requestAnimationFrame(() => this.draw());
    return null;
  }

  block(b, i) {
    const came = b.ends[i] & 1 ? "there before the first event" : `allocated at ${this.moment(b.start[i])}`;
    const lived = this.data.memory.ordered_only ? "" : `, after ${time(b.end[i] - b.start[i])}`;
    const went = b.ends[i] & 2 ? "not freed in the recording" : `freed at ${this.moment(b.end[i])}${lived}`;
    const step = b.step[i] ? [`in step ${whole(b.step[i])}`] : [];
    const lines = [`${inBytes(b.bytes[i])} · ${b.places[b.place[i]]}`, ...step, came, went, b.categories[b.category[i]]];
    return { type: "text", lines, start: b.start[i], dur: Math.max(b.end[i] - b.start[i], 1), bytes: b.bytes[i], bottom: b.bottom[b.first[i]], peak: b.peak };
  }

  // A double click shows a block with what is around it.
  zoomTo(what) {
    this.high = Math.min(Math.max(what.peak / (what.bytes * 8), 1), 2000);
    this.scroll = BLOCKS * this.high * (1 - (what.bottom + what.bytes / 2) / what.peak) - BLOCKS / 2;
    this.draw();
  }
}
