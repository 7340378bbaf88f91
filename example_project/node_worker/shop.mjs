// The shop's parcel labels are drawn by a program in another language, over the API:
//
//     QUEUE_URL=http://127.0.0.1:8000/queue/ QUEUE_TOKEN=rq_... node shop.mjs

import { openQueue } from "./queue.mjs";
import { Discard, Worker } from "./worker.mjs";

const { QUEUE_URL: url, QUEUE_TOKEN: token } = process.env;
if (!url || !token) throw new Error("QUEUE_URL and QUEUE_TOKEN say where to work.");

const escaped = (text) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);

function drawLabel({ args: [parcel, lines] }) {
  if (!lines.length) throw new Discard(`Parcel ${parcel} has no address.`);
  const texts = lines.map((line, n) => `<text x="20" y="${80 + 30 * n}">${escaped(line)}</text>`);
  return [
    '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="240">',
    '<rect width="400" height="240" fill="none" stroke="black"/>',
    `<text x="20" y="40" font-weight="bold">Parcel ${parcel}</text>`,
    ...texts,
    "</svg>",
  ].join("");
}

try {
  const queue = await openQueue(url, token);
  const worker = new Worker(queue, { queues: ["labels"], concurrency: 10, name: "labels" });
  await worker.task("draw-label", drawLabel).run();
} catch (error) {
  console.error(`${error.message}`);
  process.exitCode = 1;
}
// Also if there is still a handler that heeds no signal.
process.exit();
