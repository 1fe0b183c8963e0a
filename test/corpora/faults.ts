// Faults that a careless change could make, one at a time: the corpora must notice each. `from` stands once in the file.
// `corpora` are those that can notice it, the quickest first.

export type Fault = { what: string; file: string; from: string; to: string; corpora: string[] };

const BOUNCES = ["bounce-flufl", "dsn-misc", "bounce-sisimai"];

export const FAULTS: readonly Fault[] = [
  {
    what: "a report of an unknown address is soft",
    file: "src/mail/smtp/bounce-types.ts",
    from: 'invalid_recipient: { type: "hard"',
    to: 'invalid_recipient: { type: "soft"',
    corpora: ["smtp-reply-classification", ...BOUNCES],
  },
  {
    what: "no bounce ever suppresses",
    file: "src/mail/dsn/weigh.ts",
    from: 'suppress: bounce_type === "hard" && found.suppress',
    to: "suppress: false",
    corpora: BOUNCES,
  },
  {
    what: "a bounce is about nobody's own address",
    file: "src/mail/dsn/apportion.ts",
    from: "is_sure: named.email === null || own.includes(named)",
    to: "is_sure: false",
    corpora: BOUNCES,
  },
  {
    what: "what a report says is not taken over",
    file: "src/inbound/returned/returned-mail.ts",
    from: "suppress: finding.suppress && is_sure",
    to: "suppress: false",
    corpora: BOUNCES,
  },
  {
    what: "every bounce suppresses",
    file: "src/inbound/returned/returned-mail.ts",
    from: "suppress: finding.suppress && is_sure",
    to: "suppress: true",
    corpora: BOUNCES,
  },
  {
    what: "enhanced codes are not found",
    file: "src/mail/dsn/reply-codes.ts",
    from: "return chosen?.status ?? null;",
    to: "return null;",
    // The other collections say nothing of codes.
    corpora: ["bounce-sisimai"],
  },
  {
    what: "reply codes are not kept",
    file: "src/mail/dsn/reply-codes.ts",
    from: "smtp_code: code?.code ?? null",
    to: "smtp_code: null",
    corpora: BOUNCES,
  },
  {
    what: "a warning is a failure",
    file: "src/mail/dsn/delivery-status.ts",
    from: 'if (word.startsWith("delay")) return "delayed";',
    to: 'if (word.startsWith("delay")) return "failed";',
    corpora: BOUNCES,
  },
  {
    // Not "a report that no spam was seen": no corpus has one (test/cases/returned has).
    what: "a report of failed authentication is a complaint",
    file: "src/mail/arf/arf.ts",
    from: 'return feedbackType === "auth-failure" || feedbackType === "dmarc" ? "auth_failure" : "complaint";',
    to: 'return "complaint";',
    corpora: ["arf-feedback"],
  },
  {
    what: "an attachment loses its last octet",
    file: "src/mail/mime/decode-transfer.ts",
    from: "return { bytes: exact(out, length), defect: bad || bits >= 6",
    to: "return { bytes: exact(out, Math.max(0, length - 1)), defect: bad || bits >= 6",
    corpora: ["mime-stalwart", "mime-misc"],
  },
  {
    what: "the Message-ID is lost",
    file: "src/mail/mime/parse-message.ts",
    from: 'message_id: readOwnId(fields.first("message-id"))',
    to: "message_id: null",
    corpora: ["mime-stalwart", "mime-misc"],
  },
  {
    what: "a body that was changed is signed all the same",
    file: "src/mail/auth/verify-signature.ts",
    from: "if (hash !== signature.body_hash)",
    to: "if (false)",
    corpora: ["dkim-messages", "arc-valimail"],
  },
  {
    what: "every signature is good",
    file: "src/mail/auth/verify-signature.ts",
    from: 'if (!key) return outcome("fail", "signature did not verify");',
    to: 'if (!key) return outcome("pass", "");',
    corpora: ["dkim-messages", "arc-valimail"],
  },
  {
    what: "a chain's seals may say anything",
    file: "src/mail/auth/arc.ts",
    from: 'if (seal.cv !== (instance === 1 ? "none" : "pass"))',
    to: "if (false)",
    corpora: ["arc-valimail"],
  },
  {
    what: "DMARC passes without alignment",
    file: "src/mail/auth/dmarc.ts",
    from: "if (spf_aligned || dkim_aligned) return",
    to: "if (true) return",
    corpora: ["dmarc-evaluation", "arc-valimail"],
  },
  {
    what: "a failed include passes SPF",
    file: "src/mail/auth/spf.ts",
    from: 'return result === "temperror" || result === "permerror" ? result : result === "pass";',
    to: 'return result === "temperror" || result === "permerror" ? result : true;',
    corpora: ["spf-rfc7208"],
  },
  {
    what: "any domain may stand in an address",
    file: "src/mail/address.ts",
    from: "|| !ldhDomain.test(ascii)) return null;",
    to: ") return null;",
    corpora: ["address-syntax", "regex-redos"],
  },
  {
    what: "private suffixes are passed over",
    file: "src/mail/registrable-domain.ts",
    from: "allowPrivateDomains: true",
    to: "allowPrivateDomains: false",
    corpora: ["public-suffix-list"],
  },
  {
    what: "a report's records count once each",
    file: "src/mail/dmarc-report/build-report.ts",
    from: "toRecord(draft, record, { source_ip, count })",
    to: "toRecord(draft, record, { source_ip, count: 1 })",
    corpora: ["dmarc-aggregate-reports"],
  },
  {
    what: "sessions of TLS reports are not counted",
    file: "src/mail/tls-report/read-report.ts",
    from: "value >= 0 && value <= SESSIONS_MAX ? value : 0;",
    to: "value >= 0 && value <= SESSIONS_MAX ? 0 : 0;",
    corpora: ["tls-rpt"],
  },
];
