// Runs of base64 and of hexadecimal digits in files: a program may read them, so what they hold is written again in the same
// code. In texts such a run is exchanged as a whole (scrub/encoded-runs.ts).
import { RUN, readingsOf } from "../scrub/encoded-runs.ts";
import { type Exchanging, exchangedOctets } from "./encoded-text.ts";

/** The text with other runs where they held what is hidden; what is not text in them stays, for the leak gate to find. */
export function withRunsAgain(
  text: string,
  holds: (octets: string) => boolean,
  exchange: Exchanging,
): { text: string; count: number } {
  const isHolding = (run: string) => readingsOf(run).some(holds);
  let count = 0;
  const changed = text.replace(RUN, (run) => {
    if (!isHolding(run)) return run;
    // In a link it is one step of the path, though base64 has slashes, too.
    const steps = run.split("/");
    const written = steps.map((step) => (isHolding(step) ? again(step, exchange, steps.length === 1) : step));
    for (const other of [written.join("/"), again(run, exchange, true)]) {
      if (other === run || isHolding(other)) continue;
      count += 1;
      return other;
    }
    return run;
  });
  return { text: changed, count };
}

/** `isWhole`: nothing of a link stands around it, so that what needs no padding may be padded. */
function again(run: string, exchange: Exchanging, isWhole: boolean): string {
  const digits = run.replace(/[0-9A-Fa-f]{20,}/g, (hex) => hexAgain(hex, exchange));
  return digits === run ? base64Again(run, exchange, isWhole) : digits;
}

function hexAgain(digits: string, exchange: Exchanging): string {
  for (const start of [0, 1]) {
    const end = digits.length - ((digits.length - start) % 2);
    const octets = exchangedOctets(Buffer.from(digits.slice(start, end), "hex"), exchange);
    if (octets === null) continue;
    const hex = octets.toString("hex");
    return digits.slice(0, start) + (/[A-F]/.test(digits) ? hex.toUpperCase() : hex) + digits.slice(end);
  }
  return digits;
}

/** A run may begin before the encoded text does. */
function base64Again(run: string, exchange: Exchanging, isWhole: boolean): string {
  for (const start of [0, 1, 2, 3]) {
    const octets = exchangedOctets(Buffer.from(run.slice(start), "base64"), exchange);
    if (octets === null) continue;
    const isPadded = run.endsWith("=") || (isWhole && (run.length - start) % 4 === 0);
    if (/[-_]/.test(run)) return run.slice(0, start) + octets.toString("base64url");
    const base64 = octets.toString("base64");
    return run.slice(0, start) + (isPadded ? base64 : base64.replace(/=+$/, ""));
  }
  return run;
}
