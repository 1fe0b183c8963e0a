// The process of `neighbours` that attacks: a client whose work must not slow the one that measures, nor the service, as it
// stands for another machine. It sends the inputs one after another over some connections, each as soon as the one before
// was answered, until it is ended.
import { Agent, request } from "node:http";
import { bodyOf, type CostInput } from "../fuzz/cost-inputs.ts";
import { standAside } from "./other-machine.ts";

export type Attack = {
  base_url: string;
  live_key: string;
  domain: string;
  inputs: readonly CostInput[];
  connections: number;
};

/** How many answers of each status there were: posted after each. */
export type Answers = Record<string, number>;

const PAUSE_AFTER_FAILURE_MS = 20;
const answers: Answers = {};
let agent: Agent;

process.once("message", (attack: Attack) => begin(attack));
process.once("disconnect", () => process.exit());

function begin({ base_url, live_key, domain, inputs, connections }: Attack): void {
  standAside();
  agent = new Agent({ keepAlive: true, maxSockets: connections });
  const asked = inputs.map((input) => {
    const { body, type } = bodyOf(input, domain);
    const headers = { authorization: `Bearer ${live_key}`, "content-type": type, "content-length": body.length };
    return { url: base_url + input.path, headers, body };
  });
  for (let n = 0; n < connections; n += 1) void attackFrom(n, asked);
}

type Ask = { url: string; headers: Record<string, string | number>; body: Buffer };

async function attackFrom(first: number, asked: readonly Ask[]): Promise<void> {
  for (let n = first; ; n += 1) {
    const status = String(await send(asked[n % asked.length] as Ask));
    answers[status] = (answers[status] ?? 0) + 1;
    process.send?.(answers);
  }
}

/** 0: the connection was closed before there was an answer. */
function send({ url, headers, body }: Ask): Promise<number> {
  return new Promise((done) => {
    const asked = request(url, { method: "POST", agent, headers });
    asked.on("response", (response) => {
      response.resume();
      response.on("close", () => done(response.statusCode ?? 0));
    });
    asked.on("error", () => setTimeout(() => done(0), PAUSE_AFTER_FAILURE_MS));
    asked.end(body);
  });
}
