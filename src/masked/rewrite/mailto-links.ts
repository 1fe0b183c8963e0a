// Links of forwarded HTML that open a new mail (RFC 6068): it would leave from the mailbox itself, so that whoever is named
// there becomes a reverse address. What cannot be read safely stays; what is exchanged comes back as its author wrote it,
// because it is written as tokens are (tokens.ts).
import { decodeEntities } from "../../mail/mime/html-entities.ts";
import { markupIn } from "./scrub/html-markup.ts";
import type { Replaced } from "./scrub/replace-addresses.ts";

/** The most links of one mail that are changed: signatures have one or two. The links beyond stay. */
const LINKED_MAX = 20;

const ATTRIBUTE = /(\s(?:xlink:)?(?:href|action)\s*=\s*)("[^"]*"|'[^']*'|[^\s"'>]+)/gi;
const LINK = /^(\s*mailto:)([^?]*)(\?.*)?$/is;
const FIELDS = /([?&](?:amp;)?(?:to|cc|bcc)=)([^&]*)/gi;
const PLAIN_ADDRESS = /^[^\s@<>"',;:&]{1,64}@[a-z0-9.-]{1,255}$/;

/** The addresses that its links would write to, in lower case, once each, the first LINKED_MAX. */
export function linkedAddresses(html: string): string[] {
  const found = new Set<string>();
  exchangeLinked(html, (email) => {
    if (found.size < LINKED_MAX) found.add(email);
    return null;
  });
  return [...found];
}

/** Writes others in their place; null leaves one. `email` is in lower case, `spelled` is how the link has it. */
export function exchangeLinked(html: string, write: (email: string, spelled: string) => string | null): Replaced {
  if (!/mailto/i.test(html)) return { text: html, count: 0 };
  let count = 0;
  const exchanged = (list: string) =>
    list.replace(/[^,]+/g, (spelled) => {
      const email = addressIn(spelled);
      const written = email === null ? null : write(email, spelled);
      if (written === null) return spelled;
      count += 1;
      return written;
    });
  const inTag = (tag: string) =>
    tag.replace(ATTRIBUTE, (whole, before: string, given: string) => {
      const quote = /^["']/.exec(given)?.[0] ?? "";
      const link = LINK.exec(quote === "" ? given : given.slice(1, -1));
      if (!link) return whole;
      const [, scheme, to = "", fields = ""] = link;
      const more = fields.replace(FIELDS, (_, name: string, list: string) => name + exchanged(list));
      return before + quote + scheme + exchanged(to) + more + quote;
    });
  let text = "";
  let from = 0;
  for (const { start, end } of markupIn(html)) {
    text += html.slice(from, start) + inTag(html.slice(start, end));
    from = end;
  }
  return { text: text + html.slice(from), count };
}

/** Null for what is no plain address. */
function addressIn(spelled: string): string | null {
  try {
    const email = decodeURIComponent(decodeEntities(spelled)).toLowerCase();
    return PLAIN_ADDRESS.test(email) ? email : null;
  } catch {
    return null;
  }
}
