// People's requests: the cookie with the session (RFC 6265), and what shows that a page of the dashboard sent them. A cookie travels with
// requests that other sites cause (CSRF); so a change needs our own Origin (RFC 6454 §7) and a header that no form can send.
import type { FastifyReply, FastifyRequest } from "fastify";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import type { Site } from "./proof/passkeys.ts";
import { SESSION_MS } from "./sign-in/sessions.ts";
import type { Client } from "./types.ts";

const COOKIE = "postern";
/** Browsers take a cookie of this name only from the host itself, over TLS and for all its paths (RFC 6265bis §4.1.3.2). */
const HOST_COOKIE = `__Host-${COOKIE}`;
const CHANGE_HEADER = "x-postern-dashboard";
const KEPT_S = 600;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

type ConfigPart = { config: Pick<World["config"], "base_url"> };

/** The session's token as the browser sent it, or null. */
export function readCookie(request: FastifyRequest): string | null {
  return readNamed(request, cookieName(request));
}

function readNamed(request: FastifyRequest, wanted: string): string | null {
  for (const pair of (request.headers.cookie ?? "").split(";")) {
    const at = pair.indexOf("=");
    if (at > 0 && pair.slice(0, at).trim() === wanted) return pair.slice(at + 1).trim();
  }
  return null;
}

/** Gives the browser the session's token, or takes it away (null). */
export function setCookie(request: FastifyRequest, reply: FastifyReply, token: string | null): void {
  const secure = isOnLoopback(request) ? "" : "; Secure";
  const age = token === null ? 0 : Math.floor(SESSION_MS / 1000);
  reply.header(
    "set-cookie",
    `${cookieName(request)}=${token ?? ""}; Path=/; Max-Age=${age}; HttpOnly${secure}; SameSite=Lax`,
  );
}

/** What the way to a provider and back needs to find again; null takes it away. */
export function setKept(request: FastifyRequest, reply: FastifyReply, kept: string | null): void {
  const secure = isOnLoopback(request) ? "" : "; Secure";
  const age = kept === null ? 0 : KEPT_S;
  const cookie = `${cookieName(request)}-oidc=${kept ?? ""}; Path=/; Max-Age=${age}; HttpOnly${secure}; SameSite=Lax`;
  const before = reply.getHeader("set-cookie");
  reply.header("set-cookie", before === undefined ? cookie : [before, cookie].flat());
}

export function readKept(request: FastifyRequest): string | null {
  return readNamed(request, `${cookieName(request)}-oidc`);
}

/** 403 for a change that no page of the dashboard asked for. */
export function requireOwnPage({ config }: ConfigPart, request: FastifyRequest): void {
  if (request.method === "GET" || request.method === "HEAD") return;
  if (request.routeOptions.config.by_form) {
    requireOwnForm(request);
    return;
  }
  const { origin } = request.headers;
  if (request.headers[CHANGE_HEADER] === undefined)
    throw new Refusal("request_not_allowed", `a change needs the header '${CHANGE_HEADER}: 1'`);
  if (origin === undefined || !isOwn(config.base_url, origin, request.headers.host ?? ""))
    throw new Refusal("request_not_allowed", "a change needs the header 'Origin' of this very site");
}

/** A form's Origin is null under our policy on referrers; the browser says in another field whose form it is (Fetch Metadata §2.4). */
function requireOwnForm({ headers }: FastifyRequest): void {
  if (headers["sec-fetch-site"] !== "same-origin")
    throw new Refusal("request_not_allowed", "this is sent by a form of this very site");
}

/** Over plain HTTP from another machine a browser would keep no cookie: that is said instead. */
export function requireTls({ config }: ConfigPart, request: FastifyRequest): void {
  if (isOnLoopback(request) || request.protocol === "https" || config.base_url.startsWith("https://")) return;
  throw new Refusal(
    "request_not_allowed",
    "signing in needs https: put a certificate or a proxy with TLS before Postern, and set POSTERN_BASE_URL",
  );
}

/** The site as the browser says it, once requireOwnPage has compared it. */
export function siteOf({ headers }: FastifyRequest): Site {
  return { origin: String(headers.origin) };
}

/** Where the request comes from, for the list of sessions and for limits. */
export function clientOf(request: FastifyRequest): Client {
  return { ip: request.ip, user_agent: String(request.headers["user-agent"] ?? "") };
}

function isOwn(baseUrl: string, origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  return origin === new URL(baseUrl).origin || new URL(origin).host === host.toLowerCase();
}

function cookieName(request: FastifyRequest): string {
  return isOnLoopback(request) ? COOKIE : HOST_COOKIE;
}

/** A browser on this machine, without TLS. */
function isOnLoopback({ protocol, headers }: FastifyRequest): boolean {
  return protocol === "http" && LOOPBACK.test(headers.host ?? "");
}
