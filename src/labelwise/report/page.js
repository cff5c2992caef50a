"use strict";
(() => {
  const source = document.getElementById("tree-data");
  if (!source) return;
  const nodes = JSON.parse(source.textContent);
  const children = nodes.map(() => []);
  nodes.forEach((node, i) => { if (node.p >= 0) children[node.p].push(i); });
  const view = document.getElementById("tree-view");
  const map = document.getElementById("tree-map");
  const path = document.getElementById("tree-path");
  const detail = document.getElementById("tree-detail");
  const area = document.getElementById("tree-area");
  const MOST_TILES = 400, MOST_ON_PHONES = 40, PHONE = 520;
  const LONG_LIST = 12;
  const tested = nodes.some((node) => node.f !== null);
  let here = 0;

  const number = (value) => value.toLocaleString("en");
  const plural = (value, word) => `${number(value)} ${word}${value === 1 ? "" : "s"}`;
  // Everything is set as text, never as HTML: labels and words may hold anything.
  const make = (name, words, kind) => {
    const element = document.createElement(name);
    if (words !== undefined) element.textContent = words;
    if (kind) element.className = kind;
    return element;
  };
  const title = (i) => {
    const node = nodes[i];
    if (i === 0) return "all labels";
    return (node.w.length ? node.w.slice(0, 3) : node.t.slice(0, 2)).join(", ") || `cluster ${i}`;
  };
  const about = (node) => {
    const parts = [plural(node.n, "label")];
    if (node.d !== null) parts.push(plural(node.d, "document"));
    if (node.f !== null) parts.push(`mean F1 ${node.f.toFixed(1)} %`);
    return parts.join(" · ");
  };
  const labelAbout = (label) => {
    const parts = [];
    if (label[1] !== null) parts.push(plural(label[1], "document"));
    if (label[2] !== null) parts.push(`F1 ${label[2].toFixed(1)} %`);
    return parts.join(" · ");
  };

  // Squarified treemap (Bruls, Huizing, van Wijk 2000): rows along the shorter side while that makes tiles squarer.
  const squarify = (items, x, y, width, height) => {
    const total = items.reduce((sum, item) => sum + item.size, 0);
    const scale = (width * height) / total;
    const placed = [];
    let at = 0;
    const worst = (low, high, sum, side) => Math.max((side * side * high) / (sum * sum), (sum * sum) / (side * side * low));
    while (at < items.length) {
      const side = Math.min(width, height);
      let end = at, sum = 0, ratio = Infinity;
      while (end < items.length) {
        const size = items[end].size * scale;
        const next = worst(size, items[at].size * scale, sum + size, side);
        if (next > ratio) break;
        ratio = next; sum += size; end += 1;
      }
      const depth = sum / side;
      let along = 0;
      for (let i = at; i < end; i += 1) {
        const length = (items[i].size * scale) / depth;
        placed.push(width >= height
          ? { item: items[i], x, y: y + along, w: depth, h: length }
          : { item: items[i], x: x + along, y, w: length, h: depth });
        along += length;
      }
      if (width >= height) { x += depth; width -= depth; } else { y += depth; height -= depth; }
      at = end;
    }
    return placed;
  };

  const items = () => {
    const byLabels = area.value === "n";
    const found = children[here].length
      ? children[here].map((i) => ({
        node: i, name: title(i), small: about(nodes[i]), f: nodes[i].f, size: byLabels ? nodes[i].n : nodes[i].d,
        extra: nodes[i].w.length ? nodes[i].t : [], words: nodes[i].w,
      }))
      : (nodes[here].l || []).map((label) => ({
        node: null, name: label[0], small: labelAbout(label), f: label[2], size: byLabels ? 1 : label[1], extra: [], words: [],
      }));
    found.forEach((item) => { item.size = Math.max(item.size || 0, 0.5); });
    return found.sort((a, b) => b.size - a.size);
  };

  const drawMap = () => {
    const phone = view.clientWidth < PHONE;
    const all = items(), shown = all.slice(0, phone ? MOST_ON_PHONES : MOST_TILES);
    const tests = shown.map((item) => item.f).filter((value) => value !== null);
    const low = Math.min(...tests), high = Math.max(...tests);
    map.replaceChildren();
    map.style.height = phone ? `${Math.max(360, 26 * shown.length)}px` : "";
    const width = map.clientWidth, height = map.clientHeight;
    if (!width || !shown.length) return;
    for (const { item, x, y, w, h } of squarify(shown, 0, 0, width, height)) {
      const tile = make(item.node === null ? "div" : "button", undefined, "tile");
      tile.style.cssText = `left:${(100 * x) / width}%;top:${(100 * y) / height}%;width:${(100 * w) / width}%;height:${(100 * h) / height}%`;
      tile.title = [item.name, item.extra.slice(0, 3).join(" · "), item.small].filter(Boolean).join("\n");
      const large = w > 150 && h > 130;
      if (Math.min(w, h) < 16 || Math.max(w, h) < 34) tile.classList.add("tiny");
      if (w < 40 && h > 1.5 * w) tile.classList.add("upright");
      if (tested && item.f === null) tile.classList.add("untested");
      tile.style.setProperty("--share", item.f === null ? 0.3 : high > low ? (item.f - low) / (high - low) : 0.5);
      if (large) tile.classList.add("large");
      tile.names = item.words.length ? item.words.slice(0, large ? 6 : 3) : [item.name];
      tile.append(make("span", tile.names.join(", "), item.node === null ? "" : "words"));
      if (w > 70 && h > 46) tile.append(make("small", item.small));
      const lines = large ? item.extra : w > 90 && h > 70 && item.extra.length ? [item.extra.slice(0, 3).join(" · ")] : [];
      for (const line of lines) tile.append(make("small", line));
      if (item.node !== null) {
        tile.type = "button";
        tile.setAttribute("aria-label", tile.title.replaceAll("\n", "; "));
        tile.addEventListener("click", () => go(item.node));
      }
      map.append(tile);
    }
    for (const tile of map.children) {  // no half lines, no broken words: less text, then smaller text, then none
      const over = () => tile.scrollHeight > tile.clientHeight + 1 || tile.scrollWidth > tile.clientWidth + 1;
      while (tile.children.length > 1 && over()) tile.lastChild.remove();
      for (const size of ["", "small"]) {
        if (size && over()) tile.classList.add(size);
        for (let most = tile.names.length; most > 0 && (most === tile.names.length || over()); most -= 1) {
          tile.firstChild.textContent = tile.names.slice(0, most).join(", ");
        }
      }
      if (over()) tile.classList.add("tiny");
    }
    const legend = [];
    const words = document.getElementById("tree-legend");
    if (tests.length) legend.push(`mean F1 ${low.toFixed(0)} %`, make("span", undefined, "scale"), `${high.toFixed(0)} % `);
    if (shown.some((item) => item.f === null) && tested) legend.push("Hatched: no label was tested. ");
    if (all.length > shown.length) legend.push(`${number(all.length - shown.length)} smaller tiles are left out here and listed below.`);
    words.replaceChildren(...legend);
  };

  const drawPath = () => {
    path.replaceChildren();
    const steps = [];
    for (let i = here; i >= 0; i = nodes[i].p) steps.unshift(i);
    steps.forEach((i, place) => {
      if (place) path.append(" › ");
      if (i === here) { path.append(make("b", title(i))); return; }
      const back = make("button", title(i));
      back.type = "button";
      back.addEventListener("click", () => go(i));
      path.append(back);
    });
  };

  const drawDetail = () => {
    const node = nodes[here];
    detail.replaceChildren(make("h3", here ? "In this cluster" : "In the whole tree"), make("p", about(node)));
    if (node.w.length) {
      const words = make("p", "words: ");
      words.append(make("b", node.w.join(", ")));
      detail.append(words);
    }
    const list = make("ul");
    if (children[here].length) {
      detail.append(make("p", `most frequent labels: ${node.t.join(" · ")}`));
      for (const item of items()) {
        const line = make("li"), button = make("button", item.name);
        button.type = "button";
        button.addEventListener("click", () => go(item.node));
        line.append(button, make("br"), make("span", item.small));
        list.append(line);
      }
      if (node.more) list.append(make("li", `and ${plural(node.more, "cluster")} that this page leaves out`));
    } else {
      for (const label of node.l || []) {
        const line = make("li", `${label[0]} `);
        line.append(make("span", labelAbout(label)));
        list.append(line);
      }
      if (node.rest) list.append(make("li", `and ${plural(node.rest, "label")} that this page leaves out`));
    }
    const lines = list.children.length;
    if (lines <= LONG_LIST) {
      detail.append(list);
      return;
    }
    const fold = make("details"), kind = children[here].length ? "cluster" : "label";
    fold.append(make("summary", `All ${plural(lines, kind)} as a list`), list);
    detail.append(fold);
  };

  const draw = () => { drawPath(); drawMap(); drawDetail(); };
  const go = (i) => { here = i; draw(); path.scrollIntoView({ block: "nearest" }); };
  view.hidden = false;
  area.addEventListener("change", draw);
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(drawMap, 120); });
  addEventListener("beforeprint", drawMap);
  draw();
})();
