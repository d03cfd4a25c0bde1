// Which call asked for which work, what a wait waited for, and the arrows between them. Boxes that stand for several pieces have no links: zooming
// does not part them, the exports do.

import { lowerBound } from "./data.js";
import { WAIT } from "./gpu.js";

// Which boxes a call asked for, and the call of a box. Keys are track and begin of the call, in nanoseconds: exact.
export class Links {
  constructor(data) {
    this.data = data;
    this.streams = data.tracks.map((track, index) => (track.launched ? index : -1)).filter((index) => index >= 0);
  }

  // { track, start } of the call that asked for box `i` of a stream's track.
  caller(track, i) {
    const { launched, slices } = this.data.tracks[track];
    if (!launched?.track[i]) return null;
    return { track: launched.track[i] - 1, start: slices.start[i] - (launched.lag[i] - 1) };
  }

  // { track, i, name, start, dur } of the work that box `i` of a stream's track waited for; box `i` of that track may hold more.
  waitedFor(track, i) {
    const waits = this.data.tracks[track].launched?.waits;
    const place = waits ? lowerBound(waits.place, i) : 0;
    if (waits?.place[place] !== i) return null;
    const [of, name, start, dur] = ["track", "name", "start", "dur"].map((column) => waits[column][place]);
    const { slices } = this.data.tracks[of];
    // The last box that holds its begin: its own, or one that stands for it and its neighbours.
    let box = lowerBound(slices.start, start + 1) - 1;
    const holds = () => slices.kind[box] !== WAIT && slices.start[box] + slices.dur[box] >= start && (slices.count[box] > 1 || slices.start[box] === start);
    for (let steps = 0; box >= 0 && steps < 4000 && !holds(); steps++) box--;
    return { track: of, i: box, name, start, dur };
  }

  // The work that was asked for on a thread between two times, at most `most` of it, and how much there is; waits apart.
  launchedIn(thread, start, end, most) {
    const found = [];
    const waits = [];
    let count = 0;
    let time = 0;
    for (const track of this.streams) {
      const { slices } = this.data.tracks[track];
      // Work starts after its call.
      for (let i = lowerBound(slices.start, start); i < slices.start.length; i++) {
        const caller = this.caller(track, i);
        if (!caller || caller.track !== thread || caller.start < start || caller.start > end) continue;
        if (slices.kind[i] === WAIT) {
          if (waits.length < most) waits.push({ track, i });
          continue;
        }
        count++;
        time += slices.dur[i];
        if (found.length < most) found.push({ track, i });
      }
    }
    return { found, count, time, waits };
  }

  // The box of a thread's track in which a call lies: the innermost one, where it is drawn.
  boxOf(track, start) {
    const { slices } = this.data.tracks[track];
    let best = -1;
    for (let i = lowerBound(slices.start, start + 1) - 1, steps = 0; i >= 0 && steps < 4000; i--, steps++) {
      if (slices.start[i] + slices.dur[i] >= start && (best < 0 || slices.depth[i] > slices.depth[best])) best = i;
      if (best >= 0 && slices.depth[best] > 0 && slices.start[i] < slices.start[best]) break;
    }
    return best;
  }
}

// More arrows from one slice would hide what they point at.
const MOST_ARROWS = 60;

// Where box `i` of a track stands.
function where(timeline, track, i, row, ruler) {
  const lane = timeline.lanes.find((lane) => lane.type === "track" && lane.index === track);
  const s = timeline.data.tracks[track].slices;
  if (!lane || i < 0) return null;
  const y = lane.y + ruler - timeline.scroll + 2 + lane.strip + lane.marks + s.depth[i] * row;
  return { x: timeline.x(s.start[i]), end: timeline.x(s.start[i] + s.dur[i]), y: y + (row - 2) / 2 };
}

// From the picked call (or scope) to the work that was asked for in it, or from the picked work back to its call; from a wait to
// the end of what it waited for.
export function arrows(timeline, row, ruler) {
  const { context: c, colour, links } = timeline;
  const { index, i, start, dur, count } = timeline.picked;
  const at = (track, i) => where(timeline, track, i, row, ruler);
  c.save();
  c.beginPath();
  c.rect(timeline.gutter, ruler, timeline.width, timeline.height);
  c.clip();
  c.strokeStyle = c.fillStyle = colour.link;
  c.lineWidth = 1.5;
  const own = at(index, i);
  if (own && count === 1) c.strokeRect(own.x, own.y - row / 2 + 1, Math.max(own.end - own.x, 1.5), row - 2);
  const arrow = (from, to) => {
    const bend = Math.max(12, Math.min(60, Math.abs(to.x - from.x) / 2));
    c.beginPath();
    c.moveTo(from.x, from.y);
    c.bezierCurveTo(from.x + bend, from.y, to.x - bend, to.y, to.x - 4, to.y);
    c.stroke();
    c.beginPath();
    c.moveTo(to.x, to.y);
    c.lineTo(to.x - 6, to.y - 3.5);
    c.lineTo(to.x - 6, to.y + 3.5);
    c.fill();
  };
  const waited = (track, i, from) => {
    const work = links.waitedFor(track, i);
    const to = work && at(work.track, work.i);
    if (to) arrow(from, { x: timeline.x(work.start + work.dur), y: to.y });
  };
  if (timeline.data.tracks[index].launched) {
    const caller = count === 1 && links.caller(index, i);
    const box = caller && at(caller.track, links.boxOf(caller.track, caller.start));
    if (box && own) arrow({ x: timeline.x(caller.start), y: box.y }, own);
    if (own && count === 1) waited(index, i, own);
  } else if (own) {
    const { found, waits } = links.launchedIn(index, start, start + dur, MOST_ARROWS);
    for (const wait of waits) waited(wait.track, wait.i, { x: timeline.x(links.caller(wait.track, wait.i).start), y: own.y + row / 2 - 1 });
    for (const work of found) {
      const to = at(work.track, work.i);
      const from = links.caller(work.track, work.i);
      if (to) arrow({ x: timeline.x(from.start), y: own.y + row / 2 - 1 }, to);
    }
  }
  c.restore();
}
