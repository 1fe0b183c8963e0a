// Posterns behind one address: a process each, `postern cells door`, and Debian's nginx with what `postern cells nginx` prints.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { type Agent, type RequestOptions, request } from "node:https";
import { join, resolve } from "node:path";
import { freePort } from "./free-port.ts";
import { inheritedEnv } from "./inherited-env.ts";
import { NGINX_MODULES, startNginx } from "./nginx.ts";
import type { PosternProcess } from "./postern-process.ts";
import { type Scene, setScene } from "./scene.ts";
import { makeCertificateAuthority } from "./tls.ts";
import { until } from "./until.ts";
import { addVerifiedDomain } from "./verified-domain.ts";

const PROGRAM = resolve(import.meta.dirname, "../../src/main.ts");

/** The name that all cells share. */
export const SHARED_HOST = "mail.example";

/** One cell: its own host is `<name>.example`, and it has `shop-<name>.example` with the address `desk`. */
export type CellBehindDoor = Scene & { name: string; running: PosternProcess };

export type BehindDoor = {
  cells: CellBehindDoor[];
  /** Of nginx's certificate, which is for all names. */
  ca: string;
  ports: { https: number; mx: number; submission: number; submissions: number };
  ask(host: string, order: AskOrder): Promise<AnsweredThere>;
  close(): Promise<void>;
};

export type AskOrder = { key?: string; path?: string; body?: unknown; agent?: Agent };
export type AnsweredThere = { status: number; body: Record<string, unknown>; retry_after: string | undefined };

/** Starts a cell of each name, the door and nginx. */
export async function setBehindDoor(names: readonly string[]): Promise<BehindDoor> {
  const undo = new AsyncDisposableStack();
  try {
    return await setAround(undo, names);
  } catch (error) {
    await undo.disposeAsync();
    throw error;
  }
}

async function setAround(undo: AsyncDisposableStack, names: readonly string[]): Promise<BehindDoor> {
  const place = `127.0.0.1:${await freePort()}`;
  const cells = await Promise.all(names.map((name) => startCell(undo, name, place)));
  const dir = join((cells[0] as CellBehindDoor).dir, "door");
  mkdirSync(dir);
  const file = join(dir, "cells.json");
  writeFileSync(file, JSON.stringify({ cells: cells.map(placesOf) }));
  await startDoor(undo, file, place);
  const authority = makeCertificateAuthority(dir);
  const { key, cert } = authority.issue([SHARED_HOST, "localhost", ...names.map((name) => `${name}.example`)]);
  const files = { certificate: join(dir, "cert.pem"), key: join(dir, "key.pem") };
  writeFileSync(files.certificate, cert);
  writeFileSync(files.key, key);
  const [https, mx, submission, submissions] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const ports = { https, mx, submission, submissions };
  const given = ["--cells", file, "--door", place, "--certificate", files.certificate, "--key", files.key];
  undo.defer(await startNginx(dir, movedTo(ports, printedConf(given)), https));
  const { ca } = authority;
  const ask: BehindDoor["ask"] = (host, order) => askOver({ port: https, ca, host }, order);
  return { cells, ca, ports, ask, close: () => undo.disposeAsync() };
}

async function startCell(undo: AsyncDisposableStack, name: string, doorPlace: string): Promise<CellBehindDoor> {
  const scene = await setScene({
    env: {
      POSTERN_HOSTNAME: `${name}.postern.example`,
      POSTERN_BASE_URL: `https://${name}.example`,
      POSTERN_CELLS_DOOR: doorPlace,
      POSTERN_PROXY_PROTOCOL_FROM: "127.0.0.1",
      POSTERN_PROXY_TLS: "1",
      POSTERN_TRUSTED_PROXIES: "127.0.0.1",
    },
  });
  undo.defer(() => scene.close());
  const running = await scene.start();
  const { id } = await addVerifiedDomain(scene, scene.dns, `shop-${name}.example`, { type: "both" });
  await scene.ask("POST", "/v1/aliases", { domain_id: id, local_part: "desk", action: "store" });
  scene.dns.set("recipient.example", "MX", [{ exchange: "mx.recipient.example", preference: 10 }]);
  scene.dns.set("mx.recipient.example", "A", ["127.0.0.1"]);
  return Object.assign(scene, { name, running });
}

function placesOf({ name, env }: CellBehindDoor) {
  return {
    name: `cell_${name}`,
    internal: env.POSTERN_INTERNAL,
    http: env.POSTERN_HTTP,
    mx: env.POSTERN_MX,
    submission: env.POSTERN_SUBMISSION,
  };
}

async function startDoor(undo: AsyncDisposableStack, file: string, place: string): Promise<void> {
  const args = [PROGRAM, "cells", "door", "--cells", file, "--listen", place];
  const door = spawn(process.execPath, args, { env: inheritedEnv() });
  undo.defer(() => void door.kill("SIGKILL"));
  const where = `http://${place}/where?domain=nobody.example`;
  await until("the door answers", () =>
    fetch(where).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
}

function printedConf(given: readonly string[]): string {
  const args = [PROGRAM, "cells", "nginx", "--name", SHARED_HOST, "--modules", NGINX_MODULES, ...given];
  const printed = spawnSync(process.execPath, args, { env: inheritedEnv(), encoding: "utf8" });
  assert.equal(printed.status, 0, printed.stderr);
  return printed.stdout;
}

function movedTo({ https, mx, submission, submissions }: BehindDoor["ports"], conf: string): string {
  return Object.entries({ 443: https, 25: mx, 587: submission, 465: submissions }).reduce(
    (text, [from, to]) => text.replace(new RegExp(`listen (\\[::\\]:)?${from}\\b`, "g"), `listen $1${to}`),
    conf,
  );
}

type Where = { port: number; ca: string; host: string };

/** Over HTTPS at the address that all share; `host` is what the browser or the program calls it. */
function askOver({ port, ca, host }: Where, { key, path = "/v1/me", body, agent }: AskOrder): Promise<AnsweredThere> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    host,
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    ...(text === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
  };
  const options: RequestOptions = {
    port,
    host: "127.0.0.1",
    servername: host,
    ca,
    path,
    headers,
    agent: agent ?? false,
  };
  return new Promise((done, fail) => {
    const asked = request({ ...options, method: text === undefined ? "GET" : "POST" }, (response) => {
      let read = "";
      response.on("data", (piece) => {
        read += piece;
      });
      response.on("end", () => {
        const retry_after = response.headers["retry-after"];
        done({ status: response.statusCode ?? 0, body: read.startsWith("{") ? JSON.parse(read) : {}, retry_after });
      });
    });
    asked.on("error", fail).end(text);
  });
}
