// The recording server of the conformance set: it plays what each case says the server does, and notes what the library
// asked. A case has a base URL of its own, `/case/<runner>/<case>`, so that many run at once and a path prefix is always
// tried. `GET /cases` gives all cases, `GET /verdict/<runner>/<case>` what differed. Prints its address as one line.
// Not here: whether the outcome in the library is right, which its runner compares (README.md of this folder).
import { globSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";

export type Expected = {
  method?: string;
  /** Decoded segments are compared; the path of the call without the prefix. */
  path?: string;
  query?: { [name: string]: string };
  headers?: { [name: string]: string | { absent: true } | { matches: string } };
  json?: unknown;
  body_base64?: string;
  no_body?: true;
};

export type Respond = {
  status?: number;
  headers?: { [name: string]: string };
  json?: unknown;
  text?: string;
  body_base64?: string;
  /** The connection breaks before an answer, or after its head and some of its body. */
  reset?: "before" | "after_headers";
  /** An answer before the answer (103, RFC 8297) with these. */
  early?: { [name: string]: string };
  /** No answer for this long. */
  stall_ms?: number;
  /** The body comes in so many pieces, with so long between them. */
  pieces?: { count: number; pause_ms: number };
};

export type Case = {
  name: string;
  group: string;
  client?: { [name: string]: unknown };
  call: { [name: string]: unknown };
  exchanges?: { expect?: Expected; respond: Respond }[];
  waits?: number[];
  outcome: { [name: string]: unknown };
};

type Played = { next: number; problems: string[]; bound: Map<string, string> };

/** All cases, in the order of their files and names. A name stands once. */
export function readCases(): Case[] {
  const files = globSync("cases/*.json", { cwd: import.meta.dirname }).sort();
  const cases = files.flatMap((file) => JSON.parse(readFileSync(join(import.meta.dirname, file), "utf8")) as Case[]);
  const names = new Set<string>();
  for (const { name } of cases) {
    if (names.has(name)) throw new Error(`two cases are called '${name}'`);
    names.add(name);
  }
  return cases;
}

/** Starts it on any port of loopback. */
export async function startConformanceServer(cases: readonly Case[]): Promise<{ url: string; stop(): Promise<void> }> {
  const played = new Map<string, Played>();
  const server = createServer((request, response) => {
    answer({ cases, played }, request, response).catch((error) => {
      response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

type State = { cases: readonly Case[]; played: Map<string, Played> };

async function answer(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = request.url ?? "/";
  if (url === "/cases") return sendJson(response, state.cases);
  const [, kind, runner, index] = url.split("/");
  const name = `${runner}/${index}`;
  const played: Played = state.played.get(name) ?? { next: 0, problems: [], bound: new Map() };
  const one = state.cases[Number(index)];
  if (!one || !runner) return sendJson(response, { error: `no case ${index}` }, 404);
  if (kind === "verdict") return sendJson(response, verdictOf(one, played));
  state.played.set(name, played);
  const body = await readBody(request);
  const exchange = one.exchanges?.[played.next];
  played.next += 1;
  if (!exchange) {
    played.problems.push(`request ${played.next} (${request.method} ${url}) was not expected`);
    return sendJson(response, { error: "not expected", code: "unexpected" }, 400);
  }
  const asked = { request, url: url.slice(`/case/${name}`.length), body, bound: played.bound };
  for (const problem of compare(exchange.expect ?? {}, asked)) {
    played.problems.push(`request ${played.next}: ${problem}`);
  }
  await respond(exchange.respond, response);
}

function verdictOf({ exchanges = [] }: Case, { next, problems }: Played): { ok: boolean; problems: string[] } {
  const missing = next < exchanges.length ? [`${exchanges.length} requests were expected, ${next} came`] : [];
  const all = [...problems, ...missing];
  return { ok: all.length === 0, problems: all };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

// What was asked -----------------------------------------------------------------------------------------------------

type Asked = { request: IncomingMessage; url: string; body: Buffer; bound: Map<string, string> };

function* compare(expected: Expected, { request, url, body, bound }: Asked): Generator<string> {
  const [path = "", search = ""] = url.split("?", 2);
  if (expected.method !== undefined && request.method !== expected.method) {
    yield `the method is ${request.method}, not ${expected.method}`;
  }
  if (expected.path !== undefined && !isDeepStrictEqual(segments(path), segments(expected.path))) {
    yield `the path is ${path}, not ${expected.path}`;
  }
  const query = Object.fromEntries(new URLSearchParams(search));
  if (expected.query !== undefined && !isDeepStrictEqual(query, expected.query)) {
    yield `the query is ${JSON.stringify(query)}, not ${JSON.stringify(expected.query)}`;
  }
  for (const [name, wanted] of Object.entries(expected.headers ?? {})) {
    const problem = compareHeader(request.headers[name.toLowerCase()] as string | undefined, wanted, bound);
    if (problem) yield `the header ${name} ${problem}`;
  }
  yield* compareBody(expected, body);
}

/** `%2F` in a segment is a character of it, not a border. */
function segments(path: string): string[] {
  return path.split("/").map(decodeURIComponent);
}

/** `$name` is bound to what comes first, and the same from then on. */
function compareHeader(
  given: string | undefined,
  wanted: string | { absent: true } | { matches: string },
  bound: Map<string, string>,
): string | null {
  if (typeof wanted === "object") {
    if ("absent" in wanted) return given === undefined ? null : `is ${given}, and should be absent`;
    return new RegExp(wanted.matches).test(given ?? "") ? null : `is ${given}, which does not match ${wanted.matches}`;
  }
  if (given === undefined) return "is missing";
  if (!wanted.startsWith("$")) return given === wanted ? null : `is ${given}, not ${wanted}`;
  const before = bound.get(wanted);
  bound.set(wanted, given);
  return before === undefined || before === given ? null : `is ${given}, and was ${before} before`;
}

function* compareBody(expected: Expected, body: Buffer): Generator<string> {
  if (expected.no_body && body.length > 0) yield `the body is ${body.toString().slice(0, 200)}, and should be absent`;
  if (expected.body_base64 !== undefined && !body.equals(Buffer.from(expected.body_base64, "base64"))) {
    yield "the body has other bytes";
  }
  if (expected.json === undefined) return;
  let given: unknown;
  try {
    given = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    yield `the body is not JSON: ${body.toString().slice(0, 200)}`;
    return;
  }
  if (!isDeepStrictEqual(given, expected.json)) {
    yield `the body is ${JSON.stringify(given)}, not ${JSON.stringify(expected.json)}`;
  }
}

// What is answered ---------------------------------------------------------------------------------------------------

async function respond(given: Respond, response: ServerResponse): Promise<void> {
  if (given.stall_ms) await new Promise((done) => setTimeout(done, given.stall_ms));
  if (given.reset === "before") return void response.socket?.resetAndDestroy();
  if (given.early) response.writeEarlyHints(given.early);
  const body = bodyOf(given);
  const type = given.json === undefined ? {} : { "content-type": "application/json; charset=utf-8" };
  // A 204 has no body, and so no length (RFC 9110 §8.6).
  const length = given.status === 204 ? {} : { "content-length": String(body.length) };
  response.writeHead(given.status ?? 200, { ...type, ...given.headers, ...length });
  if (given.reset === "after_headers") {
    response.write(body.subarray(0, Math.floor(body.length / 2)));
    setTimeout(() => response.socket?.destroy(), 20);
    return;
  }
  if (given.pieces) await writePieces(response, body, given.pieces);
  response.end(body.subarray(given.pieces ? body.length : 0));
}

async function writePieces(
  response: ServerResponse,
  body: Buffer,
  { count, pause_ms }: { count: number; pause_ms: number },
) {
  const size = Math.ceil(body.length / count);
  for (let at = 0; at < body.length && !response.destroyed; at += size) {
    if (at > 0) await new Promise((done) => setTimeout(done, pause_ms));
    response.write(body.subarray(at, at + size));
  }
}

function bodyOf({ json, text, body_base64 }: Respond): Buffer {
  if (body_base64 !== undefined) return Buffer.from(body_base64, "base64");
  return Buffer.from(text ?? (json === undefined ? "" : JSON.stringify(json)));
}

function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

if (import.meta.main) {
  const { url } = await startConformanceServer(readCases());
  process.stdout.write(`${url}\n`);
}
