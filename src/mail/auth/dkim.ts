// DKIM of a received message (RFC 6376, 8301, 8463): the outcome of each signature and which one speaks for the message.
// The ten topmost signatures are verified. Alignment with From is not known here (dmarc.ts).
import type { HeaderField } from "../dkim/canonicalize.ts";
import { parseDkimSignature, type Signature, type SignatureDefect } from "./signature.ts";
import { trimFws } from "./tag-list.ts";
import { type Verification, verifySignature } from "./verify-signature.ts";

export type DkimResult = "none" | "pass" | "fail" | "permerror" | "temperror";

export type DkimSignatureVerdict = {
  result: Exclude<DkimResult, "none">;
  reason: string;
  domain: string;
  selector: string;
  identity: string;
  algorithm: string;
  /** The start of `b=`, by which reports tell signatures apart (RFC 6008). */
  value_start: string;
  /** There is an `l=`; `partial_body`: and it leaves bytes of this body unsigned. */
  body_length_limited: boolean;
  partial_body: boolean;
  testing: boolean;
};

const signaturesMax = 10;

export type ParsedSignature = Signature | SignatureDefect;

/** The DKIM signatures of a message, from the top, at most ten; `ignored` counts the rest. */
export function readDkimSignatures(fields: HeaderField[]): { signatures: ParsedSignature[]; ignored: number } {
  const found = fields.filter((field) => field.name.toLowerCase() === "dkim-signature");
  const taken = found.slice(0, signaturesMax);
  return {
    signatures: taken.map((field) => parseDkimSignature(withoutLineEnd(field.bytes))),
    ignored: found.length - taken.length,
  };
}

/** A field without its last CRLF. */
export function withoutLineEnd(bytes: Buffer): Buffer {
  return bytes.at(-1) === 0x0a && bytes.at(-2) === 0x0d ? bytes.subarray(0, -2) : bytes;
}

/** Verifies signatures; `body_hashes` must cover them. */
export function verifyDkim(signatures: ParsedSignature[], given: Verification): Promise<DkimSignatureVerdict[]> {
  return Promise.all(signatures.map((signature) => verdictOn(signature, given)));
}

async function verdictOn(signature: ParsedSignature, given: Verification): Promise<DkimSignatureVerdict> {
  if ("defect" in signature) return defective(signature);
  const { result, reason, partial, testing } = await verifySignature(signature, given);
  return {
    ...{ result, reason, testing, partial_body: partial, body_length_limited: signature.body_length !== null },
    domain: signature.domain,
    selector: signature.selector,
    identity: signature.identity,
    algorithm: `${signature.key_type}-sha256`,
    value_start: signature.value.toString("base64").slice(0, 8),
  };
}

function defective({ defect, result, tags }: SignatureDefect): DkimSignatureVerdict {
  const tag = (name: string) => {
    const value = trimFws(tags.get(name) ?? "").toLowerCase();
    return /^[a-z0-9._@-]{1,253}$/.test(value) ? value : "";
  };
  return {
    ...{
      result,
      reason: defect,
      domain: tag("d"),
      selector: tag("s"),
      identity: "",
      algorithm: tag("a"),
      value_start: "",
    },
    ...{ body_length_limited: tags.has("l"), partial_body: false, testing: false },
  };
}
