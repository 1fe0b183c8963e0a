// SMTP reply codes and enhanced status codes inside free text. RFC 5321 §4.2, RFC 3463 §2. Dates, IP addresses, ports
// and versions are no codes.

export type Codes = { smtp_code: string | null; status: string | null; code_at: number };

const textCharsMax = 4_000;

// Not a part of a longer number, an address, a host name, a bracketed IP address or a path.
const codeForm =
  /(?<![\d.\-:/@\w=%])([45][0-57]\d)(?=[\s\-:;,)\]'"#]|\. |\.?$)(?!:\d)(?! ?(?:bytes|kb|mb|hours?|minutes?|days?|sec|attempts|messages))/gi;
const statusForm = /(?<![\d.\w])([245]\.\d{1,3}\.\d{1,3})(?![\d]|\.\d)/g;
// What stands before a code when it is one: nothing, or words such as "said:", "code", "#", "error".
const introducedCode =
  /(?:said:|replied:|reply:|returned:|responded with(?: failure)?:|response:|reason:|was:|code[:=]?|error[:=]?|status[:=]?|error_code ?[:=]|#|<<<|>>>|following:|\[|'|^)\s*([45][0-57]\d)(?=[\s\-:;,)\]'"#]|\.?$)/im;

/** The first reply code and the enhanced code that goes with it; null for what is not there. */
export function findCodes(text: string): Codes {
  const said = text.slice(0, textCharsMax);
  const code = findReplyCode(said);
  return { smtp_code: code?.code ?? null, status: findStatus(said, code), code_at: code?.at ?? -1 };
}

type FoundCode = { code: string; at: number };

function findReplyCode(said: string): FoundCode | null {
  // A code with its enhanced code behind it is beyond doubt.
  const paired = /(?<![\d.\w])([45][0-57]\d)[ \-#:]{1,3}\(?#?([45]\.\d{1,3}\.\d{1,3})(?![\d]|\.\d)/.exec(said);
  if (paired !== null) return { code: paired[1]!, at: paired.index };
  const introduced = introducedCode.exec(said);
  if (introduced !== null) return { code: introduced[1]!, at: introduced.index + introduced[0].length - 3 };
  codeForm.lastIndex = 0;
  const plain = codeForm.exec(said);
  return plain === null ? null : { code: plain[1]!, at: plain.index };
}

function findStatus(said: string, code: FoundCode | null): string | null {
  let success: string | null = null;
  let trouble: string | null = null;
  for (const match of said.matchAll(statusForm)) {
    const status = match[1]!;
    if (status.startsWith("2.")) success ??= status;
    else trouble ??= status;
    // The one that follows the code is the remote side's; one before it may be the reporter's.
    if (code !== null && match.index >= code.at && status[0] === code.code[0]) return status;
  }
  // Conversations hold commands that went well before the one that did not.
  return trouble ?? success;
}
