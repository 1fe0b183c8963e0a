// The door of several cells: tells nginx, which stands before them with one address, which cell an HTTP request, a login at submission
// or a mail is for. nginx speaks its own protocols here (ngx_mail_auth_http_module, ngx_http_auth_request_module) and does the rest:
// TLS, connections, bytes. `/where?domain=` is asked by the cells themselves (elsewhere.ts).
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { secretDigest } from "../accounts/keys.ts";
import { parseCommand, parsePathCommand } from "../mail/smtp-server/command.ts";
import { doorTlsWord } from "../mail/smtp-server/xclient.ts";
import { addressOf } from "../platform/net/places.ts";
import { type DoorCell, NO_CELL, splitPlace } from "./cell-list.ts";
import type { FindCell, Found } from "./find-cell.ts";

export type DoorParts = {
  cells: readonly DoorCell[];
  find: FindCell;
  host: string;
  port: number;
  onFailure(error: unknown): void;
};

export type Door = { address: string; stop(): Promise<void> };

const USER = "postern";
const KEY = /svc_(?:live|test|mask)_[0-9A-Za-z_-]{16,128}/;
/** As the API says it (api/errors.ts). */
const CLOSED = { error: "the service cannot answer at the moment; try again shortly", code: "unavailable" };

/** Listens; rejects when the address is taken. */
export async function startDoor(parts: DoorParts): Promise<Door> {
  const server = createServer((request, response) => {
    answer(parts, request.url ?? "", request.headers, response).catch((error) => {
      parts.onFailure(error);
      response.writeHead(500).end();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(parts.port, parts.host, resolve);
  });
  const { address: host, port } = server.address() as AddressInfo;
  return {
    address: addressOf({ host, port }),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  parts: DoorParts,
  url: string,
  headers: IncomingHttpHeaders,
  response: ServerResponse,
): Promise<void> {
  const [path, search] = url.split("?");
  if (path === "/http") return void response.writeHead(204, { "x-postern-cell": await forHttp(parts, headers) }).end();
  if (path === "/mail") return void response.writeHead(200, await forMail(parts, headers)).end();
  if (path === "/where") {
    const asked = new URLSearchParams(search);
    const value = asked.get("domain")?.toLowerCase() ?? "";
    const found = value === "" ? null : await parts.find({ kind: "domain", value }, { fresh: asked.has("fresh") });
    const cell = found?.kind === "cell" ? found.cell.name : null;
    const moving = found?.kind === "cell" && found.moving ? { moving: true } : {};
    return json(response, found === null ? 400 : found.kind === "unknown" ? 503 : 200, { cell, ...moving });
  }
  response.setHeader("retry-after", "1");
  const request_id = String(headers["x-door-request"] ?? "");
  response.setHeader("x-request-id", request_id);
  json(response, 503, { ...CLOSED, request_id });
}

/** Pages behind links in mail: whose a link is, it says itself, as an organization may have moved since. */
const PAGES = /^\/(?:unsubscribe|masked)\//;

/**
 * By the host, which is one cell's own; at a host that all share, by the key. A key that no cell knows goes to the first cell, which says
 * what is wrong with it.
 */
async function forHttp({ cells, find }: DoorParts, headers: IncomingHttpHeaders): Promise<string> {
  const host = String(headers["x-original-host"] ?? headers.host ?? "")
    .replace(/:\d+$/, "")
    .toLowerCase();
  const path = String(headers["x-original-uri"] ?? "").split("?")[0] ?? "";
  const byLink: Found = PAGES.test(path) ? await find({ kind: "link", value: path }) : { kind: "none" };
  if (byLink.kind === "cell") return byLink.cell.name;
  const byHost = await find({ kind: "host", value: host });
  if (byHost.kind === "cell") return byHost.cell.name;
  const key = keyIn(headers);
  const byKey: Found = key === null ? { kind: "none" } : await find(byDigest(key));
  if (byKey.kind === "cell") return byKey.cell.name;
  const isUnknown = key === null ? byHost.kind === "unknown" : byKey.kind === "unknown";
  return isUnknown ? NO_CELL : (cells[0]?.name ?? NO_CELL);
}

/** In `Authorization`, or in `Authentication` as password managers have it (api/auth.ts). */
function keyIn({ authorization, authentication }: IncomingHttpHeaders): string | null {
  return KEY.exec(`${authorization ?? ""} ${authentication ?? ""}`)?.[0] ?? null;
}

function byDigest(key: string) {
  return { kind: "key_digest", value: secretDigest(key).toString("hex") } as const;
}

type MailAnswer = Record<string, string>;

/** A login by its key, else a mail by the domain of its first recipient. What no cell has goes to the first, which refuses it. */
async function forMail({ cells, find }: DoorParts, headers: IncomingHttpHeaders): Promise<MailAnswer> {
  const isMx = headers["auth-method"] === "none";
  if (!isMx && String(headers["auth-user"]).toLowerCase() !== USER) return badLogin();
  const found = isMx
    ? await ofRecipient(find, headers)
    : await find(byDigest(decodeURIComponent(String(headers["auth-pass"]))));
  if (found.kind === "unknown") return later(isMx);
  if (found.kind === "none" && !isMx) return badLogin();
  const cell = found.kind === "cell" ? found.cell : cells[0];
  const place = cell && splitPlace(isMx ? cell.mx : cell.submission);
  if (!place) return later(isMx);
  const where = { "Auth-Status": "OK", "Auth-Server": place.host, "Auth-Port": String(place.port) };
  return isMx ? { ...where, ...tlsOf(headers) } : where;
}

/** The cell hears of it from nginx (smtp-server/xclient.ts). */
function tlsOf(headers: IncomingHttpHeaders): MailAnswer {
  if (headers["auth-ssl"] !== "on") return {};
  const [protocol, cipher] = ["auth-ssl-protocol", "auth-ssl-cipher"].map(
    (name) => headers[name] as string | undefined,
  );
  return { "Auth-User": doorTlsWord(protocol, cipher) };
}

/** nginx passes the whole line on, byte by byte. `<postmaster>` and address literals name no domain. A name of the service's own may be several cells': there each address is asked for. */
async function ofRecipient(find: FindCell, headers: IncomingHttpHeaders): Promise<Found> {
  const line = Buffer.from(String(headers["auth-smtp-to"] ?? ""), "latin1");
  const path = parsePathCommand(parseCommand(line)?.rest ?? "", "TO")?.path;
  const domain = path?.domain?.toLowerCase() ?? null;
  if (!path || domain === null) return { kind: "none" };
  const byDomain = await find({ kind: "domain", value: domain });
  if (byDomain.kind !== "cell" || (await find({ kind: "host", value: domain })).kind !== "cell") return byDomain;
  const byAddress = await find({ kind: "address", value: `${path.local}@${domain}`.toLowerCase() });
  return byAddress.kind === "none" ? byDomain : byAddress;
}

function badLogin(): MailAnswer {
  return { "Auth-Status": "Invalid login or password", "Auth-Error-Code": "535 5.7.8", "Auth-Wait": "2" };
}

function later(isMx: boolean): MailAnswer {
  const code = isMx ? "451 4.3.0" : "454 4.7.0";
  return { "Auth-Status": "the service cannot answer at the moment, try again later", "Auth-Error-Code": code };
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
