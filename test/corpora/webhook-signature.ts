// Signature vectors judged by the contract's rule: our signer writes what a receiver must accept, and nothing else.
import { join } from "node:path";
import { signatureHeader } from "../../src/webhooks/sign.ts";
import { readSide } from "./case-files.ts";
import type { Corpus } from "./tally.ts";

type Vector = {
  name: string;
  secret: string;
  /** As receivers are asked to take (300 s), when the vector names none. */
  tolerance_s?: number;
  now: number;
  body_base64: string;
  header: string;
  seed_rule: string;
};

/** Accepted exactly when one of the header's v1 values is ours for its own `t`, and `t` is within the tolerance. */
export const webhookSignature: Corpus = {
  name: "webhook-signature",
  run(dir, tally) {
    for (const vector of readSide<Vector[]>(tally, join(dir, "vectors.json")) ?? []) {
      const isOpen = vector.seed_rule !== "accept" && vector.seed_rule !== "reject";
      const reason = isOpen ? "the contract leaves this header open to receivers; our sender never writes it" : null;
      tally.judge(vector.name, vector.seed_rule, accepts(vector) ? "accept" : "reject", reason);
    }
  },
};

function accepts({ secret, tolerance_s = 300, now, body_base64, header }: Vector): boolean {
  const fields = header.split(",").map((field) => field.split("=") as [string, string]);
  const stamp = fields.find(([name]) => name === "t")?.[1] ?? "";
  if (!/^\d+$/.test(stamp) || Math.abs(now - Number(stamp)) > tolerance_s) return false;
  const ours = signatureHeader([secret], Number(stamp), Buffer.from(body_base64, "base64")).split("v1=")[1];
  return fields.some(([name, value]) => name === "v1" && value === ours);
}
