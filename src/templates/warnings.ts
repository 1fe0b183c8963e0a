// What a preview points out: things that are allowed and that an author may not have meant. Not here: whether marketing
// mail needs an unsubscribe link (these are templates of transactional mail; List-Unsubscribe is set when sending).
import type { Node, Template } from "./language/nodes.ts";
import type { ParsedSources, Sources, Warning } from "./types.ts";

/** Gmail shows the first 102 KB of an HTML body and hides the rest behind "View entire message". */
const GMAIL_CLIP_BYTES = 102 * 1024;
const TAG_LENGTH_MAX = 4_096;
const LINKS_MAX = 1_000;
const WARNINGS_MAX = 50;

/** The warnings for a version and what was rendered of it, at most 50. */
export function warningsFor(parsed: ParsedSources, rendered: Sources): Warning[] {
  const html = rendered.html_body;
  const warnings: Warning[] = [];
  if (rendered.subject.trim() === "") {
    warnings.push({ code: "empty_subject", field: "subject", message: "the subject is empty" });
  }
  if (html !== null && Buffer.byteLength(html) > GMAIL_CLIP_BYTES) {
    const message = `the HTML has ${Math.ceil(Buffer.byteLength(html) / 1024)} KB; Gmail clips it after 102 KB`;
    warnings.push({ code: "gmail_clipping", field: "html_body", message });
  }
  if (rendered.text_body === null) {
    const message = "there is no text part; one is made from the HTML when the e-mail is sent";
    warnings.push({ code: "no_text_part", field: "text_body", message });
  }
  if (parsed.html_body) warnings.push(...unescapedPrints(parsed.html_body));
  if (html !== null) warnings.push(...brokenLinks(html));
  return warnings.slice(0, WARNINGS_MAX);
}

function unescapedPrints(template: Template): Warning[] {
  return rawNames(template.nodes).map(({ name, line, column }) => ({
    code: "unescaped_output",
    field: "html_body",
    message: `{{{${name}}}} (line ${line}, column ${column}) is not escaped: give it only HTML that you have made yourself`,
  }));
}

function rawNames(nodes: readonly Node[]): { name: string; line: number; column: number }[] {
  return nodes.flatMap((node) => {
    if (node.kind === "text") return [];
    if (node.kind !== "print") return [...rawNames(node.body), ...rawNames(node.otherwise)];
    if (!node.raw || node.value.kind === "loop") return [];
    return [{ name: node.value.name ?? (node.value.keys.join(".") || "this"), ...node.place }];
  });
}

function brokenLinks(html: string): Warning[] {
  const seen = new Set<string>();
  for (const href of linksOf(html)) {
    if (!isGoodLink(href)) seen.add(href.slice(0, 100));
  }
  return [...seen].map((href) => ({
    code: "broken_link",
    field: "html_body",
    message: `a link goes to '${href}', which is not an http, https, mailto, tel or sms address`,
  }));
}

function isGoodLink(href: string): boolean {
  return /^(?:https?:\/\/[^\s/]+|mailto:|tel:|sms:|#.)/i.test(href);
}

/** The href of each <a …>, at most 1,000. Linear: a tag longer than 4,096 characters is passed over. */
function linksOf(html: string): string[] {
  const links: string[] = [];
  const opening = /<a\s/gi;
  for (let match = opening.exec(html); match && links.length < LINKS_MAX; match = opening.exec(html)) {
    const tag = html.slice(match.index, match.index + TAG_LENGTH_MAX);
    const end = tag.indexOf(">");
    if (end !== -1) opening.lastIndex = match.index + end;
    const href = /\shref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))/i.exec(end === -1 ? "" : tag.slice(0, end));
    if (href) links.push(decode(href[1] ?? href[2] ?? href[3] ?? "").trim());
  }
  return links;
}

function decode(attribute: string): string {
  return attribute
    .replaceAll("&#x3D;", "=")
    .replaceAll("&#x27;", "'")
    .replaceAll("&quot;", '"')
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}
