// The thread of `neighbours` that attacks: a client whose work must not slow the one that measures. It sends the inputs one
// after another over some connections, each as soon as the one before was answered, until it is ended.
import { Agent, request } from "node:http";
import { parentPort, workerData } from "node:worker_threads";
import { bodyOf, type CostInput } from "../fuzz/cost-inputs.ts";

export type Attack = {
  base_url: string;
  live_key: string;
  domain: string;
  inputs: readonly CostInput[];
  connections: number;
};

/** How many answers of each status there were: posted after each. */
export type Answers = Record<string, number>;

const { base_url, live_key, domain, inputs, connections } = workerData as Attack;
const bodies = inputs.map((input) => ({ ...bodyOf(input, domain), path: input.path }));
const agent = new Agent({ keepAlive: true, maxSockets: connections });
const answers: Answers = {};
const PAUSE_AFTER_FAILURE_MS = 20;

for (let n = 0; n < connections; n += 1) void attack(n);

async function attack(first: number): Promise<void> {
  for (let n = first; ; n += 1) {
    const status = String(await send(bodies[n % bodies.length] as (typeof bodies)[number]));
    answers[status] = (answers[status] ?? 0) + 1;
    parentPort!.postMessage(answers);
  }
}

/** 0: the connection was closed before there was an answer. */
function send({ path, body, type }: (typeof bodies)[number]): Promise<number> {
  return new Promise((done) => {
    const asked = request(base_url + path, {
      method: "POST",
      agent,
      headers: { authorization: `Bearer ${live_key}`, "content-type": type, "content-length": body.length },
    });
    asked.on("response", (response) => {
      response.resume();
      response.on("close", () => done(response.statusCode ?? 0));
    });
    asked.on("error", () => setTimeout(() => done(0), PAUSE_AFTER_FAILURE_MS));
    asked.end(body);
  });
}
