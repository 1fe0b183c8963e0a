// The page that `postern templates preview` writes: subject, what is amiss, the HTML as a mail program would show it (scripts
// off, nothing of the page reachable), and the plain text.
import type { TemplatePreview } from "../../node/src/postern.ts";

const RELOAD_S = 1;

/** `reloads`: the page asks for itself again, so that it follows the file. */
export function pageOf(slug: string, shown: TemplatePreview, reloads: boolean): string {
  const amiss = [
    ...shown.missing_variables.map((name) => `missing: ${name}`),
    ...shown.unused_variables.map((name) => `unused: ${name}`),
    ...shown.warnings.map(({ field, message }) => `${field}: ${message}`),
  ];
  const refresh = reloads ? `<meta http-equiv="refresh" content="${RELOAD_S}">` : "";
  const html =
    shown.html_body === null
      ? "<p>There is no HTML body.</p>"
      : `<iframe sandbox="" title="HTML body" srcdoc="${escaped(shown.html_body)}"></iframe>`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">${refresh}<title>${escaped(slug)}</title>
<style>body{font:16px system-ui;margin:24px auto;max-width:900px;padding:0 16px}iframe{width:100%;height:70vh;border:1px solid #999;background:#fff}
pre{white-space:pre-wrap;border:1px solid #999;padding:12px}</style></head><body>
<h1>${escaped(shown.subject)}</h1>
${amiss.length === 0 ? "" : `<ul>${amiss.map((one) => `<li>${escaped(one)}</li>`).join("")}</ul>`}
${html}
<h2>Plain text</h2><pre>${escaped(shown.text_body ?? "Made from the HTML on sending.")}</pre>
</body></html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
