// The pages people see behind a List-Unsubscribe link.
import { escapeHtml, page } from "../../http/public-page.ts";

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

/** The page that says that somebody has unsubscribed. */
export function donePage(leave: { email: string; list: string | null }): string {
  return page(
    "You are unsubscribed",
    `<p>${what(leave)} will no longer be sent to <strong>${escapeHtml(leave.email)}</strong>. You can close this page.</p>`,
  );
}

/** This service did not write the link, or the request says nothing. */
export function errorPage(title: string, sentence: string): string {
  return page(title, `<p>${escapeHtml(sentence)}</p>`);
}

function what({ list }: { list: string | null }): string {
  return list === null ? "Messages of this kind" : `Messages of the list “${escapeHtml(list)}”`;
}
