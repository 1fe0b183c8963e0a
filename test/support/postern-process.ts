// Postern as its users run it: a process of its own (`src/main.ts start`), reached over HTTP. For the demo, the
// benchmarks and the fault scenarios.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join, resolve } from "node:path";
import type { DnsServer } from "./dns-server.ts";
import { freePort } from "./free-port.ts";

const ROOT = resolve(import.meta.dirname, "../..");

export type Posterns = {
  base_url: string;
  live_key: string;
  test_key: string;
  env: Record<string, string>;
};

export type PosternProcess = {
  pid: number;
  child: ChildProcess;
  /** What it printed so far. */
  output(): string;
  /** Resolves with the exit code (null when killed). */
  exited: Promise<number | null>;
  /** SIGTERM and wait. */
  stop(): Promise<number | null>;
};

/** Settings for one or more Postern processes that share a data folder (or DATABASE_URL in `env`). */
export async function posternSettings(dataDir: string, env: Record<string, string> = {}): Promise<Posterns> {
  const port = await freePort();
  const live_key = `svc_live_${randomBytes(16).toString("hex")}`;
  const test_key = `svc_test_${randomBytes(16).toString("hex")}`;
  return {
    base_url: `http://127.0.0.1:${port}`,
    live_key,
    test_key,
    env: {
      POSTERN_DATA: dataDir,
      POSTERN_HOSTNAME: "postern.example",
      POSTERN_HTTP: `127.0.0.1:${port}`,
      POSTERN_INTERNAL: `127.0.0.1:${await freePort()}`,
      POSTERN_MX: `127.0.0.1:${await freePort()}`,
      POSTERN_SUBMISSION: `127.0.0.1:${await freePort()}`,
      POSTERN_BOOTSTRAP_LIVE_KEY: live_key,
      POSTERN_BOOTSTRAP_TEST_KEY: test_key,
      POSTERN_TESTING_ALLOW_LOOPBACK: "1",
      POSTERN_LOG_LEVEL: "warn",
      ...env,
    },
  };
}

/** Starts a process with these roles and waits until it says that it is ready. `program`: the folder of another version. */
export async function startPostern(
  settings: Posterns,
  roles?: string[],
  env: Record<string, string> = {},
  program: string = ROOT,
): Promise<PosternProcess> {
  const args = [join(program, "src/main.ts"), "start", ...(roles ? ["--roles", roles.join(",")] : [])];
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "/tmp", ...settings.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const exited = new Promise<number | null>((done) => child.once("exit", done));
  const ready = new Promise<void>((done, fail) => {
    const read = (chunk: Buffer): void => {
      output = (output + chunk.toString()).slice(-100_000);
      if (output.includes("Postern is ready")) done();
    };
    child.stdout?.on("data", read);
    child.stderr?.on("data", read);
    exited.then((code) => fail(new Error(`postern ended with ${code} before it was ready:\n${output}`)));
  });
  await ready;
  return {
    pid: child.pid as number,
    child,
    output: () => output,
    exited,
    async stop() {
      child.kill("SIGTERM");
      return exited;
    },
  };
}

export type Asked = { status: number; body: Record<string, never> & { [name: string]: unknown } };

/** A JSON request to the API. */
export async function ask(
  settings: Pick<Posterns, "base_url" | "live_key">,
  method: string,
  path: string,
  body?: unknown,
): Promise<Asked> {
  const response = await fetch(settings.base_url + path, {
    method,
    headers: {
      authorization: `Bearer ${settings.live_key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text.startsWith("{") ? JSON.parse(text) : { text } };
}

type PublishedRecord = { type: string; name: string; value: string; priority: number | null };

/** Creates a domain, publishes its records in `dns`, verifies it; one that sends is `warmed` at once. Returns its id. */
export async function setUpDomain(
  settings: Posterns,
  dns: DnsServer,
  name: string,
  type = "outbound",
): Promise<string> {
  const created = await ask(settings, "POST", "/v1/domains", { domain: name, type });
  if (created.status !== 201) throw new Error(`the domain was not created: ${JSON.stringify(created.body)}`);
  const id = String(created.body.id);
  const shown = await ask(settings, "GET", `/v1/domains/${id}/dns`);
  for (const record of shown.body.records as unknown as PublishedRecord[]) {
    const value = record.type === "MX" ? { exchange: record.value, preference: record.priority } : record.value;
    dns.set(record.name, record.type, [value]);
  }
  const verified = await ask(settings, "POST", `/v1/domains/${id}/verify`);
  if (!verified.body.verified) throw new Error(`the domain was not verified: ${JSON.stringify(verified.body)}`);
  if (type === "outbound" || type === "both") {
    const warmed = await ask(settings, "POST", `/v1/domains/${id}/warming/start`, { phase: "warmed" });
    if (warmed.status !== 200) throw new Error(`warming was not started: ${JSON.stringify(warmed.body)}`);
  }
  return id;
}
