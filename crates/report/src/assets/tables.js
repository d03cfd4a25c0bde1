// Tables that sort and filter, and the small lists of the report. Text goes in by textContent only:
// whatever a name contains, it stays text.

import { percent, time } from "./data.js";

export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// columns: [{title, get(row), show?(row) → text or node, number?: bool, whole?: never broken, bar?(row) → 0..1}]
export function table(host, columns, rows, { filter, limit = 60, onPick, empty = "Nothing recorded." } = {}) {
  let order = columns.findIndex((column) => column.number);
  let down = true;
  let shown = limit;
  let query = "";
  const draw = () => {
    const wanted = query.toLowerCase();
    const kept = rows.filter((row) => !wanted || columns.some((column) => String(column.get(row)).toLowerCase().includes(wanted)));
    if (order >= 0) {
      const { get, number } = columns[order];
      kept.sort((a, b) => (number ? get(a) - get(b) : String(get(a)).localeCompare(String(get(b)))) * (down ? -1 : 1));
    }
    const head = element("tr", {}, ...columns.map((column, index) => {
      const label = `${column.title}${index === order ? (down ? " ▾" : " ▴") : ""}`;
      const sort = () => {
        down = index === order ? !down : Boolean(column.number);
        order = index;
        draw();
      };
      const direction = index === order ? (down ? "descending" : "ascending") : "none";
      return element("th", { class: column.number ? "number" : "", "aria-sort": direction }, element("button", { type: "button", onclick: sort }, label));
    }));
    const body = kept.slice(0, shown).map((row) => element("tr", { class: onPick ? "pick" : "", onclick: onPick ? () => onPick(row) : undefined, ...(onPick ? {} : {}) },
      ...columns.map((column) => {
        const cell = element("td", { class: column.number ? "number" : column.whole ? "whole" : "" }, column.show ? column.show(row) : String(column.get(row)));
        if (column.bar) cell.style.setProperty("--bar", `${Math.min(100, 100 * column.bar(row))}%`);
        if (column.bar) cell.classList.add("bar");
        return cell;
      })));
    const more = kept.length > shown
      ? element("button", { type: "button", class: "more", onclick: () => { shown *= 4; draw(); } }, `${(kept.length - shown).toLocaleString("en")} more`)
      : null;
    const content = kept.length
      ? element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)))
      : element("p", { class: "muted" }, rows.length ? "Nothing matches the filter." : empty);
    host.replaceChildren(...[content, more].filter(Boolean));
  };
  filter?.addEventListener("input", () => {
    query = filter.value;
    draw();
  });
  draw();
  return { update(next) { rows = next; draw(); } };
}

export function place(file, line) {
  return file ? `${file}${line ? `:${line}` : ""}` : "";
}

// What a range holds: slices of threads, and samples, by name.
export function contents(data, range) {
  const slices = new Map();
  for (const track of data.tracks) {
    if (track.launched) continue;
    const s = track.slices;
    for (let i = 0; i < s.start.length && s.start[i] <= range[1]; i++) {
      const end = Math.min(s.start[i] + s.dur[i], range[1]);
      const inside = end - Math.max(s.start[i], range[0]);
      if (inside < 0 || (inside === 0 && s.dur[i] > 0)) continue;
      const row = slices.get(s.name[i]) ?? { name: s.name[i], count: 0, total: 0 };
      row.count += s.count[i];
      row.total += inside;
      slices.set(s.name[i], row);
    }
  }
  const functions = new Map();
  let samples = 0;
  const { time: times, stack, weight, state } = data.samples;
  for (let i = 0; i < times.length; i++) {
    if (times[i] < range[0] || times[i] > range[1] || !(state[i] & 1)) continue;
    samples += weight[i];
    const name = data.stacks.name[stack[i]];
    functions.set(name, (functions.get(name) ?? 0) + weight[i]);
  }
  const top = [...functions].map(([name, count]) => ({ name, count })).sort((a, b) => b.count - a.count);
  return { slices: [...slices.values()].sort((a, b) => b.total - a.total), functions: top, samples };
}

// A row with a bar from `from` to `to`, as shares of the whole.
function bar(label, where, from, to, kind, numbers, indent = 0) {
  const fill = element("span", { class: `fill ${kind}` });
  fill.style.marginLeft = `${Math.min(100 * from, 99.5)}%`;
  fill.style.width = `${Math.max(100 * Math.min(to - from, 1 - from), 0.4)}%`;
  const what = element("span", { class: "what" }, label, where ? element("small", {}, where) : null);
  what.style.paddingLeft = `${indent * 14}px`;
  return element("div", { class: "part" }, what, element("span", { class: "track" }, fill),
    ...numbers.map((text, index) => element("span", { class: index ? "number muted" : "number" }, text)));
}

// When the named stretches of a step begin, and how long they take.
export function phases(host, rows, whole) {
  host.replaceChildren(...rows.map((row) => bar(row.label, "", row.offset / whole, (row.offset + row.ns) / whole, "phase",
    [time(row.ns), percent(row.ns, whole)], row.depth - 1)));
}

// What a step's time is made of: the parts one after another, so that they visibly add up.
export function waterfall(host, parts) {
  const whole = parts.reduce((sum, part) => sum + part.ns, 0);
  let before = 0;
  host.replaceChildren(...parts.map((part) => {
    const from = before / whole;
    before += part.ns;
    return bar(part.label, part.where, from, before / whole, part.kind, [time(part.ns), percent(part.ns, whole)]);
  }));
}
