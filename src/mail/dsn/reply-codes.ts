// SMTP reply codes and enhanced status codes inside free text. RFC 5321 §4.2, RFC 3463 §2. Dates, IP addresses, ports
// and versions are no codes: "5.1.1" is a code only in one of the places below, wherever else it stands it is a number.

import { anyOf } from "../any-of.ts";

export type Codes = { smtp_code: string | null; status: string | null; code_at: number };

const textCharsMax = 4_000;

// Not a part of a longer number, an address, a host name, a bracketed IP address or a path.
const codeForm =
  /(?<![\d.\-:/@\w=%])([45][0-57]\d)(?=[\s\-:;,)\]'"#]|\. |\.?$)(?!:\d)(?! ?(?:bytes|kb|mb|hours?|minutes?|days?|sec|attempts|messages))/gi;
// What stands before a code when it is one: nothing, or words such as "said:", "code", "#", "error".
const introductions = anyOf([
  /(?:said|replied|reply|returned|responded with(?: failure)?|response|reason|was|following):/,
  /(?:code|error|status)[:=]?|error_code ?[:=]/,
  /#|<<<|>>>|\[|'|^/,
]);
const introducedCode = new RegExp(`(?:${introductions})\\s*([45][0-57]\\d)(?=[\\s\\-:;,)\\]'"#]|\\.?$)`, "im");

// Not the beginning of a host name, a longer version, a range or a path.
const enhanced = "([245]\\.\\d{1,3}\\.\\d{1,3})(?![\\w/]|\\.\\w|-\\d)";
// The grammar of places. Each is one way in which servers and reporters write an enhanced code.
const afterReplyCode = new RegExp(`(?<![\\d.\\w])([245][0-57]\\d)[\\s\\-#:]{1,20}[(\\[]?#?${enhanced}`, "g");
const places = [
  // qmail and its relatives: "no mailbox here by that name. (#5.1.1)".
  new RegExp(`[(\\[]#${enhanced}`, "g"),
  // Exchange up to 2003: "<mx.example.com #5.1.1>", "<mx.example.com #5.5.0 smtp;550 no>".
  new RegExp(`<[\\w.-]{1,255} #${enhanced}(?=[ >])`, "g"),
  // A field, or the words for it: "Status: 5.1.1", "Diagnostic-Code: smtp; 5.1.1", "DSN code 5.1.10".
  new RegExp(
    `(?<![\\w-])(?:status(?:[ _-]?code)?|(?:error|dsn)[ _-]?code|diagnostic-code[ \\t]*:[ \\t]*[\\w-]{1,30};|dsn)[ \\t]{0,3}[:=]?[ \\t]{0,3}${enhanced}`,
    "gi",
  ),
  // The beginning of a reply that is quoted without its reply code.
  new RegExp(
    `(?:said|replied|reply|answered|response|reason|accepted|rejected|refused|denied):\\s{0,20}["']?${enhanced}`,
    "gi",
  ),
  // The same on a line of its own, with the address that sendmail puts behind its codes: "5.1.1 <user@example.com>...".
  new RegExp(`^[ \\t]{0,20}${enhanced}[ \\t]{1,3}<[^\\s<>@]{1,128}@`, "gm"),
];
const atBeginning = new RegExp(`^[\\s"'(\\[]{0,20}#?${enhanced}(?=[\\s:;,)\\]<-]|$)`);

// The subject of the returned message, in a line of its own with its folded rest or in quotation marks: the sender's words.
const subjectLine =
  /^[ \t>|]{0,20}(?:subject|betreff|objet|asunto|assunto|oggetto|onderwerp|temat|тема|件名|主[题旨題])\s{0,3}[:：].*(?:\n[ \t]+(?![ \t>|]*[\w-]{1,40}:).*){0,5}/gimu;
const quotedSubject =
  /(?<=(?:message|mail|subject|titled|entitled|nachricht|betreff|mensaje|mensagem|messaggio|bericht)[ \t\n:]{1,5})(["'“„«‘])[^"'”“»’\n]{1,300}["'”“»’]/giu;

/**
 * The first reply code and the enhanced code that goes with it; null for what is not there. `isReply`: the text begins
 * where a server's reply or a diagnostic begins, so that an enhanced code may stand there alone.
 */
export function findCodes(text: string, isReply = true): Codes {
  const said = withoutSubjects(text.slice(0, textCharsMax));
  const code = findReplyCode(said);
  return { smtp_code: code?.code ?? null, status: findStatus(said, code, isReply), code_at: code?.at ?? -1 };
}

// Blanks in its place: what is found is still where it was.
function withoutSubjects(said: string): string {
  const blank = (found: string) => " ".repeat(found.length);
  return said.replace(subjectLine, blank).replace(quotedSubject, blank);
}

type FoundCode = { code: string; at: number };

function findReplyCode(said: string): FoundCode | null {
  // A code with its enhanced code behind it is beyond doubt.
  const paired = [...said.matchAll(afterReplyCode)].find(([, code, status]) => isTrouble(code!) && isTrouble(status!));
  if (paired !== undefined) return { code: paired[1]!, at: paired.index };
  const introduced = introducedCode.exec(said);
  if (introduced !== null) return { code: introduced[1]!, at: introduced.index + introduced[0].length - 3 };
  codeForm.lastIndex = 0;
  const plain = codeForm.exec(said);
  return plain === null ? null : { code: plain[1]!, at: plain.index };
}

function isTrouble(code: string): boolean {
  return !code.startsWith("2");
}

type FoundStatus = { status: string; at: number };

function findStatus(said: string, code: FoundCode | null, isReply: boolean): string | null {
  const found = enhancedCodes(said, isReply);
  // The one that follows the code is the remote side's; one before it may be the reporter's.
  const own = found.find(({ status, at }) => code !== null && at >= code.at && status[0] === code.code[0]);
  // Conversations hold commands that went well before the one that did not.
  const chosen = own ?? found.find(({ status }) => isTrouble(status)) ?? found[0];
  return chosen?.status ?? null;
}

function enhancedCodes(said: string, isReply: boolean): FoundStatus[] {
  const found: FoundStatus[] = [];
  const take = (status: string, match: RegExpMatchArray) => {
    found.push({ status, at: match.index! + match[0].length - status.length });
  };
  for (const match of said.matchAll(afterReplyCode)) {
    // RFC 2034 §4: the class agrees with the reply code. "554 2.0.1" is a version; 4 and 5 are mixed up in the wild.
    if (isTrouble(match[1]!) === isTrouble(match[2]!)) take(match[2]!, match);
  }
  for (const place of places) for (const match of said.matchAll(place)) take(match[1]!, match);
  const first = isReply ? atBeginning.exec(said) : null;
  if (first !== null) take(first[1]!, first);
  return found.sort((a, b) => a.at - b.at);
}
