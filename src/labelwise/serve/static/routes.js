// All routes of the server, from openapi.json.

import { ask } from "./ask.js";
import { make } from "./why.js";

const $ = (id) => document.getElementById(id);
const plain = (words = "") => words.replaceAll("`", "");
const last = (reference = "") => reference.split("/").at(-1);

let schemas = {};

/** The name of a type: "integer", "list of strings", "TextResult". */
function type(schema = {}) {
  if (schema.$ref) return last(schema.$ref);
  if (schema.enum) return schema.enum.join(", ");
  if (schema.anyOf) return schema.anyOf.map(type).join(" or ");
  if (schema.type === "array") return `list of ${type(schema.items)}`;
  return schema.type ?? "any";
}

function limits(schema) {
  const parts = [];
  if (schema.minimum !== undefined) parts.push(`at least ${schema.minimum}`);
  if (schema.maximum !== undefined) parts.push(`at most ${schema.maximum}`);
  if (schema.maxLength !== undefined) parts.push(`at most ${schema.maxLength} characters`);
  if (schema.default !== undefined) parts.push(`default ${JSON.stringify(schema.default)}`);
  return parts.join(", ");
}

function row(name, schema, about, required) {
  const kind = [type(schema), limits(schema), required ? "required" : ""].filter(Boolean).join("; ");
  return make("tr", {}, make("th", { scope: "row" }, make("code", {}, name)), make("td", {}, plain(about), about ? make("br") : "", make("span", { class: "quiet" }, kind)));
}

function fields(caption, schema, sent = true) {
  const found = schema?.$ref ? schemas[last(schema.$ref)] : schema;
  const rows = Object.entries(found?.properties ?? {}).map(([name, one]) => row(name, one, one.description, sent && found.required?.includes(name)));
  return rows.length ? make("table", {}, make("caption", {}, caption), make("tbody", {}, ...rows)) : null;
}

function example(schema) {
  const found = schema?.$ref ? schemas[last(schema.$ref)] : schema;
  const given = found?.examples?.[0];
  return given === undefined ? null : make("pre", { tabindex: "0" }, JSON.stringify(given, null, 2));
}

function route(path, method, told) {
  const parameters = (told.parameters ?? []).map((one) => row(one.name, one.schema, one.description ?? one.schema?.description, one.required));
  const sent = told.requestBody?.content?.["application/json"]?.schema;
  const back = told.responses?.["200"]?.content?.["application/json"]?.schema;
  const errors = Object.entries(told.responses ?? {}).filter(([code]) => code !== "200")
    .map(([code, one]) => make("tr", {}, make("th", { scope: "row" }, code), make("td", {}, one.description)));
  return make("section", { class: "card" },
    make("h2", {}, make("span", { class: "method" }, method.toUpperCase()), ` ${path}`),
    make("p", {}, plain(told.description ?? told.summary)),
    parameters.length ? make("table", {}, make("caption", {}, "Parameters"), make("tbody", {}, ...parameters)) : null,
    fields("Body", sent), example(sent),
    fields("Answer", back, false), example(back),
    errors.length ? make("details", {}, make("summary", {}, "Errors"), make("table", {}, make("tbody", {}, ...errors))) : null);
}

try {
  const told = await ask("openapi.json");
  schemas = told.components?.schemas ?? {};
  $("about").textContent = `${told.info.title} ${told.info.version}. ${plain(told.info.description)}`;
  $("routes").replaceChildren(...Object.entries(told.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => route(path, method, one))));
} catch (error) {
  $("problem").hidden = false;
  $("problem").textContent = error.message;
}
