// An explanation as elements. Data goes in as text only.

/** An element with attributes and children; strings become text. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const size = (value) => Math.abs(value).toFixed(Math.abs(value) < 0.01 && value !== 0 ? 5 : 3);
const signed = (value) => (value < 0 ? "−" : "+") + size(value);
const plain = (value) => (value < 0 ? "−" : "") + size(value);
const counted = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

/** Pieces of the text with what each adds. Spans count code points, as Python does; JavaScript's own indices do not. */
export function pieces(text, words) {
  const characters = Array.from(text);
  const steps = new Map();
  const step = (at, change) => steps.set(at, [...(steps.get(at) ?? []), change]);
  for (const { contribution, spans } of words) {
    for (const [start, end] of spans) {
      if (start >= end || end > characters.length) continue;
      step(start, [contribution, 1]);
      step(end, [-contribution, -1]);
    }
  }
  const found = [];
  let value = 0, depth = 0, last = 0;
  for (const at of [...steps.keys(), characters.length].sort((a, b) => a - b)) {
    if (at > last) found.push({ text: characters.slice(last, at).join(""), value: depth ? value : null });
    for (const [change, by] of steps.get(at) ?? []) { value += change; depth += by; }
    if (!depth) value = 0; // no crumbs of rounding
    last = at;
  }
  return found;
}

function highlighted(text, words) {
  const parts = pieces(text, words);
  const largest = Math.max(...parts.map((part) => Math.abs(part.value ?? 0)), 1e-12);
  const box = make("div", { class: "marked", dir: "auto", tabindex: "0", role: "group", "aria-label": "Your text with its words marked" });
  for (const { text: piece, value } of parts) {
    if (value === null) { box.append(piece); continue; }
    const share = Math.abs(value) / largest;
    const faint = share < 0.02 ? " faint" : ""; // else a long text is underlined all over
    const mark = make("mark", { class: (value < 0 ? "against" : "for") + faint, title: `adds ${signed(value)}` }, piece);
    mark.style.setProperty("--strength", `${Math.round(5 + 75 * share)}%`);
    box.append(mark);
  }
  return box;
}

function sum(caption, rows, total) {
  const largest = Math.max(...rows.map(([, value]) => Math.abs(value)), 1e-12);
  const body = make("tbody");
  for (const [name, value, kind] of rows) {
    const bar = make("span", { class: `bar ${value < 0 ? "against" : "for"}`, "aria-hidden": "true" });
    bar.style.width = `${(50 * Math.abs(value)) / largest}%`;
    body.append(make("tr", {},
      make("th", { scope: "row", dir: "auto", class: kind }, name),
      make("td", { class: "number" }, signed(value)),
      make("td", { class: "bars", "aria-hidden": "true" }, bar)));
  }
  body.append(make("tr", { class: "total" }, make("th", { scope: "row" }, "together"), make("td", { class: "number" }, plain(total)), make("td")));
  return make("table", {}, make("caption", {}, caption), body);
}

function wordRows(words) {
  return words.map(({ term, contribution, spans }) =>
    [(term.trim() ? term : JSON.stringify(term)) + (spans.length > 1 ? ` (${spans.length} times)` : ""), contribution, "word"]);
}

function ownScore(told) {
  const rows = wordRows(told.words);
  if (told.others) rows.push(["all other words", told.others]);
  if (told.neural) rows.push(["the embedding", told.neural.share]);
  rows.push(["before any word is read", told.bias]);
  return sum("What adds to the label's own score", rows, told.own_score);
}

function embedding(neural) {
  const rows = wordRows(neural.words);
  if (neural.others) rows.push(["all other words", neural.others]);
  rows.push(["with every word masked", neural.base]);
  const head = make("summary", {}, `What adds to the embedding's share ${signed(neural.share)}`);
  return make("details", {}, head, sum(`By ${neural.method}`, rows, neural.share));
}

function pathList(path, label) {
  const list = make("ol", { class: "path" }, make("li", {}, make("b", {}, "all labels")));
  for (const step of path.steps) {
    const name = step.kind === "label" ? label : step.kind === "centroid" ? "the label's centroid" : `${step.kind} ${step.node}`;
    const below = step.kind === "label" || step.kind === "centroid" ? "" : `, ${counted(step.n_labels, "label")}`;
    const factor = step.factor === null ? "" : `, counts × ${step.factor.toFixed(3)}`;
    const item = make("li", {}, make("b", { dir: "auto" }, name), make("span", { class: "quiet" }, `${below} · score ${plain(step.score)}${factor}`));
    if (step.among.length) item.append(make("div", { class: "quiet", dir: "auto" }, `also there: ${step.among.join(", ")}`));
    list.append(item);
  }
  return list;
}

function paths(told) {
  const parts = [make("summary", {}, told.paths.length === 1 ? "Path through the cluster tree" : `Paths through ${told.paths.length} cluster trees`)];
  told.paths.forEach((path, at) => {
    const missed = path.listed ? "" : ", where the search does not come this way";
    const list = pathList(path, told.label);
    if (told.paths.length === 1) {
      if (missed) parts.push(make("p", { class: "quiet" }, "The search does not come this way."));
      parts.push(list);
    } else {
      const head = `Tree ${at + 1}: score ${plain(path.score)}, counts ${(100 * path.weight).toFixed(0)} %${missed}`;
      parts.push(make("details", { open: at === 0 ? "" : null }, make("summary", {}, head), list));
    }
  });
  return make("details", { class: "paths" }, ...parts);
}

function members(told) {
  return [make("h4", {}, "Members of the ensemble"), ...told.members.map((member) => {
    const adds = member.contribution === null ? "" : `, adds ${signed(member.contribution)}`;
    return make("details", {},
      make("summary", { dir: "auto" }, `${member.name}: weight ${plain(member.weight)}, counts ${plain(member.value)}${adds}`),
      ...details(member.explanation));
  })];
}

function neighbours(told) {
  const list = make("ul", { class: "alike" });
  for (const found of told.neighbours) {
    const name = found.id === null ? "" : ` · ${found.id}`;
    list.append(make("li", {}, make("span", { dir: "auto" }, found.text), make("div", { class: "quiet" }, `alike ${found.similarity.toFixed(2)}${name}`)));
  }
  return [make("h4", {}, "Similar documents that have this label"), list];
}

function details(told) {
  const parts = [ownScore(told)];
  if (told.neural?.words.length) parts.push(embedding(told.neural));
  if (told.paths.length) parts.push(paths(told));
  if (told.members.length) parts.push(...members(told));
  if (told.neighbours.length) parts.push(...neighbours(told));
  const combine = told.combine ? `How the score ${plain(told.score)} is made: ${told.combine}.` : "";
  for (const note of [combine, ...told.notes].filter(Boolean)) parts.push(make("p", { class: "quiet" }, note));
  return parts;
}

/** Everything that is told about one label of a text; `probability` is empty where the model has none. */
export function explanation(told, text, probability = "") {
  const words = [...told.words, ...(told.neural?.words ?? [])];
  const legend = make("p", { class: "quiet legend" },
    make("mark", { class: "for" }, "speaks for the label"), " ", make("mark", { class: "against" }, "speaks against it"));
  const none = words.length ? null : make("p", { class: "quiet" }, "No word of the text is known to the model for this label.");
  const meaning = probability
    ? `The parts below add up to a score, which is not a probability: calibration on held-out documents makes ${probability} of the score ${plain(told.score)}.`
    : `The parts below add up to a score, which is not a probability: this model is not calibrated.`;
  const note = make("p", { class: "quiet" }, meaning);
  return make("div", { class: "why" }, highlighted(text, words), none ?? legend, note, ...details(told));
}
