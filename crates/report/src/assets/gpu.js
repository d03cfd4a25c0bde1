// Devices: what their work looks like on the timeline, also without colour, and what a range holds of it.

export const WORK = 20;
export const WAIT = 24;
export const KINDS = {
  1: "scope", 2: "step", 4: "call", 5: "c-call", 6: "gc pause", 7: "API call", 8: "NVTX range", 9: "layer", 10: "CUPTI overhead",
  21: "kernel", 22: "copy", 23: "memset", 24: "wait", 25: "migration",
};
export const plural = (kind) => (kind === "copy" ? "copies" : `${kind}s`);

// Height and texture tell kinds of work apart: kernels are full, copies striped and lower, memsets dotted and lower still,
// waits hollow. `top` and `height` are shares of the row.
const LOOKS = {
  21: { top: 0, height: 1, texture: null },
  22: { top: 0.18, height: 0.82, texture: "stripes" },
  23: { top: 0.4, height: 0.6, texture: "dots" },
  24: { top: 0.3, height: 0.4, texture: "hollow" },
  25: { top: 0.18, height: 0.82, texture: "bars" },
};

const textures = new Map();
function texture(context, name, ink) {
  const key = name + ink;
  if (!textures.has(key)) {
    const size = 6;
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const c = tile.getContext("2d");
    c.strokeStyle = c.fillStyle = ink;
    c.lineWidth = 1.4;
    c.beginPath();
    if (name === "stripes") for (const shift of [-size, 0, size]) { c.moveTo(shift, size); c.lineTo(shift + size, 0); }
    if (name === "bars") { c.moveTo(1, 0); c.lineTo(1, size); }
    if (name === "dots") c.fillRect(1, 1, 2, 2);
    c.stroke();
    textures.set(key, context.createPattern(tile, "repeat"));
  }
  return textures.get(key);
}

// Paints a piece of work and gives the part of the row that its text may use, or null where it has no room for text.
// A box that stands for several is as full as they make it busy.
export function paintWork(c, kind, x, y, width, height, fill, dark, full) {
  const look = LOOKS[kind] ?? LOOKS[21];
  const [top, tall] = [y + look.top * height, look.height * height];
  const wide = Math.max(width - (width > 3 ? 0.6 : 0), 0.7);
  if (look.texture === "hollow") {
    c.strokeStyle = fill;
    c.lineWidth = 1.2;
    if (wide > 4) {
      c.setLineDash([3, 2]);
      c.strokeRect(x + 0.6, top, wide - 1.2, tall);
      c.setLineDash([]);
    } else {
      c.fillStyle = fill;
      c.fillRect(x, top + tall / 2 - 0.7, wide, 1.4);
    }
    c.lineWidth = 1;
    return null;
  }
  c.fillStyle = fill;
  if (full < 1) {
    const before = c.globalAlpha;
    c.globalAlpha = before * 0.4;
    c.fillRect(x, top, wide, tall);
    c.globalAlpha = before;
    c.fillRect(x, top + tall * (1 - full), wide, tall * full);
  } else c.fillRect(x, top, wide, tall);
  if (look.texture && wide > 2) {
    c.fillStyle = texture(c, look.texture, dark ? "#0b102080" : "#10182b59");
    c.fillRect(x, top, wide, tall);
  }
  return look.texture === "dots" ? null : [top, tall];
}

// What the devices did in a range: per device the busy time as a union, and its kernels. Exact where every piece in the
// range is drawn by itself; else from cells, whose edges are shared out.
export function devicesIn(data, range) {
  return data.devices.map((device, index) => {
    const tracks = data.tracks.filter((track) => track.device === index);
    return { device, ...(exactly(tracks, range) ?? fromCells(device, range)) };
  });
}

function exactly(tracks, [from, to]) {
  const spans = [];
  const kernels = new Map();
  for (const { slices: s } of tracks) {
    for (let i = 0; i < s.start.length && s.start[i] < to; i++) {
      const [start, end] = [Math.max(s.start[i], from), Math.min(s.start[i] + s.dur[i], to)];
      if (end <= start) continue;
      if (s.count[i] > 1) return null;
      if (s.kind[i] === WAIT) continue;
      spans.push([start, end]);
      if (s.kind[i] !== 21) continue;
      const row = kernels.get(s.name[i]) ?? { name: s.name[i], count: 0, total: 0 };
      row.count++;
      row.total += end - start;
      kernels.set(s.name[i], row);
    }
  }
  spans.sort((a, b) => a[0] - b[0]);
  let busy = 0;
  let done = from;
  for (const [start, end] of spans) {
    busy += Math.max(end - Math.max(start, done), 0);
    done = Math.max(done, end);
  }
  return { busy, exact: true, kernels: [...kernels.values()].sort((a, b) => b.total - a.total) };
}

function fromCells(device, [from, to]) {
  // How much of cell `place` lies in the range.
  const sum = (column, offset, width, cell) => {
    let total = 0;
    const last = Math.min(width - 1, Math.floor(to / cell));
    for (let place = Math.max(0, Math.floor(from / cell)); place <= last; place++) {
      const inside = Math.min(to, (place + 1) * cell) - Math.max(from, place * cell);
      total += column[offset + place] * Math.max(0, Math.min(1, inside / cell));
    }
    return total;
  };
  const busy = sum(device.busy, 0, device.busy.length, device.busy_cell_ns);
  const rows = device.kernels.length + 1;
  const width = device.counts.length / rows;
  const kernels = [...device.kernels, -1].map((name, row) => ({
    name,
    count: Math.round(sum(device.counts, row * width, width, device.kernel_cell_ns)),
    total: sum(device.times, row * width, width, device.kernel_cell_ns),
  }));
  return { busy, exact: false, kernels: kernels.filter((row) => row.total > 0).sort((a, b) => b.total - a.total) };
}

// NVML's reasons for clocks below what was asked for, by bit.
const REASONS = { 2: "set by the user", 4: "power cap", 8: "hardware slowdown", 16: "sync boost", 32: "hot", 64: "hardware: hot", 128: "power brake", 256: "display" };
export const reasons = (bits) => Object.entries(REASONS).filter(([bit]) => bits & Number(bit)).map(([, word]) => word).join(", ") || (bits ? "other" : "none");
