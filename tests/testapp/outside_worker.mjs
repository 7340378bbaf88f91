// A worker outside in Node: what it does is told in the file of a witness, in lines as
// tests/testapp/witnessed_tasks.py writes them, by the same clock.

import { appendFileSync } from "node:fs";

import { openQueue } from "../../example_project/node_worker/queue.mjs";
import { Discard, Retry, Worker } from "../../example_project/node_worker/worker.mjs";

const { QUEUE_URL, QUEUE_TOKEN, QUEUE_NAMES, QUEUE_CONCURRENCY, QUEUE_PING, QUEUE_OLD, QUEUE_GRACE, RQ_WITNESS } = process.env;
if (QUEUE_OLD) Worker.answerIsOld = Number(QUEUE_OLD);

function tell(event, label) {
  const seconds = (Number(process.hrtime.bigint()) / 1e9).toFixed(6);
  appendFileSync(RQ_WITNESS, `${event} ${label} ${process.pid} ${seconds}\n`);
}

const rest = (seconds, signal) =>
  new Promise((resolve, reject) => {
    setTimeout(resolve, 1000 * seconds);
    signal.addEventListener("abort", () => reject(signal.reason));
  });

async function note({ args: [label, seconds], signal }) {
  tell("begins", label);
  await rest(seconds, signal);
  tell("ends", label);
}

function fail({ args: [how] }) {
  if (how === "deaf") {
    tell("begins", how);
    return new Promise((resolve) => setTimeout(resolve, 60_000));
  }
  if (how === "discard") throw new Discard("never");
  if (how === "retry") throw new Retry("later", 3600);
  if (how === "never") throw new Retry("never", Infinity);
  if (how === "nothing") throw Object.create(null);
  if (how === "mute") throw { toString: () => missing };
  throw new RangeError(how);
}

const worker = new Worker(await openQueue(QUEUE_URL, QUEUE_TOKEN), {
  queues: QUEUE_NAMES.split(","),
  concurrency: Number(QUEUE_CONCURRENCY ?? 3),
  pingEvery: Number(QUEUE_PING ?? 0) || undefined,
  grace: Number(QUEUE_GRACE ?? 25),
  wait: 2,
});
worker
  .task("outside-add", ({ args: [first, second] }) => first + second)
  .task("outside-big", () => "x".repeat(5_000_000))
  .task("outside-fragile", fail)
  .task("outside-hasty", ({ signal }) => rest(3600, signal))
  .task("outside-noted", note)
  .task("outside-limited", note)
  .task("tests.testapp.outside_tasks.noted_by_anybody", note)
  .task("tests.testapp.outside_tasks.limited_for_anybody", note);
try {
  await worker.run();
} catch (error) {
  console.error(`${error.message}`);
  process.exitCode = 1;
}
process.exit();
