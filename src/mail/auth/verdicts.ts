// What SPF, DKIM, DMARC and ARC say of a message, together (RFC 8601). Types alone.
import type { ArcVerdict } from "./arc.ts";
import type { DkimResult, DkimSignatureVerdict } from "./dkim.ts";
import type { DmarcVerdict } from "./dmarc.ts";
import type { SpfVerdict } from "./spf.ts";

export type Verdicts = {
  /** `from_aligned`: passed, and the domain is the author's. */
  spf: SpfVerdict & { from_aligned: boolean };
  dkim: DkimVerdict;
  dmarc: DmarcVerdict;
  arc: ArcVerdict;
  /** The Authentication-Results field with its last CRLF. */
  header: string;
  /** Every domain found in From. */
  from_domains: string[];
};

/**
 * The verdict on the signature that speaks for the message: an aligned pass, else a pass, else the first that did not
 * pass.
 */
export type DkimVerdict = {
  result: DkimResult;
  reason: string;
  domain: string | null;
  selector: string | null;
  /** Domains whose signatures passed over the whole body. */
  passed_domains: string[];
  from_aligned: boolean;
  signatures: (DkimSignatureVerdict & { from_aligned: boolean })[];
  /** Signatures beyond the tenth, which nobody verified. */
  ignored_signatures: number;
};
