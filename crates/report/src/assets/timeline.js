// The timeline: one canvas. Draws only what the visible range holds, with the colours of the page;
// leaves what a selection contains to the side panel. What is thinner than a pixel is drawn together with
// its neighbours: a frame costs what the screen shows, not what the trace holds.

import { hue } from "./colours.js";
import { amount, lowerBound, stepsTitle, tick, time, whole } from "./data.js";
import { KINDS, WAIT, WORK, paintWork, reasons } from "./gpu.js";
import { Links, arrows } from "./links.js";
import { listenToPointer } from "./pointer.js";

const ROW = 18;
const GUTTER = 190;
const NARROW_GUTTER = 96;
const RULER = 26;
const STRIP = 9;
const COUNTER = 44;
// Thin boxes are gathered over this many pixels. Cells begin at fixed times, so that panning does not flicker.
const GATHER = 6;

export class TimelineView {
  constructor(canvas, data, view, onHover, onPick) {
    Object.assign(this, { canvas, data, view, onHover, onPick });
    this.context = canvas.getContext("2d");
    this.scroll = 0;
    this.samplesOf = data.tracks.map(() => []);
    data.samples.track.forEach((track, index) => this.samplesOf[track]?.push(index));
    const longest = (column) => column.reduce((most, dur) => Math.max(most, dur), 0);
    this.longest = data.tracks.map((track) => longest(track.slices.dur));
    this.longestStep = longest(data.steps.dur);
    this.widths = new Map();
    this.links = new Links(data);
    this.picked = null;
    this.measure();
    this.layout();
    listenToPointer(this, RULER);
    new ResizeObserver(() => this.draw()).observe(canvas);
    view.listen(() => this.draw());
  }

  layout() {
    this.lanes = [];
    let y = 0;
    const add = (lane, height) => {
      this.lanes.push({ ...lane, y, height });
      y += height;
    };
    if (this.data.steps.start.length) add({ type: "steps", title: stepsTitle(this.data.steps) }, ROW + 6);
    for (const group of this.data.groups) {
      add({ type: "group", title: group.title }, ROW + 4);
      for (const index of group.counters) add({ type: "counter", counter: this.data.counters[index] }, COUNTER);
      for (const index of group.tracks) {
        const track = this.data.tracks[index];
        const strip = this.samplesOf[index].length ? STRIP + 3 : 0;
        const marks = track.marks.time.length ? 10 : 0;
        add({ type: "track", track, index, title: track.title, strip, marks }, strip + marks + Math.max(track.rows * ROW, strip ? 8 : ROW) + 6);
      }
    }
    this.total = y;
  }

  // Once a frame: asking the canvas makes the browser lay the page out.
  measure() {
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.gutter = this.width < 560 ? NARROW_GUTTER : GUTTER;
  }

  x(ns) { return this.gutter + ((ns - this.view.start) / (this.view.end - this.view.start)) * (this.width - this.gutter); }
  ns(x) { return this.view.start + ((x - this.gutter) / (this.width - this.gutter)) * (this.view.end - this.view.start); }

  colours() {
    const { theme } = document.documentElement.dataset;
    if (this.colour && this.theme === theme) return this.colour;
    this.theme = theme;
    const style = getComputedStyle(this.canvas);
    const names = ["text", "muted", "line", "panel", "accent", "select", "active", "idle", "gil", "step", "mark", "hit", "api", "copy", "wait", "link"];
    return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  draw() {
    const { canvas, context: c, view } = this;
    const scale = devicePixelRatio || 1;
    this.measure();
    const { width: w, height: h } = this;
    if (!w || !h) return;
    if (canvas.width !== Math.round(w * scale) || canvas.height !== Math.round(h * scale)) {
      canvas.width = Math.round(w * scale);
      canvas.height = Math.round(h * scale);
    }
    c.setTransform(scale, 0, 0, scale, 0, 0);
    this.scroll = Math.max(0, Math.min(this.scroll, this.total + RULER - h));
    const colour = (this.colour = this.colours());
    this.dark = this.theme === "dark";
    this.matches = this.namesThatMatch(view.query.toLowerCase());
    c.fillStyle = colour.panel;
    c.fillRect(0, 0, w, h);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    this.hits = [];
    this.grid();
    c.save();
    c.beginPath();
    c.rect(0, RULER, w, h - RULER);
    c.clip();
    for (const lane of this.lanes) {
      const y = lane.y + RULER - this.scroll;
      if (y + lane.height < RULER || y > h) continue;
      this[lane.type](lane, y);
    }
    if (this.picked) arrows(this, ROW, RULER);
    c.restore();
    if (view.selection) {
      const [a, b] = view.selection.map((ns) => this.x(ns));
      c.fillStyle = colour.select;
      c.fillRect(Math.max(a, this.gutter), RULER, Math.max(b - Math.max(a, this.gutter), 0), h);
      c.fillStyle = colour.accent;
      for (const edge of [a, b]) if (edge >= this.gutter) c.fillRect(edge - 0.5, RULER, 1, h);
    }
  }

  grid() {
    const { context: c, colour, view } = this;
    const span = view.end - view.start;
    const rough = span / Math.max(2, (this.width - this.gutter) / 110);
    const base = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * base).find((n) => n >= rough);
    c.strokeStyle = colour.line;
    c.fillStyle = colour.muted;
    c.textAlign = "left";
    for (let at = Math.ceil(view.start / step) * step; at <= view.end; at += step) {
      const x = Math.round(this.x(at)) + 0.5;
      c.beginPath();
      c.moveTo(x, RULER - 6);
      c.lineTo(x, this.height);
      c.stroke();
      c.fillText(tick(at, step), x + 4, RULER / 2);
    }
  }

  label(text, y, strong, width = this.gutter) {
    const { context: c, colour } = this;
    c.fillStyle = strong ? colour.text : colour.muted;
    c.textAlign = "left";
    c.font = `${strong ? "600 " : ""}11px system-ui, sans-serif`;
    c.fillText(this.fit(text, width - 14), 8, y);
    c.font = "11px system-ui, sans-serif";
  }

  fit(text, width) {
    // Two fonts are in use; the bold one only for titles that no box has.
    let full = this.widths.get(text);
    if (full === undefined) {
      if (this.widths.size > 20000) this.widths.clear();
      this.widths.set(text, (full = this.context.measureText(text).width));
    }
    if (full <= width) return text;
    const letters = Math.floor((width / full) * text.length) - 1;
    return letters > 1 ? `${text.slice(0, letters)}…` : "";
  }

  group(lane, y) {
    const { context: c, colour } = this;
    c.fillStyle = colour.line;
    c.fillRect(0, y, this.width, 1);
    this.label(lane.title, y + lane.height / 2, true, this.width);
  }

  // `count` above one goes before the text, which is made only where it can be read. Work of a device has a look of its kind.
  block(x, y, width, height, fill, text, count, dim, kind = 0, full = 1) {
    const { context: c } = this;
    const left = Math.max(x, this.gutter);
    const wide = Math.max(x + width - left, 0.7);
    if (dim) c.globalAlpha = 0.22;
    let room = [y, height];
    if (kind > WORK) room = paintWork(c, kind, left, y, wide, height, fill, this.dark, full);
    else {
      c.fillStyle = fill;
      c.fillRect(left, y, Math.max(wide - (wide > 3 ? 0.6 : 0), 0.7), height);
    }
    if (room && wide > 28) {
      c.fillStyle = this.dark ? "#0b1020" : "#10182b";
      c.textAlign = "left";
      c.fillText(this.fit(count > 1 ? `${whole(count)} × ${text}` : text, wide - 8), left + 4, room[0] + room[1] / 2 + 0.5);
    }
    if (dim) c.globalAlpha = 1;
  }

  // Which names hold the searched text; null without a search.
  namesThatMatch(query) {
    if (!query) return null;
    if (this.searched !== query) {
      this.searched = query;
      this.searchedNames = this.data.names.map((name) => name.toLowerCase().includes(query));
    }
    return this.searchedNames;
  }

  // Walks the boxes of a lane that the window shows. Those at least a pixel wide go to `wide` by index; thinner
  // neighbours of a row to `thin` as one run: { start, end, longest, count, busy }.
  gather({ start, dur, depth, count }, rows, longest, alone, wide, thin, full) {
    const { view } = this;
    const perPixel = (view.end - view.start) / (this.width - this.gutter);
    const runs = new Array(rows).fill(null);
    // Boxes are sorted by start; a long one may begin before the window, so step back by the longest.
    for (let i = lowerBound(start, view.start - longest); i < start.length && start[i] <= view.end; i++) {
      const begin = start[i];
      const end = begin + dur[i];
      if (end < view.start) continue;
      if (dur[i] >= perPixel || alone?.(i)) {
        wide(i);
        continue;
      }
      const row = depth ? depth[i] : 0;
      const run = runs[row];
      const busy = full?.[i] ? (dur[i] * full[i]) / 1000 : dur[i];
      const cell = Math.floor(begin / (perPixel * GATHER));
      if (run && run.cell === cell && begin - run.end < perPixel) {
        run.end = Math.max(run.end, end);
        run.busy += busy;
        run.count += count ? count[i] : 1;
        if (dur[i] > dur[run.longest]) run.longest = i;
      } else {
        if (run) thin(run);
        runs[row] = { cell, start: begin, end, longest: i, count: count ? count[i] : 1, busy };
      }
    }
    for (const run of runs) if (run) thin(run);
  }

  steps(lane, y) {
    const { steps } = this.data;
    this.label(lane.title, y + lane.height / 2, true);
    const paint = (start, end, index, count) => {
      const x = this.x(start);
      const width = this.x(end) - x;
      if (x + width < this.gutter) return;
      const text = width > 28 && count === 1 ? `${steps.number(index) + 1} · ${time(steps.dur[index])}` : "";
      this.block(x, y + 3, width, ROW - 2, this.colour.step, text, 1, false);
      this.hits.push([x, y + 3, width, ROW - 2, { type: "step", index, start: steps.start[index], dur: steps.dur[index] }]);
    };
    this.gather(steps, 1, this.longestStep, null,
      (i) => paint(steps.start[i], steps.start[i] + steps.dur[i], i, 1),
      (run) => paint(run.start, run.end, run.longest, run.count));
  }

  counter(lane, y) {
    const { context: c, colour, view } = this;
    const { time: times, value, title, unit } = lane.counter;
    this.label(title, y + 14, false);
    const from = Math.max(0, lowerBound(times, view.start) - 1);
    const to = Math.min(times.length, lowerBound(times, view.end) + 1);
    const highest = (lane.counter.highest ??= value.reduce((a, b) => Math.max(a, b), 0));
    const bits = unit === "reasons";
    const most = bits ? 1 : Math.max(lane.counter.top ?? highest, 1e-9);
    const cut = lane.counter.top < highest;
    const of = lane.counter.top && unit !== "%" ? `${cut ? ", drawn to" : " of"} ${amount(lane.counter.top, unit)}` : "";
    c.fillStyle = colour.muted;
    c.fillText(this.fit(bits ? reasons(value.reduce((a, b) => a | b, 0)) : `max ${amount(highest, unit)}${of}`, this.gutter - 14), 8, y + 29);
    if (to <= from) return;
    c.save();
    c.beginPath();
    c.rect(this.gutter, y, this.width - this.gutter, COUNTER);
    c.clip();
    const bottom = y + COUNTER - 4;
    c.beginPath();
    c.moveTo(this.x(times[from]), bottom);
    // One point a pixel: the largest value, so that no peak is hidden by the zoom.
    let pixel = null;
    let peak = 0;
    for (let i = from; i < to; i++) {
      const x = Math.round(this.x(times[i]));
      if (x !== pixel && pixel !== null) {
        const tall = bottom - (peak / most) * (COUNTER - 10);
        c.lineTo(pixel, tall);
        // What is known for a stretch is flat until the next.
        if (lane.counter.held) c.lineTo(x, tall);
        peak = 0;
      }
      pixel = x;
      peak = Math.max(peak, bits ? Number(value[i] > 0) : value[i]);
    }
    c.lineTo(pixel, bottom - (peak / most) * (COUNTER - 10));
    c.strokeStyle = colour.accent;
    c.lineWidth = 1.3;
    c.stroke();
    c.lineWidth = 1;
    c.lineTo(pixel, bottom);
    c.globalAlpha = 0.18;
    c.fillStyle = colour.accent;
    c.fill();
    c.restore();
    this.hits.push([this.gutter, y, this.width, COUNTER, { type: "counter", counter: lane.counter }]);
  }

  track(lane, y) {
    const { view, colour, context: c } = this;
    const { track, index } = lane;
    this.label(lane.title, y + 10, false);
    let top = y + 2;
    if (lane.strip) {
      this.strip(index, top);
      top += lane.strip;
    }
    if (lane.marks) {
      const { time: times, name } = track.marks;
      for (let i = lowerBound(times, view.start); i < times.length && times[i] <= view.end; i++) {
        const x = this.x(times[i]);
        c.fillStyle = colour.mark;
        c.beginPath();
        c.moveTo(x, top);
        c.lineTo(x + 4, top + 8);
        c.lineTo(x - 4, top + 8);
        c.fill();
        this.hits.push([x - 5, top, 10, 9, { type: "mark", name: this.data.names[name[i]], start: times[i] }]);
      }
      top += lane.marks;
    }
    const s = track.slices;
    const { matches } = this;
    const paint = (i, start, end, count, full) => {
      const at = top + s.depth[i] * ROW;
      if (at > this.height || at + ROW < RULER) return;
      const x = this.x(start);
      const width = this.x(end) - x || 0.7;
      const found = matches?.[s.name[i]];
      const name = this.data.names[s.name[i]];
      const kind = s.kind[i];
      const fill = found ? colour.hit : kind === WAIT ? colour.wait : kind > WORK + 1 ? colour.copy : hue(s.name[i], this.dark, count > 1);
      this.block(x, at, width, ROW - 2, fill, name, count, matches && !found, kind, full);
      if (width > 1) this.hits.push([x, at, width, ROW - 2, { type: "slice", name, kind: KINDS[kind] ?? "slice", start, dur: end - start, count, full, track, index, i }]);
    };
    this.gather(s, track.rows, this.longest[index], matches && ((i) => matches[s.name[i]]),
      (i) => paint(i, s.start[i], s.start[i] + s.dur[i], s.count[i], (track.launched?.busy[i] || 1000) / 1000),
      (run) => paint(run.longest, run.start, run.end, run.count, track.launched ? Math.min(1, run.busy / Math.max(run.end - run.start, 1)) : 1),
      track.launched?.busy);
  }

  strip(index, y) {
    const { context: c, colour, view } = this;
    const { time: times, state, stack } = this.data.samples;
    const of = this.samplesOf[index];
    const width = Math.max(1.2, (this.data.samples.period_ns / (view.end - view.start)) * (this.width - this.gutter));
    let low = 0;
    let high = of.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[of[middle]] < view.start) low = middle + 1;
      else high = middle;
    }
    // Equal neighbours are one rectangle; within a pixel the busier state is shown.
    let run = null;
    const paint = () => {
      c.fillStyle = run.state & 2 ? colour.gil : run.state & 1 ? colour.active : colour.idle;
      const tall = run.state & 1 ? STRIP : 3;
      c.fillRect(run.left, y + STRIP - tall, run.right - run.left, tall);
    };
    for (let i = low; i < of.length && times[of[i]] <= view.end; i++) {
      const x = this.x(times[of[i]]);
      const now = state[of[i]] & 3;
      if (run && now === run.state && x <= run.right + 0.5) run.right = x + width;
      else if (run && x - run.left < 1) {
        run.state = Math.max(run.state, now);
        run.right = x + width;
      } else {
        if (run) paint();
        run = { left: x, right: x + width, state: now };
      }
    }
    if (run) paint();
    this.hits.push([this.gutter, y, this.width, STRIP, { type: "strip", index, of, stack }]);
  }

  find(x, y) {
    for (let i = this.hits.length - 1; i >= 0; i--) {
      const [left, top, width, height, what] = this.hits[i];
      if (x >= left - 1 && x <= left + Math.max(width, 3) && y >= top && y <= top + height) return what;
    }
    return null;
  }

  reveal(track) {
    const lane = this.lanes.find((lane) => lane.type === "track" && lane.index === track);
    if (lane) this.scroll = Math.max(0, lane.y - 40);
    this.draw();
  }
}
