// The atlas page: choose a problem, a variant and a level; see the optimum, its mechanism, and the published ones beside it.
// The data is in atlas-data.js, which docs/generated.py writes from the package's file. No library, no network.
document.addEventListener("DOMContentLoaded", () => {
  const root = document.getElementById("atlas-chooser");
  const data = window.OPTDP_ATLAS;
  if (!root || !data) return;
  const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#999999"];
  const DASHES = ["", "6 3", "2 3"];
  const TOP = 32; // ratios above leave the picture; the table has them all

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [k, v] of Object.entries(attributes)) made.setAttribute(k, v);
    made.append(...children);
    return made;
  };
  const svgElement = (name, attributes = {}, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [k, v] of Object.entries(attributes)) made.setAttribute(k, v);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const brief = (v) => (v === 0 ? "0" : Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3 ? v.toExponential(1) : String(+v.toPrecision(4)));
  const charts = new Map(data.charts.map((chart) => [chart.name, chart]));
  const groups = [...new Set(data.charts.map((chart) => chart.group))];

  // --- controls
  const group = element("select", { id: "atlas-group" });
  for (const name of groups) group.add(new Option(name, name));
  const variant = element("select", { id: "atlas-variant" });
  const level = element("input", { type: "range", id: "atlas-level", min: 0, step: 1 });
  const shown = element("output", { for: "atlas-level" });
  const axisName = element("span", {}, "eps");
  root.replaceChildren(
    element("div", { class: "atlas-controls" },
      element("label", {}, "Problem ", group),
      element("label", {}, "Domain and loss ", variant),
      element("label", {}, axisName, " ", level, shown)),
    element("div", { class: "atlas-facts", "aria-live": "polite" }),
    element("div", { class: "atlas-figures" }, element("figure"), element("figure")),
    element("div", { class: "table-wrapper atlas-table" }));
  const [facts, figures, table] = [1, 2, 3].map((k) => root.children[k]);

  const fill = (name) => {
    const chosen = charts.get(name);
    group.value = chosen.group;
    variant.replaceChildren();
    for (const chart of data.charts) if (chart.group === chosen.group) variant.add(new Option(chart.variant, chart.name));
    variant.value = name;
    const before = level.dataset.level === undefined ? 1 : +level.dataset.level;
    level.max = chosen.points.length - 1;
    let best = 0;
    chosen.points.forEach((p, k) => {
      if (Math.abs(Math.log(p.level / before)) < Math.abs(Math.log(chosen.points[best].level / before)) - 1e-12) best = k;
    });
    level.value = best;
  };

  // --- axes
  const linear = (low, high, whole = false) => {
    const rough = Math.max((high - low) / 5, whole ? 1 : 0) || 1;
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * ([1, 2, 5, 10].find((m) => m * unit >= rough) || 10);
    const ticks = [];
    for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step) ticks.push(Math.abs(v) < step / 1e6 ? 0 : v);
    return ticks;
  };
  const logarithmic = (low, high) => {
    const ticks = [];
    const fine = high / low < 30 ? [1, 1.5, 2, 3, 5, 7] : high / low < 1e4 ? [1, 2, 5] : [1];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e += 1)
      for (const m of fine) if (m * 10 ** e >= low * 0.9999 && m * 10 ** e <= high * 1.0001) ticks.push(m * 10 ** e);
    return ticks;
  };
  const frame = (title, across, up, x, y, xTicks, yTicks, logs) => {
    const [width, height, left, right, top, bottom] = [460, 300, 58, 12, 12, 44];
    const svg = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
    const place = (v, [low, high], log) => (log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low || 1));
    const X = (v) => left + (width - left - right) * place(v, x, logs.includes("x"));
    const Y = (v) => height - bottom - (height - top - bottom) * place(v, y, logs.includes("y"));
    const id = `clip-${Math.random().toString(36).slice(2)}`;
    const clip = svgElement("clipPath", { id });
    clip.append(svgElement("rect", { x: left - 4, y: top - 4, width: width - left - right + 8, height: height - top - bottom + 8 }));
    svg.append(clip);
    for (const v of yTicks) {
      svg.append(svgElement("line", { x1: left, x2: width - right, y1: Y(v), y2: Y(v), class: "grid" }));
      svg.append(svgElement("text", { x: left - 6, y: Y(v) + 4, "text-anchor": "end" }, brief(v)));
    }
    for (const v of xTicks) svg.append(svgElement("text", { x: X(v), y: height - bottom + 16, "text-anchor": "middle" }, brief(v)));
    svg.append(svgElement("path", { d: `M${left} ${top}V${height - bottom}H${width - right}`, class: "axis" }));
    svg.append(svgElement("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, across));
    svg.append(svgElement("text", { transform: `translate(12 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, up));
    const inside = svgElement("g", { "clip-path": `url(#${id})` });
    svg.append(inside);
    return { svg, inside, X, Y, top, base: height - bottom };
  };
  const path = (points) => points.map(([a, b], k) => `${k ? "L" : "M"}${a.toFixed(2)} ${b.toFixed(2)}`).join("");

  // --- the mechanism
  const legend = (entries) => {
    const made = element("div", { class: "atlas-legend" });
    for (const [colour, text] of entries) {
      const mark = element("span", { class: "mark" });
      mark.style.background = colour;
      made.append(element("span", {}, mark, text));
    }
    return made;
  };
  const drawTable = (picture) => {
    const made = element("table", { class: "docutils atlas-cells" });
    const head = element("tr", {}, element("th", {}, picture.inputs.length > 1 ? `${picture.up} \\ ${picture.across}` : ""));
    for (const name of picture.outputs) head.append(element("th", {}, name));
    made.append(element("thead", {}, head));
    const body = element("tbody");
    picture.table.forEach((row, i) => {
      const line = element("tr", {}, element("th", {}, picture.inputs[i]));
      for (const p of row) {
        const cell = element("td", {}, p.toFixed(3));
        cell.style.background = `rgba(0, 114, 178, ${(0.75 * p).toFixed(3)})`;
        line.append(cell);
      }
      body.append(line);
    });
    made.append(body);
    return element("div", { class: "table-wrapper" }, made);
  };
  const drawMechanism = (picture) => {
    const title = "The optimal mechanism";
    const caption = element("figcaption", {}, picture.table.length > 1 ? `${title}: probability of each output for each input`
      : picture.table.length ? `${title}: ${picture.up}` : title);
    if (picture.note) caption.append(`; ${picture.note}`);
    if (picture.table.length) return [drawTable(picture), caption];
    const xs = picture.curves.flatMap((c) => c.x), lines = picture.curves.filter((c) => c.kind === "line");
    const high = Math.max(...picture.curves.flatMap((c) => c.y)) || 1, x = [Math.min(...xs), Math.max(...xs)];
    const names = [...new Set(picture.curves.map((c) => c.label))];
    const ticks = linear(...x, xs.every(Number.isInteger)); // of counts whole ones
    const { svg, inside, X, Y } = frame(title, picture.across, picture.up, x, [0, high * 1.05], ticks, linear(0, high), "");
    for (const curve of picture.curves) {
      const k = names.indexOf(curve.label), stroke = COLOURS[k % COLOURS.length];
      const places = curve.x.map((v, i) => [X(v), Y(curve.y[i])]);
      if (curve.kind === "line") {
        inside.append(svgElement("path", { d: path(places), fill: "none", stroke, "stroke-width": 2, "stroke-dasharray": DASHES[k % 3] }));
        continue;
      }
      for (const [a, b] of places) {
        inside.append(svgElement("line", { x1: a, x2: a, y1: Y(0), y2: b, stroke, "stroke-width": lines.length ? 1 : 2, opacity: 0.6 }));
        inside.append(svgElement("circle", { cx: a, cy: b, r: 3, fill: stroke }));
      }
    }
    return [svg, ...(names.length > 1 ? [legend(names.map((n, k) => [COLOURS[k % COLOURS.length], n]))] : []), caption];
  };

  // --- the published mechanisms
  const style = (names, name) => {
    const k = names.indexOf(name);
    return { stroke: COLOURS[(k + 1) % COLOURS.length], "stroke-dasharray": DASHES[Math.floor((k + 1) / COLOURS.length) % 3] };
  };
  const rivalsOf = (chart) => [...new Set(chart.points.flatMap((p) => p.rivals.map((r) => r.name)))];
  const drawRatios = (chart, point) => {
    const levels = chart.points.map((p) => p.level), x = [Math.min(...levels), Math.max(...levels)];
    if (x[0] === x[1]) x[1] = 2 * x[0];
    const names = rivalsOf(chart);
    const curves = names.map((name) => [name, chart.points.flatMap((p) => {
      const rival = p.rivals.find((r) => r.name === name);
      return rival && p.value ? [[p.level, rival.value / p.value]] : [];
    })]);
    const optimum = names.length ? chart.points.map((p) => [p.level, 1]) : chart.points.map((p) => [p.level, p.value]);
    const bound = chart.points.map((p) => [p.level, names.length ? p.lower / p.value : p.lower]);
    const ratios = [...curves.flatMap(([, c]) => c.map(([, v]) => v)), ...optimum.map(([, v]) => v), ...bound.map(([, v]) => v)];
    const low = Math.min(...ratios.filter((v) => v > 0)), high = names.length ? Math.min(Math.max(...ratios), TOP) : Math.max(...ratios);
    const y = [low * 0.95, Math.max(high * 1.05, low * 1.3)];
    const up = names.length ? "objective / optimum" : "optimum";
    const caption = names.length ? "Published mechanisms as multiples of the optimum (grey: what is proven that no mechanism beats)"
      : "The optimum (no published mechanism is registered for this problem)";
    const { svg, inside, X, Y, top, base } = frame(caption, chart.axis, up, x, y,
      levels.filter((v, k) => levels.length < 8 || k % 2 === 1 || k === 0), logarithmic(...y), "xy");
    const region = [...optimum, ...[...bound].reverse()].map(([a, b]) => [X(a), Y(Math.max(b, y[0]))]);
    inside.append(svgElement("path", { d: `${path(region)}Z`, fill: "#999999", opacity: 0.35 }));
    for (const [name, curve] of curves) {
      const line = svgElement("path", { d: path(curve.map(([a, b]) => [X(a), Y(b)])), fill: "none", "stroke-width": 1.6, "data-name": name, ...style(names, name) });
      line.append(svgElement("title", {}, name));
      inside.append(line);
    }
    inside.append(svgElement("path", { d: path(optimum.map(([a, b]) => [X(a), Y(b)])), fill: "none", stroke: COLOURS[0], "stroke-width": 3 }));
    svg.append(svgElement("line", { x1: X(point.level), x2: X(point.level), y1: top, y2: base, class: "now" }));
    for (const v of levels) {
      const hit = svgElement("rect", { x: X(v) - 9, y: top, width: 18, height: base - top, fill: "transparent", class: "hit" });
      hit.addEventListener("click", () => { level.value = levels.indexOf(v); draw(); });
      svg.append(hit);
    }
    return [svg, element("figcaption", {}, caption)];
  };
  const drawTableOfRivals = (chart, point, svg) => {
    const names = rivalsOf(chart);
    if (!names.length) return [];
    const made = element("table", { class: "docutils" });
    const head = element("tr");
    for (const text of ["mechanism", "objective", "/ optimum", "guarantee held", "in the family"]) head.append(element("th", {}, text));
    made.append(element("thead", {}, head));
    const body = element("tbody");
    const rows = [
      { name: "optimum", value: point.value, guarantee: "yes", family: true },
      ...point.rivals.map((r) => ({ ...r, ...style(names, r.name) })),
    ].sort((a, b) => a.value - b.value);
    for (const row of rows) {
      const mark = element("span", { class: "mark" });
      mark.style.background = row.stroke || COLOURS[0];
      const line = element("tr", {}, element("td", {}, mark, row.name), element("td", {}, brief(row.value) + (row.proven === false ? " (numerical)" : "")),
        element("td", {}, point.value ? brief(row.value / point.value) : "-"), element("td", {}, row.guarantee), element("td", {}, row.family ? "yes" : "no"));
      const light = (on) => () => {
        for (const other of svg.querySelectorAll("[data-name]")) {
          other.style.opacity = on && other.dataset.name !== row.name ? 0.2 : 1;
          other.style.strokeWidth = on && other.dataset.name === row.name ? 3 : 1.6;
        }
      };
      line.addEventListener("mouseenter", light(true));
      line.addEventListener("mouseleave", light(false));
      body.append(line);
    }
    made.append(body);
    return [made];
  };

  const draw = () => {
    const chart = charts.get(variant.value), point = chart.points[+level.value];
    level.dataset.level = point.level;
    axisName.textContent = chart.axis;
    shown.textContent = ` ${brief(point.level)}`;
    level.setAttribute("aria-valuetext", `${chart.axis} = ${brief(point.level)}`);
    const told = point.certified ? `certified to the tolerance ${brief(point.rtol)}` : `the gap is above the tolerance ${brief(point.rtol)}`;
    facts.replaceChildren(
      element("p", {}, element("strong", {}, `${point.shownLower} ≤ optimum ≤ ${point.shownValue}`),
        `, relative gap ${point.gap ? point.gap.toExponential(1) : "0"}: ${told}.`),
      element("p", {}, `The optimum is ${point.statement}.`),
      element("p", {}, "Digest of the solution: ", element("code", {}, point.digest.slice(0, 16)), " …"));
    facts.querySelector("code").title = point.digest;
    const [left, right] = figures.children;
    left.replaceChildren(...drawMechanism(point.picture));
    right.replaceChildren(...drawRatios(chart, point));
    table.replaceChildren(...drawTableOfRivals(chart, point, right));
    history.replaceState(null, "", `#${chart.name}=${point.level}`);
  };
  group.addEventListener("change", () => { fill(data.charts.find((chart) => chart.group === group.value).name); draw(); });
  variant.addEventListener("change", () => { fill(variant.value); draw(); });
  level.addEventListener("input", draw);
  const open = () => {
    const [name, value] = decodeURIComponent(location.hash.slice(1)).split("=");
    if (+value > 0) level.dataset.level = +value;
    fill(charts.has(name) ? name : data.charts[0].name);
    draw();
  };
  window.addEventListener("hashchange", open);
  open();
});
