// A mail's HTML as a document of its own, for a sandboxed frame. The page sends what it has read of /v1 with a form and shows the
// answer: here is no way to anybody's mail. The policy is this document's own. It stands in a header, before any byte of the mail:
// no script, nothing fetched, no form, an opaque origin (CSP3 §6.3.2), also where the document is opened without the frame.
import type { Api } from "../http/http.ts";
import { invalid } from "../platform/refusal.ts";

/** The HTML of a message of 25 MiB, and what stands around it. */
const BYTES_MAX = 33_554_432;
const FORM = /^pictures=(yes|no)\r\nhtml=([\s\S]*)\r\n$/;
const OWN_STYLE =
  "body{margin:16px;font-family:sans-serif;overflow-wrap:anywhere;background:#fff;color:#000}a{pointer-events:none}";

/** Mounts it in the scope of /dashboard/api, which knows who is signed in. */
export function mountMailFrame(scope: Api): void {
  scope.register(async (inner) => {
    const frames = inner as unknown as Api;
    frames.addContentTypeParser("text/plain", { parseAs: "string", bodyLimit: BYTES_MAX }, (_request, body, done) =>
      done(null, body),
    );
    const options = { config: { by_form: true }, bodyLimit: BYTES_MAX, schema: { hide: true } };
    frames.post("/dashboard/api/mail-frame", options, async (request, reply) => {
      const [, pictures, html] = FORM.exec(String(request.body)) ?? [];
      if (html === undefined) throw invalid("html", "must be a field of a form that is sent as text/plain");
      return reply
        .headers(headersFor(pictures === "yes"))
        .type("text/html; charset=utf-8")
        .send(framed(html));
    });
  });
}

/** `withPictures`: the person has asked for pictures from elsewhere. */
function headersFor(withPictures: boolean): Record<string, string> {
  const policy = [
    ...["sandbox", "default-src 'none'", "style-src 'unsafe-inline'"],
    withPictures ? "img-src data: https: http:" : "img-src data:",
    ...["form-action 'none'", "base-uri 'none'", "frame-ancestors 'self'"],
  ];
  return {
    "content-security-policy": policy.join("; "),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
  };
}

function framed(html: string): string {
  return `<!doctype html><html><head><meta charset="utf-8"><title>Mail</title><style>${OWN_STYLE}</style></head><body>${html}</body></html>`;
}
