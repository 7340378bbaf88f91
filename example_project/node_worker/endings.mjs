// How a job ends: what handlers throw, and what is told of it.

const LONGEST_TEXT = 65_536;
// Malformed, too large, or not as it has to be: to send it again does not help.
const REFUSED = new Set([400, 413, 422]);
// Seconds after which the queue tries again at the latest.
const A_YEAR = 31_536_000;

/** Thrown by a handler: try again after so many seconds, within the task's attempts. */
export class Retry extends Error {
  constructor(message, after) {
    super(message);
    this.after = Number(after);
    if (!(this.after >= 0 && this.after <= A_YEAR)) {
      throw new RangeError(`After ${after} seconds? It has to be from 0 to a year.`);
    }
  }
}

/** Thrown by a handler: it is of no use to try again. */
export class Discard extends Error {}

/** Why the signal of a job is aborted, and thrown by handlers that heed it. */
export class Ended extends Error {
  constructor(outcome) {
    super(`The job is ${outcome}.`);
    this.outcome = outcome;
  }
}

/** What is told of anything that was thrown. */
export function failed(error) {
  // Anything may be thrown, also what has no text.
  const cut = (read, length) => {
    try {
      return String(read() ?? "").slice(0, length);
    } catch {
      return "";
    }
  };
  // Classes of errors seldom give themselves a name.
  const name = () => (error?.name === "Error" ? error.constructor.name : error?.name ?? "Error");
  return {
    outcome: "failed",
    error: {
      type: cut(name, 255),
      message: cut(() => error?.message ?? error, LONGEST_TEXT),
      traceback: cut(() => error?.stack, LONGEST_TEXT),
    },
  };
}

/** How an attempt has ended, as a line for people. */
export function inWords({ id, task, attempt }, { outcome, error }) {
  // Quoted, so that no message looks like a line of somebody else's.
  const why = error ? `: ${error.type}: ${JSON.stringify(error.message)}` : "";
  return `Job ${id} (${task}, attempt ${attempt}) ${outcome.replace("_", " ")}${why}.`;
}

/** Send reports, in as many parts as it takes. Is the worker alive? */
export async function sendAll(post, outcomes) {
  try {
    return (await post(outcomes)).alive;
  } catch (refusal) {
    if (!REFUSED.has(refusal.status)) throw refusal;
    const middle = outcomes.length >> 1;
    if (middle) {
      // To both, whatever the first one brings.
      const first = await sendAll(post, outcomes.slice(0, middle));
      return (await sendAll(post, outcomes.slice(middle))) && first;
    }
    const { job, token } = outcomes[0];
    const error = { type: "OutcomeRefused", message: refusal.message };
    return (await post([{ job, token, outcome: "failed", error }])).alive;
  }
}
