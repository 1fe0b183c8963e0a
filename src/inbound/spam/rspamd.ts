// rspamd over HTTP: one mail asked about, what came of it as a value. Not here: what its answer says (mail/spam/rspamd.ts), and
// what is made of it (inbound/spam/spam-judge.ts, check-spam.ts).
import {
  REPLY_BYTES_MAX,
  type Reported,
  type RspamdReply,
  readRspamdReply,
  rspamdHeaders,
} from "../../mail/spam/rspamd.ts";
import { createOperatorPost } from "../../platform/net/operator-post.ts";

export type RspamdAnswer = RspamdReply | { kind: "silent"; reason: string } | { kind: "refused"; status: number };
export type AskRspamd = (reported: Reported, mail: Buffer, timeoutMs: number) => Promise<RspamdAnswer>;

/** Asks the rspamd whose worker is at `url`; connections are kept. Never throws for what it does. */
export function rspamdAt(url: string): AskRspamd {
  const post = createOperatorPost();
  return async (reported, mail, timeoutMs) => {
    const answer = await post({
      url: `${url}/checkv2`,
      headers: rspamdHeaders(reported),
      body: mail,
      timeout_ms: timeoutMs,
      response_bytes_max: REPLY_BYTES_MAX,
    });
    if (answer.kind === "failed") return { kind: "silent", reason: answer.reason };
    return answer.status === 200 ? readRspamdReply(answer.body) : { kind: "refused", status: answer.status };
  };
}
