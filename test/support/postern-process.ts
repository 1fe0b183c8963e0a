// Postern as its users run it: a process of its own (`src/main.ts start`), reached over HTTP. Not here: what surrounds it
// (scene.ts for stories; the faults and the benchmarks have their own).
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join, resolve } from "node:path";
import { freePort } from "./free-port.ts";
import { inheritedEnv } from "./inherited-env.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** The words of `api/errors.ts` for what it answers with 500. */
const FAILED_REQUEST = '"a request failed"';
const OUTPUT_KEPT = 100_000;

export type Posterns = {
  base_url: string;
  live_key: string;
  test_key: string;
  env: Record<string, string>;
};

export type PosternProcess = {
  pid: number;
  child: ChildProcess;
  /** The end of what it printed so far. */
  output(): string;
  /** What it logged of requests that it answered 500, up to now. */
  failures: readonly string[];
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
    env: { ...inheritedEnv(), ...settings.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return await whenReady(child);
}

/** Waits until a process of `postern start`, however it is run, says that it is ready. Its output must be piped. */
export async function whenReady(child: ChildProcess): Promise<PosternProcess> {
  let output = "";
  let line = "";
  const failures: string[] = [];
  const exited = new Promise<number | null>((done) => child.once("exit", done));
  const ready = new Promise<void>((done, fail) => {
    const read = (chunk: Buffer): void => {
      const text = chunk.toString();
      output = (output + text).slice(-OUTPUT_KEPT);
      const [first = "", ...more] = text.split("\n");
      const lines = [line + first, ...more];
      line = lines.pop() ?? "";
      failures.push(...lines.filter((one) => one.includes(FAILED_REQUEST)));
      if (output.includes("Postern is ready")) done();
    };
    child.stdout?.on("data", read);
    child.stderr?.on("data", read);
    child.once("error", fail);
    exited.then((code) => fail(new Error(`postern ended with ${code} before it was ready:\n${output}`)));
  });
  await ready;
  return {
    pid: child.pid as number,
    child,
    output: () => output,
    failures,
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

/** The API of these processes, as `addVerifiedDomain` and others take it. */
export function apiOf(settings: Pick<Posterns, "base_url" | "live_key">) {
  return { ask: (method: string, path: string, body?: unknown) => ask(settings, method, path, body) };
}
