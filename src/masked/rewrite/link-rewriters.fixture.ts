// How the servers of mailboxes rewrite the links of a mail, for tests: each names the server, some the mailbox.
import { decodeEntities } from "../../mail/mime/html-entities.ts";
import type { Dice } from "./random-tree.fixture.ts";

/** Rewrites one link, for this mailbox. */
export type LinkRewriter = (link: string, owner: string) => string;

const DATA = `05%7C02%7C{owner}%7C${"5f3c".repeat(8)}%7C0%7C0%7C638${"1".repeat(15)}%7CUnknown%7CTWFpbGZsb3d8eyJWIjoiMC4w`;

export const LINK_REWRITERS: Readonly<Record<string, LinkRewriter>> = {
  safelinks: (link, owner) =>
    `https://eur01.safelinks.protection.outlook.com/?url=${encodeURIComponent(link)}&data=${DATA.replace("{owner}", encodeURIComponent(owner))}&sdata=${"a".repeat(43)}%3D&reserved=0`,
  proofpoint1: (link) =>
    `https://urldefense.proofpoint.com/v1/url?u=${encodeURIComponent(link)}&k=abc%3D%3D%0A&r=xyz%0A&s=0123`,
  proofpoint2: (link) =>
    `https://urldefense.proofpoint.com/v2/url?u=${encodeURIComponent(link)
      .replace(/[-_]/g, (char) => `-${char.charCodeAt(0).toString(16).toUpperCase()}`)
      .replaceAll("%2F", "_")
      .replaceAll("%", "-")}&d=DwMFAg&c=abc&r=${"r".repeat(43)}&m=m&s=s&e=`,
  proofpoint3,
  google: (link) => `https://www.google.com/url?q=${encodeURIComponent(link)}&source=gmail&ust=1795000000&usg=AOvVaw0`,
  barracuda: (link) => `https://linkprotect.cudasvc.com/url?a=${encodeURIComponent(link)}&c=E,1,abcdefgh,&typo=1`,
  sophos: (link) =>
    `https://eu-central-1.protection.sophos.com/?d=x.example&u=${encodeURIComponent(Buffer.from(link).toString("base64"))}&p=m&i=1&t=abc=&h=1&s=x`,
  cisco: (link) => `https://secure-web.cisco.com/1${"Ab0-_".repeat(30)}/${encodeURIComponent(link)}`,
  mimecast: () => "https://protect-eu.mimecast.com/s/AbCdEfGhIjKlMnOp?domain=evil.example",
};

/** As its decoder undoes it: every sign that is not common in links as `*`, runs as `**` and their length. */
function proofpoint3(link: string): string {
  let signs = "";
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const hidden = link.replace(/[^A-Za-z0-9:/?.=\-_]{1,60}/gu, (run) => {
    signs += run;
    const count = [...run].length;
    return count === 1 ? "*" : `**${letters[count - 2]}`;
  });
  return `https://urldefense.com/v3/__${hidden}__;${Buffer.from(signs).toString("base64url")}!!ABC123!${"k".repeat(40)}$`;
}

/** The text, or the HTML, as the server of the mailbox hands it on. */
export function rewriteLinks(dice: Dice, { text, isHtml, owner }: { text: string; isHtml: boolean; owner: string }) {
  const names = Object.keys(LINK_REWRITERS);
  const rewrite = LINK_REWRITERS[names[dice(names.length)] as string] as LinkRewriter;
  if (!isHtml) {
    return text.replace(/\bhttps?:\/\/[^\s<>"']+?(?=[.,;:!?)\]]*(?:[\s<>"']|$))/g, (link) => rewrite(link, owner));
  }
  return text.replace(/(\bhref=")(https?:\/\/[^"]*)(?=")/g, (_, before: string, link: string) => {
    const written = rewrite(decodeEntities(link), owner).replace(/&/g, "&amp;").replace(/"/g, "&quot;");
    return before + written;
  });
}
