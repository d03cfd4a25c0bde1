// What the mouse and fingers do on the timeline: wheel, drag, select, pinch, click, double click.

export function listenToPointer(timeline, ruler) {
  const { canvas, view } = timeline;
  let drag = null;
  const pointers = new Map();
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("wheel", (event) => {
    const [x] = place(event);
    if (event.ctrlKey || event.metaKey || event.altKey) view.zoom(1.0015 ** event.deltaY, timeline.ns(x));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) view.pan((event.deltaX || event.deltaY) / (timeline.width - timeline.gutter));
    else {
      const before = timeline.scroll;
      timeline.scroll += event.deltaY;
      timeline.draw();
      // At its end the wheel belongs to the page again.
      if (timeline.scroll === before) return;
    }
    event.preventDefault();
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    const [x, y] = place(event);
    pointers.set(event.pointerId, x);
    drag = { x, y, scroll: timeline.scroll, start: view.start, end: view.end, select: event.shiftKey || y < ruler, moved: false };
    if (pointers.size === 2) drag.pinch = Math.abs([...pointers.values()].reduce((a, b) => a - b));
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (!drag) {
      timeline.onHover(timeline.find(x, y), event, timeline.ns(x));
      return;
    }
    pointers.set(event.pointerId, x);
    if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > 3) drag.moved = true;
    if (!drag.moved) return;
    timeline.onHover(null);
    if (drag.pinch && pointers.size === 2) {
      const now = Math.max(8, Math.abs([...pointers.values()].reduce((a, b) => a - b)));
      view.zoom(drag.pinch / now);
      drag.pinch = now;
    } else if (drag.select) view.select([timeline.ns(Math.min(x, drag.x)), timeline.ns(Math.max(x, drag.x))]);
    else {
      const shift = ((drag.x - x) / (timeline.width - timeline.gutter)) * (drag.end - drag.start);
      timeline.scroll = drag.scroll + drag.y - y;
      view.show(drag.start + shift, drag.end + shift);
    }
  });
  const release = (event) => {
    pointers.delete(event.pointerId);
    if (drag && !drag.moved) {
      const [x, y] = place(event);
      const what = timeline.find(x, y);
      if (what) timeline.onPick(what);
      else view.select(null);
    }
    drag = null;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => timeline.onHover(null));
  canvas.addEventListener("dblclick", (event) => {
    const what = timeline.find(...place(event));
    if (what?.dur) view.show(what.start - what.dur * 0.1, what.start + what.dur * 1.1);
    else view.zoom(0.5, timeline.ns(place(event)[0]));
  });
}
