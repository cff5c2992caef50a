// The page: a text in, labels out, and why.

import { Cancelled, Line, setKey } from "./ask.js";
import { explanation, make } from "./why.js";

const $ = (id) => document.getElementById(id);
const PAGE_OF_LABELS = 50;
const state = { info: null, text: null, top: 10, version: "", model: "", suggestions: [], told: new Map(), open: null };
const waitingForKey = new Map();

const percent = (value) => (value > 0 && value < 0.001 ? "< 0.1 %" : `${(100 * value).toFixed(1)} %`);
const many = (number) => number.toLocaleString("en");
const labels = (number) => `${many(number)} ${number === 1 ? "label" : "labels"}`;

function characters(text) {
  let count = text.length;
  for (let at = 1; at < text.length; at++) {
    if ((text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800) count--;
  }
  return count;
}

function tellWait(words) {
  $("waiting").hidden = !words;
  $("waiting-note").textContent = words;
}

function tellProblem(words, again = null) {
  $("problem").hidden = !words;
  $("problem-text").textContent = words;
  $("again").hidden = again === null;
  $("again").onclick = again;
}

/** Run an action; whatever goes wrong is told, by `tell(words, again)`. */
async function attempt(name, action, tell = tellProblem) {
  tell("");
  try {
    await action();
  } catch (error) {
    if (error instanceof Cancelled) return;
    const again = () => attempt(name, action, tell);
    if (error.status === 401) {
      askForKey(error.message, name, again);
    } else if (error.status === undefined) { // a fault of this page
      console.error(error);
      tell("Something went wrong in this page; reload it.");
    } else {
      const hopeless = error.status >= 400 && error.status < 500 && error.status !== 408;
      tell(error.message, hopeless ? null : again);
    }
  }
}

// Keys

function askForKey(message, name, again) {
  waitingForKey.set(name, again);
  $("key-why").textContent = `${message.split(";")[0]}. It is kept until this tab is closed.`;
  $("key-form").hidden = false;
  $("key").focus();
}

$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const key = $("key").value.trim();
  if (!/^[\x21-\x7e]+$/.test(key)) {
    $("key-why").textContent = key ? "A key has only plain letters, digits and signs; copy it again." : "Type or paste the key first.";
    return;
  }
  setKey(key);
  $("key-form").dataset.used = "yes";
  $("key").value = "";
  $("key-form").hidden = true;
  $("text").focus();
  const actions = [...waitingForKey.values()];
  waitingForKey.clear();
  actions.forEach((action) => action());
});

// The model

const infoLine = new Line(tellWait);

async function loadModel(name = "") {
  const info = await infoLine.ask(`v1/model?model=${encodeURIComponent(name)}`, { what: "The server tells what it serves" });
  state.info = info;
  $("title").textContent = info.model;
  document.title = `${info.model} · labelwise`;
  const first = info.metrics?.scores?.["P@1"];
  const right = typeof first === "number" ? ` · first label right for ${first.toFixed(1)} % of held-out texts (P@1)` : "";
  $("about").textContent = `${info.title} · ${labels(info.n_labels)}${right}${info.calibrated ? "" : " · scores, not probabilities"}`;
  showExamples(info.examples);
  $("version").textContent = `version ${info.version}`;
  $("choice").hidden = info.models.length < 2;
  $("model").replaceChildren(...info.models.map((one) => make("option", { value: one }, one)));
  $("model").value = info.model;
  const sizes = [5, 10, 20, 50, 100].filter((size) => size <= info.limits.max_top_k);
  const before = $("most").value || "10";
  $("most").replaceChildren(...(sizes.length ? sizes : [info.limits.max_top_k]).map((size) => make("option", {}, String(size))));
  if (sizes.includes(Number(before))) $("most").value = before;
  const meaning = $("match").querySelector("[value=meaning]");
  meaning.hidden = meaning.disabled = !info.searchable_by_meaning;
  if (meaning.disabled && meaning.selected) $("match").value = "substring";
  $("threshold-row").hidden = !info.calibrated;
  showCommand({ text: info.examples[0] ?? "a text" });
  count();
}

function showExamples(texts) {
  $("examples").hidden = !texts.length;
  $("examples").replaceChildren($("examples").firstElementChild, ...texts.map((text) => {
    const button = make("button", { type: "button", dir: "auto", title: text }, text);
    button.addEventListener("click", () => {
      $("text").value = text;
      count();
      $("ask").requestSubmit();
    });
    return button;
  }));
}

/** The last request as a command for a shell: single quotes keep every character but themselves. */
function showCommand(body) {
  const quoted = (words) => `'${words.replaceAll("'", "'\\''")}'`;
  const address = new URL("v1/suggest", location.href).href;
  const key = $("key-form").dataset.used ? " -H 'X-API-Key: YOUR-KEY'" : "";
  $("curl").textContent = `curl -H 'Content-Type: application/json'${key} -d ${quoted(JSON.stringify(body))} ${address}`;
  $("copied").textContent = "";
}

$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("curl").textContent);
    $("copied").textContent = "Copied.";
  } catch { // not over plain HTTP from another machine
    getSelection().selectAllChildren($("curl"));
    $("copied").textContent = "Selected; copy it with Ctrl+C.";
  }
});

$("model").addEventListener("change", () => {
  const name = $("model").value, again = state.text !== null;
  clear();
  attempt("model", async () => {
    await loadModel(name);
    if ($("q").value) search();
    if (again) await suggest();
  });
});

// The text

function count() {
  const length = characters($("text").value), most = state.info?.limits.max_characters;
  $("count").textContent = most ? `${many(length)} of at most ${many(most)} characters` : "";
  $("count").classList.toggle("over", Boolean(most) && length > most);
  if (state.text !== null) summarise();
}

function tooLong(text, body) {
  const limits = state.info?.limits, length = characters(text);
  if (!limits) return "";
  if (length > limits.max_characters) {
    return `The text has ${many(length)} characters, and this server takes at most ${many(limits.max_characters)}; shorten it.`;
  }
  const bytes = new TextEncoder().encode(JSON.stringify(body)).length;
  return bytes > limits.max_body ? `The text has ${many(bytes)} bytes, and this server takes at most ${many(limits.max_body)}; shorten it.` : "";
}

// Suggestions

const suggestLine = new Line(tellWait);
const whyLine = new Line();

function clear() {
  whyLine.cancel();
  Object.assign(state, { text: null, suggestions: [], told: new Map(), open: null });
  $("labels").replaceChildren();
  $("summary").textContent = "Nothing suggested yet.";
}

async function suggest() {
  const value = $("text").value, text = value.toWellFormed?.() ?? value;
  const body = { text, top_k: Number($("most").value) || 10, model: state.info?.model ?? "" };
  const problem = text.trim() ? tooLong(text, body) : "Type or paste a text first.";
  if (problem) {
    suggestLine.cancel();
    tellProblem(problem);
    $("text").focus();
    return;
  }
  whyLine.cancel();
  $("labels").setAttribute("aria-busy", "true");
  try {
    const answer = await suggestLine.ask("v1/suggest", { body, what: "The server reads the text" });
    clear();
    Object.assign(state, { text, top: body.top_k, model: answer.model, version: answer.version, suggestions: answer.results[0].suggestions });
    show();
    showCommand({ text, top_k: body.top_k, ...(state.info?.models.length > 1 ? { model: body.model } : {}) });
    // On a phone they come below the text, out of sight.
    if ($("summary").getBoundingClientRect().bottom > 0.8 * innerHeight) $("found-head").scrollIntoView();
  } finally {
    $("labels").removeAttribute("aria-busy");
  }
}

function barSizes(numbers) {
  const low = Math.min(0, ...numbers), high = Math.max(...numbers);
  return numbers.map((number) => (high > low ? (number - low) / (high - low) : 1));
}

function show() {
  const calibrated = state.suggestions.every((one) => typeof one.probability === "number");
  const sizes = calibrated ? state.suggestions.map((one) => one.probability) : barSizes(state.suggestions.map((one) => one.score));
  $("labels").replaceChildren(...state.suggestions.map((one, at) => {
    const fill = make("span", { class: "fill" });
    fill.style.width = `${100 * sizes[at]}%`;
    const button = make("button", { type: "button", class: "label", "aria-expanded": "false", "aria-controls": `why-${at}` },
      make("span", { class: "name", dir: "auto" }, one.label),
      make("span", { class: "value" }, calibrated ? percent(one.probability) : one.score.toFixed(3)),
      make("span", { class: "track", "aria-hidden": "true" }, fill));
    button.addEventListener("click", () => toggle(at));
    return make("li", {}, button, make("div", { id: `why-${at}`, class: "panel", hidden: "" }));
  }));
  summarise();
}

function summarise() {
  const all = state.suggestions, calibrated = all.every((one) => typeof one.probability === "number");
  const least = calibrated ? $("threshold").valueAsNumber / 100 : 0;
  let shown = 0;
  [...$("labels").children].forEach((item, at) => {
    item.hidden = calibrated && all[at].probability < least;
    shown += item.hidden ? 0 : 1;
  });
  let words = `${labels(shown)}; choose one to see why.`;
  if (!all.length) words = "The model has no label for this text.";
  else if (!shown) words = `No label reaches ${$("threshold").value} %; the best has ${percent(all[0].probability)}.`;
  else if (shown < all.length) words = `${shown} of ${labels(all.length)} at ${$("threshold").value} % or more; choose one to see why.`;
  const value = $("text").value;
  if ((value.toWellFormed?.() ?? value) !== state.text) words += " They belong to the text as it was before you changed it.";
  if ($("summary").textContent !== words) $("summary").textContent = words;
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt("suggest", suggest);
});
$("text").addEventListener("input", count);
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    $("ask").requestSubmit();
  }
});
$("cancel").addEventListener("click", () => {
  suggestLine.cancel();
  infoLine.cancel();
  $("text").focus();
});
$("threshold").addEventListener("input", () => {
  $("least").textContent = `${$("threshold").value} %`;
  $("threshold").setAttribute("aria-valuetext", `${$("threshold").value} percent`);
  if (state.text !== null) summarise();
});

// Explanations

function toggle(at) {
  const closing = state.open === at;
  whyLine.cancel();
  if (state.open !== null) {
    const item = $("labels").children[state.open];
    item.querySelector(".label").setAttribute("aria-expanded", "false");
    item.querySelector(".panel").hidden = true;
  }
  state.open = closing ? null : at;
  if (closing) return;
  const item = $("labels").children[at], panel = item.querySelector(".panel");
  item.querySelector(".label").setAttribute("aria-expanded", "true");
  panel.hidden = false;
  if (!panel.querySelector(".why")) explain(at, panel);
}

function explain(at, panel) {
  const note = make("span", { role: "status" }), stop = make("button", { type: "button" }, "Cancel");
  const wait = make("p", { class: "waiting", hidden: "" }, note, " ", stop);
  stop.addEventListener("click", () => { toggle(at); $("labels").children[at].querySelector(".label").focus(); });
  whyLine.tell = (words) => { wait.hidden = !words; note.textContent = words; };
  attempt("explain", async () => {
    panel.replaceChildren(wait);
    const { label } = state.suggestions[at], { text, told, version } = state;
    // No more labels than needed: each is explained, and with an encoder that takes time.
    for (const top of new Set([at + 1, state.top])) {
      if (told.has(label)) break;
      const body = { text, top_k: top, explain: true, model: state.model };
      const answer = await whyLine.ask("v1/suggest", { body, what: "The server explains" });
      if (answer.version !== version) {
        panel.replaceChildren(make("p", {}, "The model was exchanged for a new version meanwhile; suggest labels again."));
        return;
      }
      for (const one of answer.results[0].explanations) told.set(one.label, one);
    }
    const found = told.get(label), calibrated = typeof state.suggestions[at].probability === "number";
    panel.replaceChildren(found ? explanation(found, text, calibrated ? percent(state.suggestions[at].probability) : "") : make("p", {}, "The server has no explanation of this label."));
    const box = panel.querySelector(".marked"), first = box?.querySelector("mark");
    if (first) box.scrollTop = first.offsetTop - box.offsetTop - 40;
  }, (words, again) => {
    if (!words) return;
    const retry = again ? make("button", { type: "button" }, "Try again") : null;
    retry?.addEventListener("click", again);
    panel.replaceChildren(make("div", { class: "problem", role: "alert" }, words, " ", ...(retry ? [retry] : [])));
  });
}

$("labels").addEventListener("keydown", (event) => {
  const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape" && state.open !== null) {
    const button = $("labels").children[state.open].querySelector(".label");
    toggle(state.open);
    button.focus();
  } else if (move && event.target.classList.contains("label")) {
    event.preventDefault();
    const shown = [...$("labels").querySelectorAll("li:not([hidden]) > .label")];
    shown[shown.indexOf(event.target) + move]?.focus();
  }
});

// Search

const tellSearch = (words) => { $("search-note").textContent = words; };
const searchLine = new Line((words) => { if (words) tellSearch(words); });
let typing = 0;

function search(offset = 0) {
  const q = $("q").value, match = $("match").value;
  searchLine.cancel();
  $("further").hidden = true;
  if (!q.trim()) {
    $("matches").replaceChildren();
    tellSearch("");
    return;
  }
  const query = new URLSearchParams({ q: q.toWellFormed?.() ?? q, match, offset, limit: PAGE_OF_LABELS, model: state.info?.model ?? "" });
  attempt("search", async () => {
    const answer = await searchLine.ask(`v1/labels?${query}`, { what: "The server looks for labels" });
    if (!offset) $("matches").replaceChildren();
    $("matches").append(...answer.labels.map((label) => make("li", { dir: "auto" }, label)));
    const shown = $("matches").children.length;
    const kind = match === "meaning" ? ", the nearest first" : "";
    tellSearch(!answer.total ? "No such label." : shown < answer.total ? `${many(shown)} of ${labels(answer.total)}${kind}` : `${labels(answer.total)}${kind}`);
    $("further").hidden = answer.next_offset === null;
    $("further").onclick = () => search(answer.next_offset);
  }, (words, again) => {
    tellSearch(words);
    if (again) {
      const retry = make("button", { type: "button" }, "Try again");
      retry.addEventListener("click", again);
      $("search-note").append(" ", retry);
    }
  });
}

$("q").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(search, 200);
});
$("match").addEventListener("change", () => search());

attempt("model", () => loadModel());
