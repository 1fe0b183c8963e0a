// Links that the server of a mailbox rewrote when mail came in, to look at them when they are opened. A quote holds them in
// that form: it names the server, often the mailbox, and is not what the contact sent. So each goes back to what it was made of,
// in every reply alike. What keeps its link on a server (Mimecast) cannot be undone here; it says nothing of a mailbox.
import { decodeEntities } from "../../../mail/mime/html-entities.ts";

/** A service that rewrites links: `found` are its links, `read` gives the one within, or null. */
type Rewriter = { found: RegExp; read(link: string): string | null };

/** The value of the first of these parameters, decoded once. */
const parameter =
  (...names: readonly string[]) =>
  (link: string): string | null => {
    const query = link.slice(link.indexOf("?") + 1).split("#", 1)[0] ?? "";
    for (const pair of query.split("&")) {
      const equals = pair.indexOf("=");
      if (equals !== -1 && names.includes(pair.slice(0, equals))) return decoded(pair.slice(equals + 1));
    }
    return null;
  };

const REWRITERS: readonly Rewriter[] = [
  // Microsoft
  {
    found: /^https?:\/\/[a-z0-9.-]+\.safelinks\.protection\.(?:outlook|office365)\.(?:com|us|cn)\//,
    read: parameter("url"),
  },
  { found: /^https?:\/\/statics\.teams\.cdn\.(?:live|office)\.net\/.*safelinks/, read: parameter("url") },
  // Proofpoint
  { found: /^https?:\/\/urldefense(?:\.proofpoint)?\.(?:com|us)\/v1\/url/, read: parameter("u") },
  { found: /^https?:\/\/urldefense(?:\.proofpoint)?\.(?:com|us)\/v2\/url/, read: fromProofpoint2 },
  { found: /^https?:\/\/urldefense(?:\.proofpoint)?\.(?:com|us)\/v3\/__/, read: fromProofpoint3 },
  // Google, Barracuda, Symantec, Edgepilot, Trend Micro, Trellix
  { found: /^https?:\/\/www\.google\.[a-z.]{2,6}\/url\?/, read: parameter("q", "url") },
  { found: /^https?:\/\/linkprotect\.cudasvc\.com\/url/, read: parameter("a") },
  { found: /^https?:\/\/clicktime\.symantec\.com\//, read: parameter("u") },
  { found: /^https?:\/\/link\.edgepilot\.com\/s\//, read: parameter("u") },
  {
    found: /^https?:\/\/[a-z0-9.-]+\.trendmicro\.(?:com|eu)(?::443)?\/(?:wis\/clicktime|wis_)/,
    read: parameter("url"),
  },
  { found: /^https?:\/\/protect[a-z0-9-]*\.(?:fireeye|trellix)\.com\//, read: parameter("u") },
  // Sophos, Cisco, Check Point
  { found: /^https?:\/\/[a-z0-9-]+\.protection\.sophos\.com\//, read: fromSophos },
  {
    found: /^https?:\/\/secure-web\.cisco\.com\//,
    read: (link) => decoded(/\/(https?%3a[^/?#]*)$/i.exec(link)?.[1] ?? ""),
  },
  { found: /^https?:\/\/url\.avanan\.click\/v2\//, read: fromAvanan },
];

/** Check Point: what stands between the first three underscores and the last that a dot follows. */
function fromAvanan(link: string): string | null {
  const from = link.indexOf("___") + 3;
  const to = link.lastIndexOf("___.");
  return from > 2 && to > from ? link.slice(from, to) : null;
}

const LINK = /\bhttps?:\/\/[^\s<>"'\ue000\ue001]{1,20000}/gi;
const REWRITER_HOST =
  /safelinks|urldefense|google\.[a-z.]{2,6}\/url\?|cudasvc|clicktime|edgepilot|trendmicro|fireeye|trellix|protection\.sophos|secure-web\.cisco|avanan/i;
/** Gmail's own copy of a link beside the link. */
const GMAIL_COPY = /(?<!\s)\s+data-saferedirecturl\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)/gi;
const LAYERS_MAX = 3;
/** Signs of the sentence that a link stands in. */
const TAIL = /(?<![.,;:!?)\]])[.,;:!?)\]]+$/;
const INVISIBLE = /[\p{Cc}\s]/u;

/** The text with every link of such a service as it was before; a sentence that ends behind it keeps its full stop. */
export function unwrapLinks(text: string, isHtml: boolean): string {
  if (!REWRITER_HOST.test(text)) return text;
  const bare = isHtml ? text.replace(GMAIL_COPY, "") : text;
  return bare.replace(LINK, (given) => {
    const link = isHtml ? decodeEntities(given) : given;
    const [tail = ""] = TAIL.exec(link) ?? [];
    const before = unwrapped(link.slice(0, link.length - tail.length));
    if (before === null) return given;
    return isHtml ? escaped(before + tail) : before + tail;
  });
}

/** The link within, through several services; null where there is none. */
function unwrapped(given: string): string | null {
  return layersOf(given).at(-1) ?? null;
}

/** What is within the link, and what is within that. */
function layersOf(given: string): string[] {
  const layers: string[] = [];
  for (let link = given; layers.length < LAYERS_MAX; ) {
    const rewriter = REWRITERS.find(({ found }) => found.test(link.slice(0, 200).toLowerCase()));
    const within = rewriter?.read(link) ?? null;
    if (within === null || !/^(?:https?|ftp):/i.test(within) || INVISIBLE.test(within)) break;
    layers.push(within);
    link = within;
  }
  return layers;
}

/**
 * How a link may stand in a quote once it was rewritten and unwrapped: what it holds itself, and with what the services
 * add to a link without a scheme or a path.
 */
export function linkForms(given: string): string[] {
  const [tail = ""] = TAIL.exec(given) ?? [];
  const link = given.slice(0, given.length - tail.length);
  const layers = REWRITER_HOST.test(link) ? layersOf(link) : [];
  const whole = [link, ...layers].flatMap((one) => {
    if (/^www\./i.test(one)) return [`http://${one}`, `https://${one}`];
    return one.startsWith("//") ? [`http:${one}`, `https:${one}`] : [one];
  });
  const forms = [...layers, ...whole, ...whole.map((one) => URL.parse(one)?.href ?? one)];
  return [...new Set(forms)].filter((one) => one !== link).map((one) => one + tail);
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** `-` for `%`, `_` for `/`. */
function fromProofpoint2(link: string): string | null {
  const given = /[?&]u=([^&]*)/.exec(link)?.[1];
  return given === undefined ? null : decoded(given.replaceAll("-", "%").replaceAll("_", "/"));
}

const RUNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Signs stand as `*`, runs of them as `**` with their length, and what they were behind the link in base64. */
function fromProofpoint3(link: string): string | null {
  const [, given, signs] = /\/v3\/__(.+?)__;([^!]*)!/.exec(link) ?? [];
  if (given === undefined || signs === undefined) return null;
  const letters = [...Buffer.from(signs, "base64url").toString()];
  let at = 0;
  const plain = given.replace(/\*(?:\*(.))?/g, (_, run: string | undefined) => {
    const count = run === undefined ? 1 : RUNS.indexOf(run) + 2;
    at += count;
    return letters.slice(at - count, at).join("");
  });
  return at > letters.length ? null : plain;
}

function fromSophos(link: string): string | null {
  const given = /[?&]u=([^&]*)/.exec(link)?.[1];
  if (given === undefined) return null;
  return Buffer.from(decoded(given) ?? "", "base64").toString();
}

function escaped(text: string): string {
  return text
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;")
    .replace(/'/g, "&#39;");
}
