// What the words and diagnostics of other providers mean here. A reason that is temporary (soft bounces, 4.x.x) or about
// the sender (5.7.x: reputation, policy) is no ground to stop mailing an address. It knows no file formats.

import { anyOf } from "../../mail/any-of.ts";

export type Reason = "hard_bounce" | "complaint" | "manual" | "unsubscribe";
/** `temporary` and `policy` do not suppress; `none` says that the address is fine; null: not a word we know. */
export type Meaning = Reason | "temporary" | "policy" | "none";

const WORDS = new Map<string, Meaning>();
for (const [meaning, words] of [
  [
    "hard_bounce",
    `bounce bounced bounces hardbounce hardbounced hardbounces hard permanent permanentbounce permanentfail permanentfailure
     permfail bouncerule undeliverable cleaned nosuchuser userunknown unknownuser mailboxnotfound doesnotexist badmailbox
     hardfail dead bouncehard failedpermanent bouncedaddress unzustellbar`,
  ],
  [
    "complaint",
    `complaint complained complaints spam spamcomplaint spamcomplaints spamcomplained spamreport spamreported spamreports
     abuse abusecomplaint spamreportingaddress fbl feedbackloop feedback junk markedasspam contactflaggedasspam flaggedasspam spamnotification
     reportedasspam reportedspam flaggedasspambyrecipient beschwerde plainte queja`,
  ],
  [
    "unsubscribe",
    `unsubscribe unsubscribed unsubscribes unsubscription unsub optout optedout listunsubscribe unsubscribelink
     unsubscribedviama unsubscribedviaemail unsubscribedviaapi unsubscribedvialink globalunsubscribe globalunsubscribes
     groupunsubscribe unsubscribedaddress oneclick oneclickunsubscribe recipientunsubscribed
     abgemeldet ausgetragen afgemeld uitgeschreven desabonne desinscrit disiscritto`,
  ],
  [
    "manual",
    `manual manually manuallyadded blockedbyadmin gesperrt manualsuppression manuallydeactivated admin adminblocked administrator custom customer
     blocked blocklist blocklisted blacklist blacklisted denylist denylisted donotmail donotemail donotcontact dnc
     suppressed suppression compliance invalid invalidemail invalidemails invalidaddress bademailaddress bademail
     malformed added import imported rule blockedmanually gdpr erased`,
  ],
  [
    "temporary",
    `soft softbounce softbounced softbounces softbounceerror transient temporary temporaryfailure tempfail deferred delayed
     mailboxfull overquota quotaexceeded greylisted deliverydelayed dnserror general autoresponder outofoffice
     undetermined error`,
  ],
  [
    "policy",
    "block blocks reputation contentrejected policyrejected dmarcpolicy virusnotification invalidsender unsigned testmodelimit",
  ],
  [
    "none",
    `none subscribed neversubscribed notsubscribed nonsubscribed active delivered delivery sent send opened open firstopening uniqueopened loadedbyproxy proxyopen
     clicked click request requested requests queued scheduled processed confirmed pending accepted aktiv actif activo attivo valid allowed allowlist whitelist
     whitelisted false no 0`,
  ],
] as const) {
  for (const word of words.split(/\s+/)) WORDS.set(word, meaning);
}

/** The meaning of a reason as other systems write it: a word (`HardBounce`, `spam report`) or an SMTP diagnostic. */
export function readReason(text: string): Meaning | null {
  const word = text
    .normalize("NFD")
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "");
  const known = WORDS.get(word);
  if (known !== undefined) return known;
  const { bounce_code, diag_code } = readCodes("", text);
  return diagnose(diag_code ?? bounce_code ?? "");
}

/** What an enhanced status (RFC 3463) or reply code (RFC 5321) says, null when it is neither. */
export function diagnose(code: string): Meaning | null {
  if (/^2\.\d|^2\d\d$/.test(code)) return "none";
  if (/^4\.\d|^4\d\d$/.test(code)) return "temporary";
  if (/^5\.[347]\./.test(code)) return "policy";
  return /^5\.\d|^5\d\d$/.test(code) ? "hard_bounce" : null;
}

/** Reply code and enhanced status out of a status column and a diagnostic text; null where there is none. */
export function readCodes(status: string, text: string): { bounce_code: string | null; diag_code: string | null } {
  const enhanced =
    /^\s*([245]\.\d{1,3}\.\d{1,3})\s*$/.exec(status) ?? /(?:^|[\s(#])([245]\.\d{1,3}\.\d{1,3})(?![\d.])/.exec(text);
  const reply = /^\s*([245]\d\d)\s*$/.exec(status) ?? /^\s*(?:smtp[; ]+)?([245]\d\d)(?:[\s-]|$)/i.exec(text);
  return { bounce_code: reply?.[1] ?? null, diag_code: enhanced?.[1] ?? null };
}

const BLAMES_SENDER = new RegExp(
  anyOf([
    /spamhaus/,
    /spamcop/,
    /barracuda/,
    /block ?list/,
    /black ?list/,
    /listed (?:on|in|by)/,
    /reputation/,
    /policy reasons/,
    /rate limit/,
    /throttl/,
    /dmarc/,
    /\bspf\b/,
    /(?:content|message) (?:was )?(?:rejected|blocked)/,
    /blocked (?:by|using|due|because|for)/,
    /suspected spam/,
    /looks like spam/,
    /considered spam/,
  ]),
  "i",
);

/** True if a rejection's text speaks of the sender's reputation or the content, not of the recipient. */
export function blamesSender(text: string): boolean {
  return BLAMES_SENDER.test(text);
}

/** How a list's file name tells what it holds (`suppression_blocks.csv`), null when it does not. */
export function kindOfFile(
  name: string,
): "block" | "bounce" | "complaint" | "unsubscribe" | "invalid" | "cleaned" | null {
  const text = name.toLowerCase();
  if (/(^|[^a-z])blocks?([^a-z]|$)/.test(text)) return "block";
  if (/bounce/.test(text)) return "bounce";
  if (/spam|complain|abuse/.test(text)) return "complaint";
  if (/unsub|opt[-_ ]?out/.test(text)) return "unsubscribe";
  if (/invalid/.test(text)) return "invalid";
  return /cleaned/.test(text) ? "cleaned" : null;
}

/** Yes in the ways exports write it, in the languages whose headings we know. */
export function isYes(text: string): boolean {
  return /^(1|true|yes|y|t|x|on|ja|j|oui|si|sí|sim|wahr|vrai|vero|verdadero|verdadeiro|tak)$/i.test(text.trim());
}

/** No in the same ways. */
export function isNo(text: string): boolean {
  return /^(0|false|no|n|f|off|nein|non|nee|nej|não|nao|falsch|faux|falso|onwaar|nie)$/i.test(text.trim());
}
