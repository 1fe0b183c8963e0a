// What is left of a text without all that a reading may take out of it (blanks, line ends, marks of quotes, zeros): where the
// letters of a secret do not stand side by side in that, they do in no such reading. For the leak gate, which asks this of
// every text before it looks closely; octet by octet, because a pattern costs ten times as much.

const DROPPED = 0;
const PLAIN = tableOf((code) => (/[\s>|\0]/.test(String.fromCharCode(code)) ? DROPPED : code));
/** For each decoded octet: its lower case, in the letters that a reader sees (NFKC). */
const FOLDED = tableOf((code) => {
  const seen = String.fromCharCode(code)
    .replace(/[\s>|\0\u00ad]/, "")
    .normalize("NFKC")
    .toLowerCase();
  return seen === "" ? DROPPED : seen.charCodeAt(seen.length - 1) & 0xff;
});

function tableOf(to: (code: number) => number): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, code) => to(code));
}

/** The text without blanks, line ends, marks of quotes and zeros, and without `gap`. */
export function bareLetters(text: string, gap: string): string {
  const whole = text.includes(gap) ? text.replaceAll(gap, "") : text;
  return isLatin(whole) ? through(PLAIN, whole) : whole.replace(/[\s>|\0]+/g, "");
}

/** The same of decoded octets in lower case, with their tags and without. Null for what is more than octets. */
export function bareOctets(text: string): string[] | null {
  if (!isLatin(text)) return null;
  return text.includes("<") ? [through(FOLDED, text), withoutTags(text)] : [through(FOLDED, text)];
}

function isLatin(text: string): boolean {
  return !/[^\x00-\xff]/.test(text);
}

function through(table: Uint8Array, text: string): string {
  const octets = Buffer.from(text, "latin1");
  let kept = 0;
  for (let at = 0; at < octets.length; at += 1) {
    const to = table[octets[at] as number] as number;
    if (to === DROPPED) continue;
    octets[kept] = to;
    kept += 1;
  }
  return octets.toString("latin1", 0, kept);
}

const [OPEN, CLOSE] = [0x3c, 0x3e];

function withoutTags(text: string): string {
  const octets = Buffer.from(text, "latin1");
  let [kept, opened] = [0, -1];
  for (let at = 0; at < octets.length; at += 1) {
    const octet = octets[at] as number;
    if (octet === OPEN) opened = kept;
    if (octet === CLOSE && opened !== -1) [kept, opened] = [opened, -1];
    const to = FOLDED[octet] as number;
    if (to === DROPPED) continue;
    octets[kept] = to;
    kept += 1;
  }
  return octets.toString("latin1", 0, kept);
}
