// The flame graph of the samples, for everything or for the selected range, upright or inverted.
// Builds its tree from the stacks that the samples name; draws on one canvas.

import { hue } from "./colours.js";
import { percent } from "./data.js";

const FRAME_ROW = 19;

export function buildTree(data, accept, inverted) {
  const root = { name: -1, line: 0, value: 0, self: 0, children: new Map() };
  const { stacks, samples } = data;
  // Samples share stacks: first how often each was seen, then the tree, so that the work is that of the stacks.
  const seen = new Float64Array(stacks.parent.length);
  for (let i = 0; i < samples.stack.length; i++) if (accept(i)) seen[samples.stack[i]] += samples.weight[i];
  const grow = (node, frame, weight) => {
    const name = stacks.name[frame];
    let child = node.children.get(name);
    if (!child) node.children.set(name, (child = { name, line: stacks.line[frame], value: 0, self: 0, children: new Map() }));
    child.value += weight;
    return child;
  };
  root.value = seen.reduce((sum, weight) => sum + weight, 0);
  if (inverted) {
    for (let leaf = 1; leaf < seen.length; leaf++) {
      if (!seen[leaf]) continue;
      let node = root;
      for (let at = leaf; at > 0; at = stacks.parent[at]) node = grow(node, at, seen[leaf]);
      node.self += seen[leaf];
    }
  } else {
    // Parents stand before their children.
    const total = seen.slice();
    for (let frame = total.length - 1; frame > 0; frame--) total[stacks.parent[frame]] += total[frame];
    const nodes = [root];
    for (let frame = 1; frame < total.length; frame++) {
      if (!total[frame]) continue;
      nodes[frame] = grow(nodes[stacks.parent[frame]], frame, total[frame]);
      nodes[frame].self += seen[frame];
    }
  }
  root.self = seen[0] ?? 0;
  return root;
}

export class FlameView {
  constructor(canvas, data, view, onHover, options) {
    Object.assign(this, { canvas, data, view, onHover, options });
    this.context = canvas.getContext("2d");
    this.focus = [];
    this.rebuild();
    new ResizeObserver(() => this.draw()).observe(canvas);
    view.listen((changes) => (changes.selection ? this.rebuild() : changes.query && this.draw()));
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => onHover(null));
    canvas.addEventListener("click", (event) => this.click(event));
  }

  rebuild() {
    const { samples } = this.data;
    const range = this.view.selection;
    const idle = this.options.idle();
    const accept = (i) => (idle || samples.state[i] & 1) && (!range || (samples.time[i] >= range[0] && samples.time[i] <= range[1]));
    this.root = buildTree(this.data, accept, this.options.inverted());
    this.focus = [];
    this.draw();
  }

  title(node) {
    return node.name < 0 ? "all" : this.data.names[node.name];
  }

  draw() {
    const { canvas, context: c } = this;
    const width = canvas.clientWidth;
    if (!width) return;
    const depth = (node) => 1 + Math.max(0, ...[...node.children.values()].map(depth));
    const top = this.focus[this.focus.length - 1] ?? this.root;
    const rows = this.focus.length + depth(top);
    const height = Math.max(rows * FRAME_ROW + 4, 60);
    canvas.style.height = `${height}px`;
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, width, height);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    this.hits = [];
    this.dark = document.documentElement.dataset.theme === "dark";
    const style = getComputedStyle(canvas);
    this.hit = style.getPropertyValue("--hit").trim();
    if (!this.root.value) {
      c.fillStyle = style.getPropertyValue("--muted").trim();
      c.fillText("No samples here.", 8, 24);
      return;
    }
    this.focus.slice(0, -1).forEach((node, row) => this.box(node, 0, row * FRAME_ROW, width, true));
    this.branch(top, 0, Math.max(this.focus.length - 1, 0), width);
  }

  branch(node, x, row, width) {
    this.box(node, x, row * FRAME_ROW, width, false);
    let left = x;
    const children = [...node.children.values()].sort((a, b) => b.value - a.value);
    for (const child of children) {
      const wide = (child.value / node.value) * width;
      if (wide < 0.6) continue;
      this.branch(child, left, row + 1, wide);
      left += wide;
    }
  }

  box(node, x, y, width, ancestor) {
    const c = this.context;
    const title = this.title(node);
    const query = this.view.query.toLowerCase();
    const found = query && title.toLowerCase().includes(query);
    c.globalAlpha = ancestor ? 0.55 : query && !found ? 0.3 : 1;
    c.fillStyle = found ? this.hit : node.name < 0 ? hue(0, this.dark, true) : hue(node.name, this.dark);
    c.fillRect(x + 0.4, y + 0.5, Math.max(width - 0.8, 0.6), FRAME_ROW - 2);
    if (width > 30) {
      c.fillStyle = "#10182b";
      const letters = Math.floor((width - 8) / 6);
      c.fillText(title.length > letters ? `${title.slice(0, Math.max(letters - 1, 0))}…` : title, x + 5, y + FRAME_ROW / 2);
    }
    c.globalAlpha = 1;
    this.hits.push([x, y, width, node]);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return this.hits.find(([left, top, width]) => x >= left && x <= left + width && y >= top && y < top + FRAME_ROW)?.[3];
  }

  hover(event) {
    const node = this.at(event);
    if (!node) return this.onHover(null);
    const file = node.name >= 0 ? this.data.files[node.name] : "";
    const lines = [this.title(node), file ? `${file}:${node.line}` : "", `${percent(node.value, this.root.value)} of the samples, ${percent(node.self, this.root.value)} in the function itself`];
    this.onHover({ type: "text", lines: lines.filter(Boolean) }, event);
  }

  click(event) {
    const node = this.at(event);
    if (!node) return;
    const path = [];
    const walk = (at, trail) => {
      if (at === node) return path.push(...trail, at);
      for (const child of at.children.values()) if (walk(child, [...trail, at])) return true;
      return 0;
    };
    walk(this.root, []);
    this.focus = node === this.root ? [] : path;
    this.draw();
  }
}
