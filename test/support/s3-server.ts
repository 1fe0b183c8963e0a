// A real S3 server on loopback: versitygw, which keeps objects as files (go install github.com/versity/versitygw/cmd/versitygw@v1.8.0).
// Before it stands a proxy that can be asked to fail. Its bucket is `kept`.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { S3mini } from "s3mini";
import { freePort } from "./free-port.ts";
import { until } from "./until.ts";

export type Fault = "busy" | "cut";
export type S3Server = {
  access: { endpoint: string; region: string; access_key: string; secret_key: string };
  bucket: string;
  /** Each request as `METHOD path?query`. */
  seen: string[];
  /** What to do to a request: busy is 503, cut is an answer that breaks off. */
  fault: (seen: string) => Fault | null;
  client: S3mini;
  stop(): Promise<void>;
};

const LOGIN = { access_key: "tester", secret_key: "not-a-secret", region: "eu-central-1" };

/** True if the program is there. Tests that need it are skipped with a message otherwise. */
export function hasS3Server(): boolean {
  return spawnSync("versitygw", ["--version"], { stdio: "ignore" }).status === 0;
}

/** Starts it; resolves when it answers. */
export async function startS3Server(): Promise<S3Server> {
  const dir = mkdtempSync(join(tmpdir(), "postern-s3-"));
  const port = await freePort();
  const own = [
    "--port",
    `127.0.0.1:${port}`,
    "--access",
    LOGIN.access_key,
    "--secret",
    LOGIN.secret_key,
    "--region",
    LOGIN.region,
  ];
  const [objects, sidecar] = ["objects", "sidecar"].map((name) => join(dir, name)) as [string, string];
  for (const folder of [objects, sidecar]) mkdirSync(folder);
  const child = spawn("versitygw", [...own, "posix", "--sidecar", sidecar, objects], { stdio: "ignore" });
  const server: S3Server = {
    ...{ access: { ...LOGIN, endpoint: "" }, bucket: "kept", seen: [], fault: () => null },
    client: undefined as unknown as S3mini,
    stop: async () => {
      await end(child);
      proxy.closeAllConnections();
      proxy.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  const proxy = createServer((incoming, answer) => {
    const said = `${incoming.method} ${incoming.url}`;
    server.seen.push(said);
    const fault = server.fault(said);
    if (fault === "busy") {
      incoming.resume();
      answer.writeHead(503, { "content-type": "application/xml" });
      answer.end("<Error><Code>SlowDown</Code></Error>");
      return;
    }
    const { method, url, headers } = incoming;
    const forward = request({ host: "127.0.0.1", port, method, path: url, headers }, (inner: IncomingMessage) => {
      answer.writeHead(inner.statusCode ?? 502, inner.headers);
      if (fault !== "cut") return inner.pipe(answer);
      return inner.once("data", (chunk: Buffer) => {
        answer.write(chunk.subarray(0, 100));
        setImmediate(() => answer.destroy());
      });
    });
    forward.once("error", () => answer.destroy());
    incoming.pipe(forward);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  server.access.endpoint = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  server.client = new S3mini({
    ...{ accessKeyId: LOGIN.access_key, secretAccessKey: LOGIN.secret_key, region: LOGIN.region },
    endpoint: `${server.access.endpoint}/${server.bucket}`,
  });
  await until("the S3 server answers", () => server.client.createBucket().catch(() => false));
  server.seen.length = 0;
  return server;
}

async function end(child: ChildProcess): Promise<void> {
  child.kill("SIGTERM");
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}
