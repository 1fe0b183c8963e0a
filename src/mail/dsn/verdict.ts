// What a finding of a report means: the codes it carries and the command that was refused, gathered from the fields and
// texts of the report; weigh.ts makes class, hard or soft and suppress of them. Texts that name the command are in
// stages.json. A warning or a success is never more than that.

import { anyOf } from "../any-of.ts";
import type { ReplyStage } from "../smtp/classify.ts";
import { findCodes } from "./reply-codes.ts";
import stageTable from "./stages.json" with { type: "json" };
import type { Refused } from "./transcript.ts";
import type { BounceRecipient, DsnAction, Finding } from "./types.ts";
import { type Codes, isAddressCode, weigh } from "./weigh.ts";

const diagnosticCharsMax = 1_000;
const paragraphsMax = 6;
const reportCharsMax = 4_000;

/** What the whole report adds to one finding. */
export type ReportContext = {
  /** The readable text that is about this recipient: all of it, or with several recipients what precedes them. */
  report: string;
  subject: string;
  action: DsnAction | null;
  refused: readonly Refused[];
};

const stages = stageTable.map((entry) => ({
  stage: entry.stage as ReplyStage,
  regexp: new RegExp(anyOf(entry.match), "iu"),
}));

/** Classifies one finding. Total: whatever the report says gives an answer; what is unclear is soft. */
export function judge(finding: Finding, context: ReportContext): BounceRecipient {
  const near = nearTexts(finding, context);
  const report = context.report.slice(0, reportCharsMax);
  const said = finding.action ?? context.action;
  const read = readCodes(finding, near, report);
  const action = said ?? (isSuccess(read.status) ? "delivered" : "failed");
  const codes = isTrouble(action) ? withoutSuccess(read) : read;
  const { email, original } = finding;
  const diagnostic = diagnosticOf(near.length > 0 ? near : [report], email);
  const named = { email, original, action, ...codes, diagnostic };
  if (!isTrouble(action)) {
    return { ...named, bounce_type: null, class: null, suppress: false, permanent: false };
  }
  const isFinal = action === "failed";
  // A subject may be about any of several recipients; it counts only when nothing else is said.
  const far = (near.length > 0 ? [report] : [report, context.subject]).filter(hasWords);
  const isMadeUp = hasMadeUpStatus(finding, codes, context);
  // sendmail makes such a code of the answer to RCPT only.
  const stage =
    stageOf(finding, [...near, report], context) ?? (isMadeUp && isAddressCode(codes.status) ? "rcpt" : null);
  const remote = isMadeUp ? { ...codes, status: null } : codes;
  const verdict = weigh({ near, far, codes: remote, stage, email, isFinal, isMadeUp });
  return { ...named, ...verdict, suppress: verdict.suppress && !finding.isExpanded, permanent: isFinal };
}

function isTrouble(action: DsnAction): boolean {
  return action === "failed" || action === "delayed";
}

// AOL and others write the code of a command that went well into the report of a failure: it says nothing about that.
function withoutSuccess({ smtp_code, status }: Codes): Codes {
  return { smtp_code, status: isSuccess(status) ? null : status };
}

// What is said about this recipient, the surest first: the Diagnostic-Code, the reply in a quoted conversation, the
// paragraphs behind the address.
function nearTexts(finding: Finding, context: ReportContext): string[] {
  const replies = refusedFor(finding, context).map(({ reply }) => reply);
  const paragraphs = finding.text.split(/\n[ \t]*\n/).slice(0, paragraphsMax);
  return [finding.diagnostic, ...replies, ...paragraphs].filter(hasWords);
}

// Words, and not the remains of a charset that could not be read.
function hasWords(text: string): boolean {
  const unknown = text.split("\ufffd").length - 1;
  return /[\p{L}\d]{3}/u.test(text) && unknown * 10 <= text.length;
}

// The text to show: the one with the code, else the first; what only names the address goes on with the next one.
function diagnosticOf(texts: readonly string[], email: string | null): string {
  const withCode = texts.findIndex((text) => findCodes(text).smtp_code !== null);
  const at = Math.max(0, withCode);
  const chosen = texts[at] ?? "";
  const isBare = withCode === -1 && (/:\s*$/.test(chosen) || (email !== null && chosen.includes(email)));
  const shown = isBare ? `${chosen} ${texts[at + 1] ?? ""}` : chosen;
  const plain = shown.slice(0, 8_000).replace(/[-=*#_]{4,}|[\s\p{Cc}]+/gu, " ");
  return plain.replace(/ {2,}/g, " ").trim().slice(0, diagnosticCharsMax).toWellFormed();
}

// A refused RCPT is about its own address; any other refused command is about all that have none.
function refusedFor(finding: Finding, context: ReportContext): Refused[] {
  const email = finding.email?.toLowerCase();
  const own = context.refused.filter(({ addresses }) => addresses.some((address) => address.toLowerCase() === email));
  const chosen = own.length > 0 ? own : context.refused.filter(({ addresses }) => addresses.length === 0);
  // Of several hosts that were tried, the one whose reply is the diagnostic.
  const code = findCodes(finding.diagnostic).smtp_code;
  const same = chosen.filter(({ reply }) => code !== null && reply.startsWith(code));
  return same.length > 0 ? same : chosen;
}

// The remote side's own code counts most; a Status of x.0.0 is what reporters write when they know nothing.
function readCodes(finding: Finding, near: readonly string[], report: string): Codes {
  const found = [...near.map((text) => findCodes(text)), findCodes(report, false)];
  const smtp_code = found.find((codes) => codes.smtp_code !== null)?.smtp_code ?? null;
  const inText = surest(found.map(({ status }) => status));
  const inDiagnostic = findCodes(finding.diagnostic).status;
  const isVague = finding.status === null || /\.0\.0$/.test(finding.status);
  const own = isSuccess(inDiagnostic) ? null : inDiagnostic;
  return { smtp_code, status: own ?? (isVague ? (inText ?? finding.status) : finding.status) };
}

// Of several codes one of success is the last to count: it is of another command.
function surest(statuses: readonly (string | null)[]): string | null {
  const present = statuses.filter((status) => status !== null);
  return present.find((status) => !isSuccess(status)) ?? present[0] ?? null;
}

function isSuccess(status: string | null): boolean {
  return status?.startsWith("2.") ?? false;
}

// sendmail writes 5.1.1, 5.1.6 or 5.1.3 for a 550, 551 or 553 without an enhanced code, whatever its words ("550 Access
// denied"), into the Status field and into its transcript; Postfix writes 5.0.0. Then the reply alone counts.
function hasMadeUpStatus(finding: Finding, { status }: Codes, context: ReportContext): boolean {
  const replies = [finding.diagnostic, ...refusedFor(finding, context).map(({ reply }) => reply)].map((text) =>
    findCodes(text),
  );
  const reply = replies.find(({ smtp_code }) => smtp_code !== null);
  return reply !== undefined && reply.status === null && (isAddressCode(status) || status === "5.0.0");
}

// At which command the remote side refused; null when the report does not tell.
function stageOf(finding: Finding, texts: readonly string[], context: ReportContext): ReplyStage | null {
  if (finding.isAboutAddress) return "rcpt";
  const quoted = refusedFor(finding, context).at(0);
  if (quoted !== undefined) return quoted.isPipelined ? null : quoted.stage;
  const said = texts.join("\n").slice(0, 8_000).replace(/\s+/g, " ");
  return stages.find(({ regexp }) => regexp.test(said))?.stage ?? null;
}
