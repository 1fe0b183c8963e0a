// A state: colour and word together, so that neither says it alone.
import type { ReactNode } from "react";
import type { Tone } from "../lib/why.ts";

/** One word, at most two. */
export function Tag({ tone, children }: { tone: Tone; children: ReactNode }) {
  return <span className={`tag ${tone}`}>{children}</span>;
}
