// Runs of base64 and of hexadecimal digits in the text of a reply: links that track their reader hold who that is, pasted
// certificates hold whose they are. A run that holds what is hidden is exchanged as a whole, because nobody reads it by eye.
import type { Replaced, Replacer } from "./replace-addresses.ts";

export const RUN = /[A-Za-z0-9+/_-]{20,8000}={0,2}/g;
export const HIDDEN = "hidden";
export const ARMORED = /-----BEGIN(?:\s|&nbsp;|&#160;){1,9}PGP/i;

/** The replacer, which then looks into runs in texts, too; `holds` is asked of what a run may read as. */
export function withRuns(replacer: Replacer, holds: (octets: string) => boolean): Replacer {
  const also = ({ text, count }: Replaced): Replaced => {
    // A key that armor.ts did not recognize: with a run gone nobody would.
    if (ARMORED.test(text)) return { text, count };
    let more = 0;
    const hidden = text.replace(RUN, (run) => {
      if (!readingsOf(run).some(holds)) return run;
      more += 1;
      // In a link it is one step of the path, though base64 has slashes, too.
      const steps = run.split("/").map((step) => (readingsOf(step).some(holds) ? HIDDEN : step));
      const left = steps.join("/");
      return readingsOf(left).some(holds) || left === run ? HIDDEN : left;
    });
    return { text: hidden, count: count + more, runs: more };
  };
  return { text: (text) => also(replacer.text(text)), html: (html) => also(replacer.html(html)), name: replacer.name };
}

/** A run may begin before the encoded text does; zeros stand between the letters of UTF-16. */
export function readingsOf(run: string): string[] {
  const octets = [0, 1, 2, 3].map((start) => Buffer.from(run.slice(start), "base64"));
  const hex = /[0-9A-Fa-f]{20}/.test(run) ? hexOf(run) : [];
  return [...octets, ...hex].map((bytes) => bytes.toString("latin1").replaceAll("\0", ""));
}

function hexOf(run: string): Buffer[] {
  const digits = run.match(/[0-9A-Fa-f]{20,}/g) ?? [];
  return digits.flatMap((one) => [0, 1].map((start) => Buffer.from(one.slice(start), "hex")));
}
