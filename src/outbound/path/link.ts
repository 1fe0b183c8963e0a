// An open session with a server, and what is known of it. Types alone: links.ts opens them.
import type { MailSession } from "../outside.ts";
import type { Hop } from "../route/route.ts";
import type { Verdict } from "../route/tls-policy.ts";

export type Link = {
  hop: Hop;
  session: MailSession;
  isp: string;
  /** A customer's relay: what it refuses may be about its settings. */
  is_relay: boolean;
  source_ip: string | null;
  /** `dane`: the set of records its certificate was found to match. `pkix`: chain and name were right. */
  proven: { encrypted: boolean; pkix: boolean; dane: string | null };
  /** What was wrong with TLS although the session went on. */
  trouble: Verdict;
  /** It took a message: what it says to the next MAIL may be about its own age. */
  has_taken: boolean;
  /** Domains this session was counted for already. */
  counted: Set<string>;
  /** What the timeline says of TLS for the mail that goes over it now. */
  tls: string | null;
};
