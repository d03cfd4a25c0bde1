// Decodes the packed columns of the report's payload. Numbers are LEB128 varints in base64;
// "delta" columns hold zigzag differences. Times are nanoseconds since the start of the trace.

export function unpack(text, delta = false) {
  const raw = atob(text);
  // Each number ends with the one byte of it that is below 128.
  let count = 0;
  for (let i = 0; i < raw.length; i++) if (raw.charCodeAt(i) < 128) count++;
  const out = new Float64Array(count);
  let at = 0;
  let last = 0;
  for (let place = 0; place < count; place++) {
    let value = 0;
    let scale = 1;
    let byte;
    do {
      byte = raw.charCodeAt(at++);
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte & 128);
    if (delta) {
      last += value % 2 ? -(value + 1) / 2 : value / 2;
      out[place] = last;
    } else {
      out[place] = value;
    }
  }
  return out;
}

export function load() {
  const data = JSON.parse(document.getElementById("payload").textContent);
  for (const track of data.tracks) {
    const s = track.slices;
    s.start = unpack(s.start, true);
    s.dur = unpack(s.dur);
    s.depth = unpack(s.depth);
    s.name = unpack(s.name);
    s.kind = unpack(s.kind);
    s.count = unpack(s.count);
    track.rows = 1 + s.depth.reduce((most, depth) => Math.max(most, depth), -1);
    track.marks.time = unpack(track.marks.time, true);
    track.marks.name = unpack(track.marks.name);
    if (track.launched) for (const column of ["lag", "track", "busy"]) track.launched[column] = unpack(track.launched[column]);
    const waits = track.launched?.waits;
    if (waits) for (const column in waits) waits[column] = unpack(waits[column], column === "place" || column === "start");
  }
  for (const device of data.devices) {
    device.busy = unpack(device.busy);
    device.counts = unpack(device.counts);
    device.times = unpack(device.times);
  }
  for (const { per_step } of data.gpu?.devices ?? []) {
    per_step.number = unpack(per_step.number, true);
    per_step.busy = unpack(per_step.busy);
  }
  for (const counter of data.counters) {
    counter.time = unpack(counter.time, true);
    counter.value = unpack(counter.value, true);
  }
  const { stacks, samples, steps } = data;
  stacks.parent = unpack(stacks.parent);
  stacks.name = unpack(stacks.name);
  stacks.line = unpack(stacks.line);
  samples.time = unpack(samples.time, true);
  samples.track = unpack(samples.track);
  samples.stack = unpack(samples.stack);
  samples.state = unpack(samples.state);
  samples.weight = unpack(samples.weight);
  steps.start = unpack(steps.start, true);
  steps.dur = unpack(steps.dur);
  steps.warmup = unpack(steps.warmup);
  // Of very many, some stand for their neighbours, each with its own number.
  const numbers = unpack(steps.number, true);
  steps.number = (place) => numbers[place] ?? place;
  return data;
}

// First index whose value is at least `wanted`, in a sorted column.
export function lowerBound(column, wanted) {
  let low = 0;
  let high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Numbers read as in the other reports: `analysis::phrase` has the same rules, and a test compares the two.
const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
const SECOND = 1e9;
const two = (number) => String(number).padStart(2, "0");

// Of two decimals that are as near, the even one, where toFixed takes the larger. An eighth is the smallest part that can lie between two.
function fixed(value, decimals) {
  const scaled = value * 10 ** decimals;
  const between = (value * 8) % 1 === 0 && Math.abs(scaled % 1) === 0.5;
  return (between ? (2 * Math.round(scaled / 2)) / 10 ** decimals : value).toFixed(decimals);
}

// Three digits are as many as anybody compares.
const three = (value, unit) => `${fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${unit}`;

export function time(ns) {
  if (ns < 0) return `−${time(-ns)}`;
  const seconds = Math.floor(ns / SECOND);
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`;
  if (seconds >= 600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  for (const [unit, scale] of UNITS.slice(0, 3)) {
    // What would round to a thousand is one of the next unit.
    if (ns >= (scale === 1e3 ? scale : 0.9995 * scale)) return three(ns / scale, unit);
  }
  return `${Math.round(ns)} ns`;
}

// A time on a ruler whose marks are `step` apart: with as many digits as tell neighbours apart.
export function tick(ns, step) {
  if (ns === 0) return "0";
  const [unit, scale] = UNITS.find(([, scale]) => ns >= scale) ?? ["ns", 1];
  const value = ns / scale;
  const digits = Math.ceil(Math.log10(scale / step) - 1e-9);
  const usual = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return digits > usual && ns < 600 * SECOND ? `${value.toFixed(digits)} ${unit}` : time(ns);
}

// A formatter is dear to make; toLocaleString makes one each time.
const english = new Intl.NumberFormat("en");
export const whole = (count) => english.format(count);

export function amount(value, unit) {
  if (unit === "ns") return time(value);
  if (unit === "bytes") {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let power = 0;
    while (value >= 999.5 && power < units.length - 1) {
      value /= 1024;
      power++;
    }
    return power === 0 ? `${Math.round(value)} B` : three(value, units[power]);
  }
  if (unit === "bytes/s") return `${amount(value, "bytes")}/s`;
  if (unit === "%") return `${value.toFixed(1)} %`;
  return `${whole(Number(value.toFixed(2)))}${unit ? ` ${unit}` : ""}`;
}

// Only what was counted is certain; an estimate never rounds up to it.
export const sure = (confidence) => (confidence < 1 && confidence >= 0.995 ? "over 99 %" : `${(confidence * 100).toFixed(0)} %`);

export function percent(part, whole) {
  if (whole <= 0) return "–";
  const share = (100 * part) / whole;
  return part > 0 && share < 0.1 ? "<0.1 %" : `${fixed(share, 1)} %`;
}

// What the lane of steps is called; how many of how many it has, where that is not all.
export const stepsTitle = (steps) => (steps.start.length < steps.all ? `${steps.name}: ${whole(steps.start.length)} of ${whole(steps.all)}` : `step: ${steps.name}`);

export const counted = (count, one, many = `${one}s`) => `${whole(count)} ${count === 1 ? one : many}`;
