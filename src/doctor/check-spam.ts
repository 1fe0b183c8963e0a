// What judges spam, as `postern doctor` sees it: lists in the DNS that answer this machine, and rspamd. A list must have
// its test entries (RFC 5782 §5): 127.0.0.2 or TEST in it, 127.0.0.1 or INVALID not.
import type { Config } from "../config.ts";
import { rspamdAt } from "../inbound/spam/rspamd.ts";
import { askBlockLists, type BlockList, readBlockList } from "../mail/spam/block-lists.ts";
import type { Resolver } from "../platform/dns/resolver.ts";
import { type Check, ok, problem, warning } from "./check.ts";

const LISTS = "block lists";
const RSPAMD = "rspamd";
const ANSWER_MS = 5_000;
const MAIL = Buffer.from("From: doctor@invalid\r\nSubject: postern doctor\r\n\r\nIs anybody there?\r\n");

/** Asks each list and rspamd, where they are set. */
export async function checkSpam(
  config: Pick<Config, "dns_block_lists" | "rspamd_url" | "mx_host">,
  resolver: Pick<Resolver, "a">,
): Promise<Check[]> {
  const lists = config.dns_block_lists.flatMap((word) => readBlockList(word) ?? []);
  const found = await Promise.all(lists.map((list) => checkList(list, resolver)));
  return config.rspamd_url === null ? found : [...found, await checkRspamd(config.rspamd_url, config.mx_host)];
}

async function checkList(list: BlockList, resolver: Pick<Resolver, "a">): Promise<Check> {
  const { zone } = list;
  const { symptoms, refused } = await askBlockLists([list], { ip: "127.0.0.2", domains: ["test"] }, resolver.a);
  if (refused.length > 0) {
    return problem(
      LISTS,
      `${zone} refuses questions from here, or lists everybody: it counts for nothing.`,
      "Ask it through a resolver of your own (POSTERN_DNS), with the contract its operator wants, or leave it out.",
    );
  }
  if (symptoms.length > 0) return ok(LISTS, `${zone} answers.`);
  return warning(
    LISTS,
    `${zone} does not have its test entry.`,
    "Check its name in POSTERN_DNS_BLOCK_LISTS, and that it is a list of what it is set as (domain: for domains).",
  );
}

async function checkRspamd(url: string, host: string): Promise<Check> {
  const session = { ip: "127.0.0.1", helo: host, from: "", recipients: [`postmaster@${host}`], host };
  const answer = await rspamdAt(url)(session, MAIL, ANSWER_MS);
  if (answer.kind === "judged" || answer.kind === "later") return ok(RSPAMD, `rspamd at ${url} judges mail.`);
  const why = answer.kind === "refused" ? `it answers ${answer.status}` : answer.reason;
  return problem(
    RSPAMD,
    `rspamd at ${url} does not judge mail: ${why}.`,
    "POSTERN_RSPAMD_URL must be its worker (port 11333), reachable from here without a password.",
  );
}
