// The pages people see behind a List-Unsubscribe link: plain HTML without scripts, images or anything from elsewhere.
import { createHash } from "node:crypto";

const STYLE =
  "body{font:18px/1.5 system-ui,sans-serif;margin:0;background:#f6f6f4;color:#1c1c1a}" +
  "main{max-width:34em;margin:12vh auto 0;padding:0 1.5em}h1{font-size:1.4em}" +
  "button{font:inherit;padding:.6em 1.2em;border:0;border-radius:.4em;background:#1c4f82;color:#fff;cursor:pointer}" +
  "button:focus-visible{outline:3px solid #e09f3e;outline-offset:2px}" +
  "@media (prefers-color-scheme:dark){body{background:#1b1b1a;color:#eee}button{background:#3f7cb8}}";

/** Nothing but the page's own style may load; its form may only come back here; nobody may frame it. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");

/** What the button and RFC 8058 §3.1 both send. */
export const FIELD = "List-Unsubscribe";
export const VALUE = "One-Click";

/** Asks; nothing has happened yet. */
export function askPage(leave: { email: string; list: string | null }): string {
  return page(
    "Unsubscribe",
    `<p>${what(leave)} will no longer be sent to <strong>${escapeHtml(leave.email)}</strong>.</p>` +
      `<form method="post"><input type="hidden" name="${FIELD}" value="${VALUE}"><button>Unsubscribe</button></form>`,
  );
}

/** It is done. */
export function donePage(leave: { email: string; list: string | null }): string {
  return page(
    "You are unsubscribed",
    `<p>${what(leave)} will no longer be sent to <strong>${escapeHtml(leave.email)}</strong>. You can close this page.</p>`,
  );
}

/** The link is not one of ours, or the request says nothing. */
export function errorPage(title: string, sentence: string): string {
  return page(title, `<p>${escapeHtml(sentence)}</p>`);
}

function what({ list }: { list: string | null }): string {
  return list === null ? "Messages of this kind" : `Messages of the list “${escapeHtml(list)}”`;
}

function page(title: string, body: string): string {
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>` +
    `<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex">` +
    `<style>${STYLE}</style></head><body><main><h1>${title}</h1>${body}</main></body></html>\n`
  );
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
