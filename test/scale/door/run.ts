// npm run scale -- door [--cells n --requests n --json]: what the door of several cells costs a request and a mail, beside the way past
// it, in turns. Exit code 0: passed; 1: failed; 2: wrong arguments; 3: there is no nginx here. What is counted: ../README.md.
import { Agent } from "node:https";
import { percentile } from "../../../bench/support/load.ts";
import { type BehindDoor, type CellBehindDoor, SHARED_HOST, setBehindDoor } from "../../support/cells-door.ts";
import { hasNginx } from "../../support/nginx.ts";
import { readOptions, wholeNumber } from "../../support/options.ts";
import { rawSmtp } from "../../support/raw-smtp.ts";

const USE = "npm run scale -- door [--cells n --requests n --json]";
/** As many mails as there are requests, divided by this: each has a connection of its own. */
const MAILS_SHARE = 5;

function readArguments() {
  const options = {
    cells: { type: "string", default: "4" },
    requests: { type: "string", default: "1000" },
    json: { type: "boolean", default: false },
  } as const;
  const { values } = readOptions({ allowPositionals: true, options }, USE);
  const cells = wholeNumber("cells", values.cells, { least: 1, most: 20 }, USE);
  const requests = wholeNumber("requests", values.requests, { least: 1, most: 99_999 }, USE);
  return { cells, requests, json: values.json };
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));

const { cells: count, requests, json } = readArguments();
const print = (line: { ok: boolean }, text: string): void => {
  console.log(text);
  if (json) console.log(JSON.stringify(line));
};
if (!hasNginx()) {
  const skipped = "nginx and its mail module are not installed (Debian: nginx-light libnginx-mod-mail)";
  print({ ...{ cells: 0, skipped }, ok: false }, `not played: ${skipped}`);
  process.exit(3);
}
console.log(`${count} cells behind one door`);
const world = await setBehindDoor(Array.from({ length: count }, (_, n) => `c${n + 1}`));
try {
  const [asked, mailed] = [await timeRequests(world), await timeMails(world)];
  const line = { cells: count, requests, ...asked, ...mailed, ok: asked.wrong === 0 && mailed.refused === 0 };
  for (const [figure, value] of Object.entries(line)) console.log(`  ${figure.padEnd(24)} ${value}`);
  print(line, line.ok ? "passed" : "FAILED");
  await world.close();
  process.exit(line.ok ? 0 : 1);
} catch (error) {
  console.error(error);
  await world.close();
  process.exit(1);
}

type Timed = Record<"direct" | "door", number[]>;

/** Each with a key of the next cell, on connections that stay open. */
async function timeRequests({ cells, ask }: BehindDoor) {
  const agent = new Agent({ keepAlive: true });
  const times: Timed = { direct: [], door: [] };
  const first: number[] = [];
  let wrong = 0;
  for (let n = 0; n < requests; n += 1) {
    const cell = cells[n % cells.length] as CellBehindDoor;
    const direct = await timed(times.direct, () => cell.ask("GET", "/v1/me"));
    const door = await timed(n < cells.length ? first : times.door, () =>
      ask(SHARED_HOST, { key: cell.live_key, agent }),
    );
    if (direct.status !== 200 || JSON.stringify(direct.body) !== JSON.stringify(door.body)) wrong += 1;
  }
  agent.destroy();
  return { ...figures("request", times), request_first_ms: rounded(Math.max(...first)), wrong };
}

/** Each on a connection of its own, from the first byte to the last answer. */
async function timeMails({ cells, ports }: BehindDoor) {
  const times: Timed = { direct: [], door: [] };
  let refused = 0;
  for (let n = 0; n < requests / MAILS_SHARE; n += 1) {
    const { name, mx_port } = cells[n % cells.length] as CellBehindDoor;
    const to = `desk@shop-${name}.example`;
    for (const [way, port] of [
      ["direct", mx_port],
      ["door", ports.mx],
    ] as const) {
      const answer = await timed(times[way], () => deliver(port, to, way === "direct"));
      if (answer.code !== 250) refused += 1;
    }
  }
  return { ...figures("mail", times), refused };
}

/** Past nginx the PROXY header is said here, as the cell wants it from this machine. */
async function deliver(port: number, to: string, isDirect: boolean) {
  const smtp = await rawSmtp(port);
  if (isDirect) smtp.write("PROXY TCP4 127.0.0.1 127.0.0.1 4711 25\r\n");
  await smtp.reply();
  const content = `From: a@b.example\r\nTo: <${to}>\r\nSubject: x\r\n\r\n${"x".repeat(1_000)}\r\n`;
  const answer = await smtp.deliver({ from: "a@b.example", to: [to], content });
  smtp.destroy();
  return answer;
}

async function timed<T>(into: number[], work: () => Promise<T>): Promise<T> {
  const from = performance.now();
  const result = await work();
  into.push(performance.now() - from);
  return result;
}

function figures(what: string, times: Timed): Record<string, number> {
  const named = Object.entries(times).flatMap(([way, each]) =>
    [50, 99].map((share) => [`${what}_${way}_p${share}_ms`, rounded(percentile(each, share))] as const),
  );
  return Object.fromEntries(named);
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
