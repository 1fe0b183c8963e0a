// A reply that the leak gate holds is written once more, with a close look: at what is rarely in mail, and would take its time
// in every mail. Codes in files are written again, codes in texts go as a whole, keys are cut out of files that people
// read. The gate then decides again. What the contact sent is put aside before all of this, as ever (sent-content.ts).
import { encodedReadings } from "../gate/encoded-readings.ts";
import { cutArmor } from "../scrub/armor.ts";
import { ARMORED, HIDDEN, RUN } from "../scrub/encoded-runs.ts";
import type { Replaced, Replacer } from "../scrub/replace-addresses.ts";
import type { Exchanging } from "./encoded-text.ts";
import { withoutPem } from "./pem.ts";
import { withRunsAgain } from "./runs-again.ts";
import { withUuAgain } from "./uuencoded.ts";

type Step = (text: string, isHtml: boolean) => { text: string; count: number };

/** The replacer for texts, which then also looks into codes; `exchange` is asked of what they hold. */
export function closeInTexts(replacer: Replacer, exchange: Exchanging): Replacer {
  const holds = holding(exchange);
  return withSteps(replacer, [
    (text) => withoutPem(text, holds),
    (text, isHtml) => withUuAgain(text, isHtml, exchange),
    (text) => withoutRareRuns(text, holds),
  ]);
}

/** The same for files, which programs read. */
export function closeInFiles(replacer: Replacer, exchange: Exchanging): Replacer {
  const holds = holding(exchange);
  return withSteps(replacer, [
    (text) => withoutPem(text, holds),
    (text) => withRunsAgain(text, holds, exchange),
    (text) => (MARKUP.test(text) ? { text, count: 0 } : withUuAgain(text, false, exchange)),
  ]);
}

/** The same for files that people read: without keys and signatures, as texts are. */
export function closeInNotes(replacer: Replacer, exchange: Exchanging): Replacer {
  const files = closeInFiles(replacer, exchange);
  const look = (kind: "text" | "html") => (source: string) => {
    const { text, cut, is_encrypted } = cutArmor(source);
    const replaced = files[kind](is_encrypted ? source : text);
    return is_encrypted || cut === 0 ? replaced : { ...replaced, count: replaced.count + cut, cut };
  };
  return { ...files, text: look("text"), html: look("html") };
}

/** Lines of uuencode are letters that markup is made of. */
const MARKUP = /<\/?(?:html|body|p|div|pre|br)\b/i;

function holding(exchange: Exchanging): (octets: string) => boolean {
  return (octets) => exchange(octets).count > 0;
}

function withSteps(replacer: Replacer, steps: readonly Step[]): Replacer {
  const also = ({ text, count, runs = 0 }: Replaced, isHtml: boolean): Replaced => {
    // Encrypted, or disguised: with a part of it gone nobody would recognize it.
    if (ARMORED.test(text)) return { text, count, runs };
    let [written, more] = [text, 0];
    for (const step of steps) {
      const next = step(written, isHtml);
      written = next.text;
      more += next.count;
    }
    return { text: written, count: count + more, runs: runs + more };
  };
  return {
    text: (source) => also(replacer.text(source), false),
    html: (source) => also(replacer.html(source), true),
    name: replacer.name,
  };
}

const RUNS_MAX = 20_000;

/** Without runs that hold it in base32, packed, or in base64 within base64. */
function withoutRareRuns(text: string, holds: (octets: string) => boolean): { text: string; count: number } {
  const reads = (piece: string) => encodedReadings(piece).texts.some((one) => holds(one.text.replaceAll("\0", "")));
  let [looked, count] = [0, 0];
  if (!reads(text)) return { text, count };
  const without = (run: string) => {
    looked += 1;
    if (looked > RUNS_MAX || !reads(run)) return run;
    count += 1;
    return HIDDEN;
  };
  const written = text.replace(RUN, (run) => {
    const steps = run.split("/").map((step) => (step.length < RUN_MIN ? step : without(step)));
    return without(steps.join("/"));
  });
  return { text: written, count };
}

const RUN_MIN = 20;
