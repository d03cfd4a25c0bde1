// The operators of a step on the CPU, and the layers by the CPU's time: where there is no GPU, what a model's call is made of.

import { percent, time, whole } from "./data.js";
import { element, place, table } from "./tables.js";

const often = (row) => (Number.isInteger(row.calls) || row.calls >= 100 ? whole(Math.round(row.calls)) : row.calls.toFixed(1));
const nanos = (title, key) => ({ title, get: (row) => row[key], show: (row) => time(row[key]), number: true });
const calls = { title: "calls", get: (row) => row.calls, show: often, number: true };
const share = (title) => ({ title, get: (row) => row.share, show: (row) => percent(row.share, 1), bar: (row) => row.share, number: true });

export function fillOperators(data, $, search) {
  const { operators, host_layers: layers } = data;
  $("operators-section").hidden = !operators;
  if (operators) {
    $("operators-note").textContent = operators.basis;
    const path = (title, get) => ({ title, get, show: (row) => element("span", { class: "path" }, get(row)) });
    table($("operators"), [
      { title: "operator", get: (row) => row.name }, path("shapes", (row) => row.shapes), { title: "dtype", get: (row) => row.dtype },
      share(operators.whole), nanos("time", "ns"), calls, nanos("each", "mean"),
      { title: "GFLOP/s", get: (row) => row.gflops ?? -1, show: (row) => (row.gflops === null ? "" : row.gflops.toFixed(1)), number: true },
      path("called from", (row) => place(row.file, row.line)), path("module", (row) => row.module),
    ], operators.rows, { filter: $("operators-filter"), onPick: search, limit: 25 });
  }
  if (!layers) return;
  $("layers-section").hidden = false;
  $("layers-note").textContent = layers.basis;
  table($("layers"), [
    { title: "layer", get: (row) => row.name }, share("share"), nanos("own", "own"), nanos("with layers inside", "total"), calls,
  ], layers.rows, { filter: $("layers-filter"), onPick: search, limit: 25 });
}
