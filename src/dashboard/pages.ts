// The built dashboard, served from memory at `/`: its files, and its one page wherever a browser asks for a page that is nothing
// else. What a page may do is said in its policy: our own files and this server, nothing of anybody else's.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import type { FastifyRequest } from "fastify";
import { answerForm, type Form, toForm } from "../api/compressed.ts";
import type { Api } from "../http/http.ts";
import { Refusal } from "../platform/refusal.ts";

const DIST = join(import.meta.dirname, "../../dashboard/dist");
const PAGE = "/index.html";
/** Their names change with their content. */
const NAMED_BY_CONTENT = /^\/assets\//;
const FOR_A_YEAR = "public, max-age=31536000, immutable";

const TYPES = new Map([
  [".html", "text/html; charset=utf-8"],
  [".js", "text/javascript; charset=utf-8"],
  [".css", "text/css; charset=utf-8"],
  [".svg", "image/svg+xml"],
  [".png", "image/png"],
  [".ico", "image/x-icon"],
  [".woff2", "font/woff2"],
]);

/**
 * Scripts are our files alone. Frames are those of mail, which have a stricter policy of their own (mail-frame.ts). Styles inside are for
 * reading a mail's HTML before it goes there: Chromium holds the page's policy against them, though nothing is drawn.
 */
const POLICY = [
  ...[
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
  ],
  ...["connect-src 'self'", "frame-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"],
].join("; ");

const HEADERS = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** True if there is a build of the dashboard to serve. */
export function isBuilt(folder = DIST): boolean {
  return existsSync(join(folder, PAGE));
}

/** Mounts all that is asked by GET and is nothing else. Without a build that is a 404, as it is for programs. */
export function mountPages(api: Api, folder = DIST): void {
  const files = isBuilt(folder) ? filesBelow(folder) : new Set<string>();
  const forms = new Map<string, Form>();
  const formOf = (name: string): Form => {
    const known = forms.get(name);
    if (known) return known;
    const type = TYPES.get(extname(name)) ?? "application/octet-stream";
    const form = toForm(type, readFileSync(join(folder, name)));
    forms.set(name, form);
    return form;
  };
  api.get("/*", { schema: { hide: true } }, (request, reply) => {
    const name = nameOf(request, files);
    if (name === null) throw new Refusal("not_found", `there is no ${request.method} ${pathOf(request).slice(0, 200)}`);
    return answerForm(
      request,
      reply.headers(HEADERS),
      formOf(name),
      NAMED_BY_CONTENT.test(name) ? FOR_A_YEAR : "no-cache",
    );
  });
}

/** The names of all files, such as /assets/index.js: only these are ever read, whatever a path says. */
function filesBelow(folder: string): Set<string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Set(
    paths.map((path) => path.slice(folder.length).replaceAll("\\", "/")).filter((name) => TYPES.has(extname(name))),
  );
}

/** The file of that name, or the page where a browser wants one; null: nothing is here. */
function nameOf(request: FastifyRequest, files: Set<string>): string | null {
  const path = pathOf(request);
  if (files.has(path)) return path;
  const isPage = String(request.headers.accept ?? "").includes("text/html");
  return isPage && files.has(PAGE) && !/^\/(v1|dashboard\/api|assets)(\/|$)/.test(path) ? PAGE : null;
}

function pathOf({ url }: FastifyRequest): string {
  return url.split("?")[0] ?? "";
}
