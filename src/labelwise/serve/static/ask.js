// Asking the server: one way for every request, and every failure as a sentence.

const SLOW = 400; // milliseconds before a wait is told
const RETRIES = 3;
const KEY = "labelwise-key";

export class Problem extends Error {
  constructor(message, { status = 0, code = "", after = null } = {}) {
    super(message);
    Object.assign(this, { status, code, after });
  }
}

export class Cancelled extends Error {}

let key = "";
try {
  key = sessionStorage.getItem(KEY) ?? "";
} catch { /* storage may be forbidden; the key then lives as long as the page */ }

export function setKey(given) {
  key = given;
  try {
    sessionStorage.setItem(KEY, given);
  } catch { /* as above */ }
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** One request: the answer's JSON, or a Problem. Addresses are relative, so that a proxy may put the page anywhere. */
export async function ask(path, { body, signal } = {}) {
  const headers = key ? { "X-API-Key": key } : {};
  const options = { headers, signal, cache: "no-store", credentials: "same-origin" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  let answer, content;
  try {
    answer = await fetch(path, options);
    content = await answer.text();
  } catch {
    if (signal?.aborted) throw new Cancelled();
    const gone = navigator.onLine === false
      ? "This device is offline. Your text is kept; try again when the network is back."
      : "The server does not answer. It may have been stopped, or the network is gone. Your text is kept; try again.";
    throw new Problem(gone, { code: "gone" });
  }
  let value = null;
  try {
    value = JSON.parse(content);
  } catch { /* told below */ }
  if (answer.ok && value !== null) return value;
  const error = value?.error;
  const message = typeof error?.message === "string"
    ? sentence(error.message)
    : `The server answered with status ${answer.status}, and not in a way that this page understands. Something between may be broken; try again.`;
  const after = Number.parseInt(answer.headers.get("Retry-After") ?? "", 10);
  throw new Problem(message, {
    status: answer.status,
    code: error?.code ?? "",
    after: Number.isFinite(after) ? Math.min(Math.max(after, 1), 60) : null,
  });
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(new Cancelled()); }, { once: true });
  });
}

/** Requests of which only the newest counts: a new one, or cancel(), ends the one before. */
export class Line {
  /** `tell(words)` is called when a wait is worth a word, with "" when it is over. */
  constructor(tell = () => {}) {
    this.tell = tell;
    this.controller = null;
  }

  cancel() {
    this.controller?.abort();
    this.controller = null;
    this.tell("");
  }

  async ask(path, { body, what = "The server works" } = {}) {
    this.cancel();
    const controller = (this.controller = new AbortController());
    const { signal } = controller;
    const say = (words) => { if (this.controller === controller) this.tell(words); };
    try {
      for (let attempt = 0; ; attempt++) {
        const stop = this.#watch(what, say);
        try {
          const value = await ask(path, { body, signal });
          if (signal.aborted) throw new Cancelled();
          return value;
        } catch (error) {
          if (signal.aborted) throw new Cancelled();
          if (error.status !== 503 || error.after === null || attempt === RETRIES) throw error;
          stop();
          for (let left = error.after; left > 0; left--) {
            say(`${error.message} Trying again in ${left} s.`);
            await pause(1, signal);
          }
        } finally {
          stop();
        }
      }
    } finally {
      say("");
      if (this.controller === controller) this.controller = null;
    }
  }

  #watch(what, say) {
    const start = performance.now();
    let ticking;
    const first = setTimeout(() => {
      say(`${what} …`);
      // Counted rarely: a screen reader reads every change.
      ticking = setInterval(() => say(`${what}, for ${Math.round((performance.now() - start) / 1000)} s now …`), 3000);
    }, SLOW);
    return () => { clearTimeout(first); clearInterval(ticking); };
  }
}
