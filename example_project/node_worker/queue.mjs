// A queue, as its OpenAPI document describes it: calls are known by their operationId,
// and where they go is read from the document.

const PASSING = new Set([429, 502, 503, 504]);
const FIRST_PAUSE = 100, LONGEST_PAUSE = 10_000;
const TIMEOUT = 10_000;

/** The queue has refused a call, or could not be reached (its status is 0 then). */
export class ApiError extends Error {
  constructor(status, code, detail, { retryAfter = 0, errors } = {}) {
    const told = Array.isArray(errors) ? errors : [];
    const misfits = told.map((each) => `${each?.where}: ${each?.problem}`).join("; ");
    super(`${status} ${code}: ${detail} ${misfits}`.trimEnd());
    this.name = "ApiError";
    Object.assign(this, { status, code, detail, retryAfter });
  }

  /** May it be better in a moment? */
  get isPassing() {
    return this.status === 0 || PASSING.has(this.status);
  }
}

/** Read the document of the queue at an address, with a token for it. */
export async function openQueue(url, token, isOver = () => false) {
  token = checkedToken(token);
  const root = url.endsWith("/") ? url : `${url}/`;
  const fetched = persist(() => send(new URL("v1/openapi.json", root), { bearer: token }), { isOver });
  return new Queue(root, token, (await fetched).data);
}

/** As it was meant: files end in a line break. What is wrong with it is told without it. */
function checkedToken(token) {
  const told = token.trim();
  if (/^[\w.~+/-]+=*$/.test(told)) return told;
  throw new Error(told ? "The token has characters that no token has." : "The token is empty.");
}

class Queue {
  #operations = new Map();

  constructor(root, token, document) {
    Object.assign(this, { root, token });
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, { operationId }] of Object.entries(methods)) {
        this.#operations.set(operationId, { path, method: method.toUpperCase() });
      }
    }
  }

  /** Make a call once. The names in its path are given by `at`. */
  async call(operationId, { at = {}, bearer = this.token, ...rest } = {}) {
    const operation = this.#operations.get(operationId);
    if (!operation) throw new Error(`This queue has no call ${operationId}.`);
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(at[name]));
    return send(new URL(path, this.root), { method: operation.method, bearer, ...rest });
  }
}

/** Make a call until it is answered, or until there is no time any more. */
export async function persist(call, {
  isOver = () => false, isPassing = (error) => error.isPassing, patience = Infinity, longest = LONGEST_PAUSE,
} = {}) {
  const until = performance.now() + patience;
  for (let pause = FIRST_PAUSE; ; pause *= 2) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ApiError) || !isPassing(error) || isOver()) throw error;
      // Not all who wait for the same server come back at the same moment.
      pause = Math.min(pause, longest, LONGEST_PAUSE);
      const jittered = pause * (0.5 + Math.random() / 2);
      const longer = Math.max(jittered, 1000 * error.retryAfter);
      if (performance.now() + longer > until) throw error;
      console.warn(`${error.message} Trying again in ${(longer / 1000).toFixed(1)} s.`);
      await nap(longer, isOver);
    }
  }
}

/** Sleep for so long, or until it is over. By a clock that nobody sets. */
export async function nap(milliseconds, isOver) {
  const until = performance.now() + milliseconds;
  while (performance.now() < until && !isOver()) {
    await sleep(Math.min(100, until - performance.now()));
  }
}

export const sleep = (milliseconds) =>
  new Promise((resolve) => setTimeout(resolve, Math.max(milliseconds, 0)));

/** Rings for all who wait at that moment. */
export function newBell() {
  let ring, next;
  const renew = () => (next = new Promise((resolve) => (ring = resolve)));
  renew();
  return { next: () => next, ring: () => (ring(), renew()) };
}

async function send(url, { method = "GET", bearer, body, longer = 0, signal } = {}) {
  const headers = { Authorization: `Bearer ${bearer}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const sent = body && JSON.stringify(body);
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), TIMEOUT + longer);
  const hangUp = () => abort.abort();
  signal?.addEventListener("abort", hangUp);
  try {
    const answer = await fetch(url, {
      method, headers, signal: abort.signal, body: sent,
    });
    const text = await answer.text();
    return { data: read(answer, text), heardAt: performance.now() };
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError(0, "unreachable", `${method} ${url.pathname}: ${error.cause ?? error}`);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", hangUp);
  }
}

function read(answer, text) {
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    data = { code: "not_json", detail: text.slice(0, 200) };
    if (answer.ok) throw new ApiError(answer.status, data.code, data.detail);
  }
  if (answer.ok) return data;
  const after = Number(answer.headers.get("Retry-After")) || 0;
  throw new ApiError(answer.status, data.code, data.detail, { retryAfter: after, errors: data.errors });
}
