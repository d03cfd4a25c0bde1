// What the reader is looking at: the visible range, the selected range, the search. One object that the timeline,
// the flame graph, the tables and the address bar share; each listens and draws itself anew.

export class View {
  constructor(duration) {
    this.duration = Math.max(duration, 1);
    this.start = 0;
    this.end = this.duration;
    this.selection = null;
    this.query = "";
    this.listeners = [];
    this.pending = false;
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  // Changes are gathered and drawn once a frame.
  changed(what) {
    this.what = { ...(this.what ?? {}), [what]: true };
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      const changes = this.what;
      this.what = null;
      this.pending = false;
      for (const listener of this.listeners) listener(changes);
    });
  }

  show(start, end) {
    const least = Math.min(200, this.duration);
    let span = Math.min(Math.max(end - start, least), this.duration * 1.02);
    const middle = (start + end) / 2;
    const margin = this.duration * 0.01;
    this.start = Math.min(Math.max(middle - span / 2, -margin), this.duration + margin - span);
    this.end = this.start + span;
    this.changed("range");
  }

  zoom(factor, at = (this.start + this.end) / 2) {
    this.show(at - (at - this.start) * factor, at + (this.end - at) * factor);
  }

  pan(share) {
    const step = (this.end - this.start) * share;
    this.show(this.start + step, this.end + step);
  }

  select(range) {
    const before = this.selection;
    this.selection = range && range[1] > range[0] ? [Math.max(0, range[0]), Math.min(this.duration, range[1])] : null;
    if (before || this.selection) this.changed("selection");
  }

  search(query) {
    this.query = query;
    this.changed("query");
  }

  // The address bar restores a view, so that a link says "look here".
  toHash() {
    const parts = [`v=${Math.round(this.start)},${Math.round(this.end)}`];
    if (this.selection) parts.push(`s=${this.selection.map(Math.round)}`);
    if (this.query) parts.push(`q=${encodeURIComponent(this.query)}`);
    return `#${parts.join("&")}`;
  }

  fromHash(hash) {
    const parts = new URLSearchParams(hash.replace(/^#/, ""));
    const range = (key) => {
      const numbers = (parts.get(key) ?? "").split(",").map(Number);
      return numbers.length === 2 && numbers.every(Number.isFinite) && numbers[1] > numbers[0] ? numbers : null;
    };
    const shown = range("v");
    if (shown) this.show(...shown);
    this.select(range("s"));
    this.query = parts.get("q") ?? "";
    this.changed("query");
    return Boolean(shown);
  }
}
