// Ways to write a mailbox that no program reads as an address at once, each by a name, for attacks on replies.
import { createHash } from "node:crypto";
import { deflateSync, gzipSync } from "node:zlib";
import type { Dice } from "./random-tree.fixture.ts";

/** Writes a mailbox; `isHtml` spellings are read in HTML alone. */
export type Spelling = { name: string; isHtml?: true; write(dice: Dice, address: string): string };

const pick = <T>(dice: Dice, from: readonly T[]): T => from[dice(from.length)] as T;
const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";
const TABS = ["&Tab;", "&NewLine;", "&#9;", "&#10;", "&#x0d;"];

function base32(text: string): string {
  const bits = [...Buffer.from(text)].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return (bits.match(/.{1,5}/g) ?? []).map((five) => BASE32[Number.parseInt(five.padEnd(5, "0"), 2)]).join("");
}

const base64 = (text: string) => Buffer.from(text).toString("base64").replace(/=+$/, "");

export const SPELLINGS: readonly Spelling[] = [
  { name: "text glued before it", write: (dice, d) => pick(dice, ["ab-", "x.", "To", "m_123-", "Re:", "user_"]) + d },
  {
    name: "a folder of OneDrive",
    write: (_, d) => `https://firma-my.sharepoint.com/personal/${d.replace(/[^a-z0-9-]/gi, "_")}/Documents/x.docx`,
  },
  {
    name: "a link of Proofpoint 2",
    write: (_, d) =>
      `https://urldefense.proofpoint.com/v2/url?u=https-3A__x.example_-3Fe-3D${d.replace("@", "-40")}&d=D&c=c&r=r`,
  },
  { name: "a link of Safelinks", write: (_, d) => safelink("https://x.example/", d) },
  {
    name: "a picture by its hash",
    isHtml: true,
    write: (dice, d) => {
      const hash = pick(dice, ["md5", "sha1", "sha256"]);
      return `<img src="https://gravatar.example/avatar/${createHash(hash).update(d.toLowerCase()).digest("hex")}?s=80">`;
    },
  },
  { name: "base32", write: (dice, d) => pick(dice, [base32(d), base32(`id=${d}`).toUpperCase()]) },
  {
    name: "base64 in base64",
    write: (dice, d) => `https://t.example/${base64(base64(`${"x".repeat(dice(3))}${d} `))}`,
  },
  {
    name: "packed in base64",
    write: (dice, d) => {
      const text = `{"id":${dice(1e6)},"mail":"${d}"}`;
      const packed = pick(dice, [gzipSync, deflateSync])(text, { level: pick(dice, [1, 6, 9]) });
      return `https://t.example/${dice(9)}/${packed.toString("base64url")}`;
    },
  },
  {
    name: "tabs in a link",
    isHtml: true,
    write: (dice, d) => {
      const at = 1 + dice(d.length - 2);
      return `<a href="mailto:${d.slice(0, at)}${pick(dice, TABS)}${d.slice(at)}">x</a>`;
    },
  },
  {
    name: "at and dot in words",
    write: (dice, d) => {
      const [at, dot] = pick(dice, [
        ["(at)", "(dot)"],
        [" [at] ", " [dot] "],
        [" at ", " dot "],
        ["{at}", "{dot}"],
        ["(ät)", "(punkt)"],
      ] as const);
      return d.replace("@", at).replaceAll(".", dot);
    },
  },
  {
    name: "a quote's id",
    isHtml: true,
    write: (_, d) => `<blockquote cite="mid:1.2@${d.split("@")[1]}" type="cite">hi</blockquote>`,
  },
];

function safelink(link: string, d: string): string {
  const data = `05%7C02%7C${encodeURIComponent(d)}%7C0%7C1`;
  return `https://eur01.safelinks.protection.outlook.com/?url=${encodeURIComponent(link)}&data=${data}&reserved=0`;
}
