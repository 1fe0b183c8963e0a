// A limit that was reached, as a person would say it: which one, and when it is over. Pure.
import { sayRelative } from "./times.ts";

/** How fast one may ask; what is over in seconds needs no explanation. */
const PACES: Record<string, string> = { requests_per_second: "Too many requests", sign_ins: "Too many tries" };
const WARMING = "The domain's page Warming shows its limits, and lifts them for a domain that has sent mail before.";

/** Says in a sentence which limit the body of a 429 is about. */
export function sayLimit({ limit_type, message, retry_after_seconds, warming_phase }: Record<string, unknown>): {
  title: string;
  text: string;
} {
  const when = sayWhen(retry_after_seconds);
  const pace = PACES[String(limit_type)];
  if (pace !== undefined || typeof message !== "string") return { title: pace ?? "Too many requests", text: when };
  if (typeof warming_phase === "string" && warming_phase !== "")
    return {
      title: "The domain's limit is reached",
      text: `${sentence(message.split(". ")[0] ?? "")} ${when} ${WARMING}`,
    };
  return { title: "A limit is reached", text: `${sentence(message)} ${when}` };
}

function sayWhen(seconds: unknown): string {
  if (typeof seconds !== "number") return "Wait a moment, then try again.";
  return `Try again ${sayRelative(new Date(seconds * 1_000).toISOString(), 0)}.`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
}
