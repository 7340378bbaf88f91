// A worker: registers, tells that it lives, takes jobs, and reports what came of them.
//
// Every answer may get lost, and every call be made again. What that takes: a name for
// each request for jobs, reports that are sent until they are answered, and a list of
// the jobs at hand with every ping.

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";

import { Discard, Ended, Retry, failed, inWords, sendAll } from "./endings.mjs";
import { ApiError, nap, newBell, persist, sleep } from "./queue.mjs";

export { Discard, Ended, Retry };

const MOST_AT_ONCE = 100;
const LONGEST_TIMER = 2 ** 31 - 1;
// An answer of which nothing is begun costs at least so much, also if it came at once.
const PACE = 1_000;
// For what runs to heed that it is to end.
const HEEDS_WITHIN = 2_000;
// Whoever is told this does not hear anything else by asking again.
const FINAL = new Set([400, 401, 403, 413, 422]);

export class Worker {
  // With an answer due for that long nothing is said of what is at hand: it may tell of
  // more, and what a ping does not name goes back after a minute. If it does not come
  // then, another one is asked for.
  static answerIsOld = 45_000;

  #handlers = new Map();
  #running = new Set();
  #reports = [];
  #me = null;
  #askedAt = null;
  #heard = null;
  // Jobs that it asks for, at most: few where answers do not get through.
  #atOnce = MOST_AT_ONCE;
  #isLeaving = false;
  #hasGivenUp = false;
  #error = null;
  #over = new AbortController();
  #change = newBell();

  constructor(queue, { queues = [], concurrency = 1, name = "node", version = "", wait = 20, pingEvery, grace = 25 } = {}) {
    Object.assign(this, { queue, queues, concurrency, name, version, wait, pingEvery, grace });
  }

  /** Perform tasks of that name: the handler gets the job, and returns its result. */
  task(name, handler) {
    this.#handlers.set(name, handler);
    return this;
  }

  /** Work until TERM, INT, `stop()`, or an order from the queue. */
  async run() {
    const stop = () => this.stop();
    for (const each of ["SIGTERM", "SIGINT"]) process.on(each, stop);
    const loops = [this.#fetch, this.#ping, this.#report];
    for (const each of loops) each.call(this).catch((error) => this.#fail(error));
    while (!this.#isLeaving) await this.#change.next();
    await this.#finish();
    for (const each of ["SIGTERM", "SIGINT"]) process.off(each, stop);
    if (this.#error) throw this.#error;
  }

  /** Take nothing any more, finish what runs, and leave. Said twice: leave at once. */
  stop() {
    if (this.#isLeaving) this.grace = 0;
    this.#isLeaving = true;
    this.#change.ring();
  }

  // ── Loops ────────────────────────────────────────────────────────────────────

  async #fetch() {
    while (!this.#isLeaving) {
      if (!this.#me) await this.#register();
      const room = this.concurrency - this.#running.size;
      if (room > 0 && this.#reports.length < 2 * MOST_AT_ONCE) await this.#dequeue(room);
      else await this.#change.next();
    }
  }

  async #ping() {
    while (!this.#isOver) {
      const longest = 1000 * (this.pingEvery ?? this.#me?.ping_every ?? 1);
      await this.#nap(longest, () => this.#isOver);
      const me = this.#me;
      // With every try it is another thing that is held.
      if (me && !this.#isOver) {
        const call = () => this.#call(me, "ping", { body: this.#atHand() });
        // However long the queue was away, it hears of this one as soon as it expects to.
        this.#heed(me, (await this.#again(call, { longest })).data);
      }
    }
  }

  async #report() {
    while (!this.#isOver) {
      const reports = this.#reports.slice(0, MOST_AT_ONCE), me = this.#me;
      if (!reports.length || !me) {
        await this.#change.next();
        continue;
      }
      if (!(await this.#send(me, reports))) this.#lose(me);
      this.#reports = this.#reports.filter((each) => !reports.includes(each));
      this.#change.ring();
    }
  }

  // ── Calls ────────────────────────────────────────────────────────────────────

  async #register() {
    const body = { queues: this.queues, name: this.name, version: this.version, hostname: hostname(), pid: process.pid };
    // Who is not let in, or finds nothing there, has got something wrong.
    const isPassing = (error) => error.isPassing || error.status >= 500;
    const call = () => this.queue.call("register", { body, signal: this.#over.signal });
    this.#me = (await persist(call, { isOver: () => this.#isLeaving, isPassing })).data;
    console.log(`Registered as ${this.#me.name}.`);
  }

  async #dequeue(room) {
    const me = this.#me, askedAt = performance.now();
    this.#askedAt = askedAt;
    const answer = await this.#answer(me, Math.min(room, this.#atOnce)).catch((error) => error);
    this.#askedAt = null;
    if (answer instanceof Error) return this.#askForLess(answer);
    const { data, heardAt } = answer;
    if (data.jobs.length) this.#atOnce = Math.min(2 * this.#atOnce, MOST_AT_ONCE);
    const jobs = me === this.#me ? data.jobs : [];
    const begun = jobs.filter((job) => this.#begin(job, heardAt, data.cancelled));
    this.#heed(me, data);
    if (!begun.length && data.alive) await this.#nap(askedAt + PACE - performance.now());
  }

  /** What the queue says to one request, however often that has to be sent. */
  #answer(me, limit) {
    const body = { limit, wait: this.wait, request_id: randomUUID() };
    const call = () => this.#call(me, "dequeue", { body, longer: 1000 * this.wait });
    return this.#again(call, { isOver: () => this.#isLeaving, patience: Worker.answerIsOld });
  }

  /** It may be one answer that never gets through. What it tells of goes back, since no ping names it. */
  async #askForLess(error) {
    if (!(error instanceof ApiError) || FINAL.has(error.status)) throw error;
    this.#atOnce = 1;
    await this.#nap(Math.max(PACE, 1000 * error.retryAfter));
  }

  #send(me, reports) {
    const post = async (outcomes) =>
      (await this.#again(() => this.#call(me, "outcomes", { body: { outcomes } }))).data;
    return sendAll(post, reports);
  }

  #call(me, operationId, how) {
    return this.queue.call(operationId, {
      at: { worker_id: me.id }, bearer: me.secret, signal: this.#over.signal, ...how,
    });
  }

  #again(call, how = {}) {
    return persist(call, { isOver: () => this.#isOver, isPassing: (error) => !FINAL.has(error.status), ...how });
  }

  #heed(me, pulse) {
    this.#heard = pulse.now;
    if (!pulse.alive) this.#lose(me);
    for (const each of this.#running) {
      if (pulse.cancelled.includes(each.id)) each.controller.abort(new Ended("cancelled"));
    }
    if (pulse.stop && !this.#isLeaving) this.stop();
  }

  /** It was taken for dead: whatever it has is somebody else's. */
  #lose(me) {
    if (me !== this.#me) return;
    console.warn(`${me.name} was taken for dead.`);
    this.#me = null;
    this.#reports = [];
    this.#giveUp();
    this.#change.ring();
  }

  /** Have end what runs, for nothing; which jobs are these? */
  #giveUp() {
    const mine = [...this.#running].filter((each) => !each.isLost);
    for (const each of mine) {
      each.isLost = true;
      each.controller.abort(new Ended("lost"));
    }
    return mine;
  }

  #atHand() {
    const isDue = this.#askedAt !== null && performance.now() - this.#askedAt > Worker.answerIsOld;
    // Of what was given up, and may run on, nothing is to go back by that.
    if (isDue || this.#hasGivenUp || !this.#heard) return {};
    const running = [...this.#running].filter((each) => !each.isLost);
    const jobs = [...running.map((each) => each.id), ...this.#reports.map((each) => each.job)];
    return { jobs, as_of: this.#heard };
  }

  // ── Jobs ─────────────────────────────────────────────────────────────────────

  /** Begin a job that was told of at that moment, unless it is too late; is it begun? */
  #begin(told, heardAt, cancelled) {
    const { id: job, token } = told;
    // Clocks are set, and those of two machines differ: this one only counts.
    const left = told.seconds_left === null
      ? LONGEST_TIMER : heardAt + 1000 * told.seconds_left - performance.now();
    // Not begun in time: another attempt has time of its own.
    const isCancelled = cancelled.includes(job);
    if (isCancelled || this.#isLeaving || left <= 0) {
      this.#reports.push({ job, token, outcome: isCancelled ? "cancelled" : "released" });
      this.#change.ring();
      return false;
    }
    const controller = new AbortController();
    const mine = { ...told, controller, isLost: false, signal: controller.signal };
    const expire = () => controller.abort(new Ended("timed_out"));
    // It does not keep a program alive that has left.
    const timer = setTimeout(expire, Math.min(left, LONGEST_TIMER)).unref();
    this.#running.add(mine);
    this.#perform(mine).then((ended) => {
      clearTimeout(timer);
      this.#running.delete(mine);
      if (ended.outcome !== "succeeded") console.warn(inWords(mine, ended));
      if (!mine.isLost) this.#reports.push({ job, token, ...ended });
      this.#change.ring();
    });
    return true;
  }

  async #perform(job) {
    const handler = this.#handlers.get(job.task);
    // To give it back would have it taken again at once, for ever.
    if (!handler) return failed({ name: "UnknownTask", message: `No handler for ${job.task}.` });
    try {
      const result = await handler(job);
      // As it will be sent: what cannot be is an error of this job alone.
      return { outcome: "succeeded", result: JSON.parse(JSON.stringify(result) ?? "null") };
    } catch (error) {
      if (error instanceof Ended) return { outcome: error.outcome };
      if (error instanceof Retry) return { ...failed(error), retry_after: error.after };
      return { ...failed(error), final: error instanceof Discard };
    }
  }

  // ── The end ──────────────────────────────────────────────────────────────────

  async #finish() {
    const isReported = () => this.#error || !this.#reports.length;
    await this.#rest(() => this.#error || (isReported() && !this.#running.size), () => 1000 * this.grace);
    this.#hasGivenUp = true;
    const mine = this.#giveUp();
    const runOn = () => mine.filter((each) => this.#running.has(each)).length;
    await this.#rest(() => isReported() && !runOn(), () => HEEDS_WITHIN);
    // To sign off would have them begun elsewhere, beside those here.
    if (runOn()) console.warn(`Jobs that run on until this program ends: ${runOn()}.`);
    // Otherwise it is missed after a while, which does as well.
    else if (this.#me) await this.#call(this.#me, "dismiss").catch(() => {});
    this.#over.abort();
    this.#change.ring();
  }

  /** Wait until it is so, or for so long, which may change. */
  async #rest(isSo, longest) {
    const begun = performance.now();
    while (!isSo() && performance.now() < begun + longest()) {
      await Promise.race([this.#change.next(), sleep(100)]);
    }
  }

  #fail(error) {
    // What was given up because the worker leaves is no trouble.
    if (this.#isLeaving && error instanceof ApiError && !FINAL.has(error.status)) return;
    this.#error ??= error;
    this.stop();
  }

  get #isOver() {
    return this.#over.signal.aborted;
  }

  #nap(milliseconds, isOver = () => this.#isLeaving) {
    return nap(milliseconds, isOver);
  }
}
