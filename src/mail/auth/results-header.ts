// The Authentication-Results field that we put on top of a stored message (RFC 8601, RFC 6008, RFC 9989 §9.1, RFC 8617
// §4.1.1). Everything that came from outside is quoted or left out. Reading such fields is not done here.
import type { Verdicts } from "./verdicts.ts";

type Results = Omit<Verdicts, "header" | "from_domains">;

const lineLengthMax = 78;
const valueLengthMax = 300;
const token = /^[A-Za-z0-9!#$%&'*+.^_`{|}~-]+$/;

/** The whole field, folded, with its last CRLF. `host` is our authserv-id. */
export function formatResults(host: string, results: Results): string {
  const infos = [...dkimInfos(results.dkim), spfInfo(results.spf), arcInfo(results.arc), dmarcInfo(results.dmarc)];
  const lines = infos.map((words) => ` ${fold(words)}`);
  return `Authentication-Results: ${quoted(host)};\r\n${lines.join(";\r\n")}\r\n`;
}

function dkimInfos({ signatures, result, reason }: Results["dkim"]): string[][] {
  if (signatures.length === 0) return [[`dkim=${result}`, ...reasonOf(reason)]];
  return signatures.map((signature) => [
    `dkim=${signature.result}`,
    ...reasonOf(signature.reason),
    ...property("header.d", signature.domain),
    ...property("header.s", signature.selector),
    ...property("header.a", signature.algorithm),
    ...property("header.b", signature.value_start),
  ]);
}

function spfInfo({ result, reason, domain, identity }: Results["spf"]): string[] {
  return [`spf=${result}`, ...reasonOf(reason), ...property(`smtp.${identity}`, domain)];
}

function arcInfo({ result, reason, instances }: Results["arc"]): string[] {
  return [`arc=${result}`, ...reasonOf(reason), ...(instances > 0 ? [`(i=${instances})`] : [])];
}

function dmarcInfo({ result, reason, from_domain, applied }: Results["dmarc"]): string[] {
  const words = [`dmarc=${result}`, ...reasonOf(result === "pass" || result === "none" ? "" : reason)];
  return [...words, ...property("policy.dmarc", applied ?? ""), ...property("header.from", from_domain ?? "")];
}

function reasonOf(text: string): string[] {
  const value = clean(text);
  return value === "" ? [] : [`reason=${quoteString(value)}`];
}

function property(name: string, value: string): string[] {
  const text = clean(value);
  return text === "" || text.length > valueLengthMax ? [] : [`${name}=${quoted(text)}`];
}

function clean(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, "?").slice(0, valueLengthMax + 1);
}

function quoted(text: string): string {
  return token.test(text) ? text : quoteString(text);
}

function quoteString(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

function fold(words: string[]): string {
  let length = 1;
  let out = "";
  for (const word of words) {
    const breaks = out !== "" && length + word.length + 1 > lineLengthMax;
    out += breaks ? `\r\n  ${word}` : out === "" ? word : ` ${word}`;
    length = (breaks ? 2 : length + 1) + word.length;
  }
  return out;
}
