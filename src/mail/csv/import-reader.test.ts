import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Provider } from "./formats.ts";
import { createImportReader, type ImportRow } from "./import-reader.ts";

type Options = { provider?: Provider; filename?: string; piece?: number };

function read(content: string | Buffer, { provider, filename = "", piece = 64 * 1024 }: Options = {}) {
  const reader = createImportReader({ provider: provider ?? null, filename, now_ms: Date.UTC(2026, 10, 20) });
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  const rows: ImportRow[] = [];
  for (let at = 0; at < bytes.length; at += piece) rows.push(...reader.push(bytes.subarray(at, at + piece)));
  rows.push(...reader.end());
  return { provider: reader.format()?.provider ?? null, rows };
}

/** One word a row: the reason (with its scopes unless org), or the message of what is wrong. */
function words(content: string | Buffer, options?: Options): string[] {
  return read(content, options).rows.map((row) => {
    if ("message" in row) return `no: ${row.message}`;
    const scopes = row.scopes.filter(({ scope_type }) => scope_type !== "org");
    return [row.reason, ...scopes.map(({ scope_type, scope_id }) => `${scope_type}=${scope_id}`)].join(" ");
  });
}
const no = (column: string, what: string) => `no: '${column}' ${what}`;
const TEMPORARY = "is a temporary failure, which does not suppress";
const POLICY = "is about the sender or the content, which does not suppress the recipient";
const FINE = "says that the address is not suppressed";
const UNKNOWN = "is not a reason that we know";

describe("each provider's exports", () => {
  const cases: [string, Provider, string, string[], Options?][] = [
    [
      "SendGrid bounces",
      "sendgrid",
      "status,reason,email,created\n5.1.1,550 5.1.1 gone,a@x.example,1\n5.2.2,452 4.2.2 full,b@x.example,1\n,no route,c@x.example,1\n5.4.4,,d@x.example,1\n",
      ["hard_bounce", "hard_bounce", "hard_bounce", "hard_bounce"],
    ],
    [
      "SendGrid blocks, by what they say",
      "sendgrid",
      "created,email,reason,status\n1,a@x.example,550 5.7.1 spam,5.7.1\n1,b@x.example,421 try later,4.0.0\n1,c@x.example,550 listed at spamhaus,5.0.0\n1,d@x.example,450 4.1.8 greylisted,\n",
      [no("status", POLICY), no("status", TEMPORARY), no("status", POLICY), no("status", TEMPORARY)],
    ],
    [
      "SendGrid blocks, by the file's name",
      "sendgrid",
      "status,reason,email,created\n5.1.1,550 gone,a@x.example,1\n",
      [no("reason", "is a block, which SendGrid retries and does not suppress")],
      { filename: "suppression_blocks.csv" },
    ],
    ["SendGrid invalid emails", "sendgrid", "reason,email,created\nKnown bad domain,a@x.example,1\n", ["manual"]],
    ["SendGrid spam reports", "sendgrid", "email,ip,created\na@x.example,192.0.2.1,1\n", ["complaint"]],
    ["SendGrid unsubscribes", "sendgrid", "email,created\na@x.example,1\n", ["unsubscribe"]],
    [
      "SendGrid group unsubscribes (API)",
      "sendgrid",
      '[{"email":"a@x.example","group_id":4,"group_name":"Weekly","created_at":1}]',
      ["unsubscribe list=Weekly"],
    ],
    [
      "SendGrid's API",
      "sendgrid",
      '[{"created":1,"email":"a@x.example","reason":"550 no","status":"5.1.1"}]',
      ["hard_bounce"],
    ],
    [
      "Mailgun bounces",
      "mailgun",
      "address,code,error,created_at\na@x.example,550,No such user,x\nb@x.example,,,\nc@x.example,450,later,x\n",
      ["hard_bounce", "hard_bounce", no("code", TEMPORARY)],
    ],
    ["Mailgun complaints", "mailgun", "Address,Created At\na@x.example,x\n", ["complaint"]],
    [
      "Mailgun unsubscribes",
      "mailgun",
      'address,tags,created_at\na@x.example,*,x\nb@x.example,"news, deals",x\nc@x.example,,x\nd@x.example,"[""a b"",""c""]",x\n',
      ["unsubscribe", "unsubscribe list=news list=deals", "unsubscribe", "unsubscribe list=a b list=c"],
    ],
    [
      "Mailgun's API",
      "mailgun",
      '{"items":[{"address":"a@x.example","tags":["*"],"created_at":"x"}],"paging":{"next":"u"}}',
      ["unsubscribe"],
    ],
    [
      "Mailgun's allowlist",
      "mailgun",
      "value,type,reason,createdAt\na@x.example,address,x,y\n",
      [no("type", "is an allowlist entry, which does not suppress")],
    ],
    [
      "Postmark's dump",
      "postmark",
      "EmailAddress,SuppressionReason,Origin,CreatedAt\na@x.example,ManualSuppression,Recipient,t\nb@x.example,ManualSuppression,Customer,t\nc@x.example,HardBounce,Recipient,t\nd@x.example,SpamComplaint,Recipient,t\ne@x.example,Other,Admin,t\n",
      ["unsubscribe", "manual", "hard_bounce", "complaint", no("SuppressionReason", UNKNOWN)],
    ],
    [
      "Postmark's API",
      "postmark",
      '{"Suppressions":[{"EmailAddress":"a@x.example","SuppressionReason":"HardBounce","Origin":"Recipient","CreatedAt":"t"}]}',
      ["hard_bounce"],
    ],
    [
      "Postmark's bounces",
      "postmark",
      '{"TotalCount":2,"Bounces":[{"ID":1,"Type":"HardBounce","Email":"a@x.example","BouncedAt":"t","Details":"smtp;550 5.1.1 gone"},{"ID":2,"Type":"Transient","Email":"b@x.example","BouncedAt":"t"}]}',
      ["hard_bounce", no("Type", TEMPORARY)],
    ],
    [
      "Resend suppressions",
      "resend",
      "email,reason,created_at\na@x.example,bounced,t\nb@x.example,complained,t\n",
      ["hard_bounce", "complaint"],
    ],
    [
      "Resend contacts",
      "resend",
      "id,email,first_name,last_name,created_at,unsubscribed\n1,a@x.example,A,B,t,true\n2,b@x.example,A,B,t,false\n",
      ["unsubscribe", no("unsubscribed", FINE)],
    ],
    [
      "SES without heading",
      "ses",
      "a@x.example,BOUNCE\nb@x.example, COMPLAINT\nc@x.example,\nd@x.example\n",
      ["hard_bounce", "complaint", no("2", "gives no reason"), no("2", "gives no reason")],
    ],
    [
      "SES, one object a line",
      "ses",
      '{"emailAddress":"a@x.example","reason":"BOUNCE"}\n{"emailAddress":"b@x.example","reason":"COMPLAINT"}\n{"emailAddress":"c@x.example"}\n',
      ["hard_bounce", "complaint", no("reason", "gives no reason")],
    ],
    [
      "SES's API",
      "ses",
      '{"SuppressedDestinationSummaries":[{"EmailAddress":"a@x.example","Reason":"COMPLAINT","LastUpdateTime":"t"}],"NextToken":"n"}',
      ["complaint"],
    ],
    ["SES tools", "ses", "Email Address,Reason,Last Update Time\na@x.example,BOUNCE,t\n", ["hard_bounce"]],
    [
      "Mailchimp cleaned",
      "mailchimp",
      "Email Address,First Name,MEMBER_RATING,CLEAN_TIME,CLEAN_CAMPAIGN_TITLE,LEID\na@x.example,A,1,t,W,1\n",
      ["hard_bounce"],
    ],
    [
      "Mailchimp unsubscribed",
      "mailchimp",
      "Email Address,First Name,MEMBER_RATING,UNSUB_TIME,UNSUB_CAMPAIGN_TITLE,UNSUB_REASON,UNSUB_REASON_OTHER,LEID\na@x.example,A,1,t,W,NORMAL,,1\nb@x.example,A,1,t,W,ABUSE: complaint,,1\n",
      ["unsubscribe", "complaint"],
    ],
    [
      "Mailchimp subscribed",
      "mailchimp",
      "Email Address,First Name,MEMBER_RATING,OPTIN_TIME,LEID\na@x.example,A,2,t,1\n",
      [no("unsubtime", "is missing: the member is subscribed, not suppressed")],
    ],
    [
      "Mandrill rejects",
      "mandrill",
      "email,reason,detail,created_at,expires_at,last_event_at,expires_at,subaccount\na@x.example,hard-bounce,550 5.1.1 gone,2013-01-01 15:30:27,2013-01-02 15:30:27,t,t,\nb@x.example,soft-bounce,,t,t,t,t,\nc@x.example,spam,,t,,t,,\nd@x.example,unsub,,t,,t,,\ne@x.example,custom,phoned,t,,t,,\n",
      ["hard_bounce", no("reason", TEMPORARY), "complaint", "unsubscribe", "manual"],
    ],
    [
      "Mandrill's API",
      "mandrill",
      '[{"email":"a@x.example","reason":"hard-bounce","detail":"550","created_at":"t","last_event_at":"t","expires_at":"t","expired":true,"sender":{"address":"s@x.example"},"subaccount":"c"}]',
      [no("expired", "says that the entry has expired")],
    ],
    [
      "Brevo blocked contacts (API)",
      "brevo",
      '{"count":6,"contacts":[{"email":"a@x.example","senderEmail":"s@y.example","reason":{"code":"hardBounce","message":"m"},"blockedAt":"t"},{"email":"b@x.example","senderEmail":"","reason":{"code":"unsubscribedViaMA"},"blockedAt":"t"},{"email":"c@x.example","reason":{"code":"adminBlocked"},"blockedAt":"t"},{"email":"d@x.example","reason":{"code":"contactFlaggedAsSpam"},"blockedAt":"t"}]}',
      ["hard_bounce", "unsubscribe", "manual", "complaint"],
    ],
    [
      "Brevo blocked contacts (CSV)",
      "brevo",
      "email;reason;date\na@x.example;unsubscribedViaEmail;t\nb@x.example;hardBounce;t\n",
      ["unsubscribe", "hard_bounce"],
    ],
    [
      "Brevo contacts",
      "brevo",
      "CONTACT ID;EMAIL;FIRSTNAME;EMAIL_BLACKLISTED\n1;a@x.example;A;true\n2;b@x.example;B;false\n",
      ["unsubscribe", no("EMAIL_BLACKLISTED", FINE)],
    ],
    [
      "Brevo's log",
      "brevo",
      'st_text,ts,sub,frm,email\n"Hard bounce",t,s,f@y.example,a@x.example\nSoft bounce,t,s,f@y.example,b@x.example\nComplaint,t,s,f@y.example,c@x.example\nDelivered,t,s,f@y.example,d@x.example\n',
      ["hard_bounce", no("st_text", TEMPORARY), "complaint", no("st_text", FINE)],
    ],
    [
      "SparkPost flags",
      "sparkpost",
      "recipient,transactional,non_transactional,description,subaccount_id\na@x.example,true,true,d,0\nb@x.example,false,true,,0\nc@x.example,true,false,,0\nd@x.example,false,false,,0\n",
      [
        "manual",
        "unsubscribe stream=bulk",
        "unsubscribe stream=transactional",
        no("non_transactional", "sets neither transactional nor non_transactional"),
      ],
    ],
    [
      "SparkPost entries",
      "sparkpost",
      "recipient,type,source,description,created,updated\na@x.example,non_transactional,List Unsubscribe,d,t,t\nb@x.example,transactional,Bounce Rule,550 5.1.1 gone,t,t\nc@x.example,non_transactional,Spam Complaint,d,t,t\nd@x.example,non_transactional,Manually Added,d,t,t\n",
      ["unsubscribe stream=bulk", "hard_bounce", "complaint", "manual stream=bulk"],
    ],
    [
      "SparkPost's API",
      "sparkpost",
      '{"results":[{"recipient":"a@x.example","type":"transactional","source":"Compliance","transactional":true,"non_transactional":false}],"links":[{"href":"x","rel":"next"}],"total_count":1}',
      ["manual stream=transactional"],
    ],
  ];
  for (const [name, provider, content, expected, options] of cases) {
    it(`${name}: recognized as ${provider}, each row judged`, () => {
      assert.equal(read(content, options).provider, provider);
      assert.deepEqual(words(content, options), expected);
      assert.deepEqual(words(content, { ...options, provider }), expected);
      assert.deepEqual(words(content, { ...options, piece: 5 }), expected);
    });
  }
});

describe("a list of no known provider", () => {
  const cases: [string, string, string[]][] = [
    ["one address a line", "a@x.example\nb@x.example\n", ["manual", "manual"]],
    ["an address column only", "E-Mail\na@x.example\n", ["manual"]],
    [
      "reasons in many words",
      "email,reason\na@x.example,Hard Bounce\nb@x.example,SPAM\nc@x.example,opt-out\nd@x.example,blacklisted\ne@x.example,soft_bounce\nf@x.example,active\ng@x.example,550 5.1.1 gone\nh@x.example,550 5.7.1 no\ni@x.example,asked by phone\nj@x.example,\n",
      [
        "hard_bounce",
        "complaint",
        "unsubscribe",
        "manual",
        no("reason", TEMPORARY),
        no("reason", FINE),
        "hard_bounce",
        no("reason", POLICY),
        "manual",
        "manual",
      ],
    ],
    [
      "flags",
      "email,bounced,unsubscribed\na@x.example,1,0\nb@x.example,no,YES\nc@x.example,0,0\n",
      ["hard_bounce", "unsubscribe", no("bounced", FINE)],
    ],
    [
      "an address column found by what it holds",
      "Kunde;Kontaktweg;Bemerkung\n1;a@x.example;x\n2;b@x.example;y\n",
      ["manual", "manual"],
    ],
    [
      "a column named user that is not the address",
      "user,mail_1\nann,a@x.example\nbob,b@x.example\n",
      ["manual", "manual"],
    ],
    [
      "scope columns",
      `email,reason,scope_type,scope_id\na@x.example,unsubscribe,list,news\nb@x.example,hard_bounce,list,news\nc@x.example,unsubscribe,domain,x\nd@x.example,,planet,x\ne@x.example,unsubscribe,org,\nf@x.example,unsubscribe,list,\n`,
      [
        "unsubscribe list=news",
        "hard_bounce",
        no("scope_id", "must be the id of a domain"),
        no("scope_type", "must be one of: org, domain, stream, template, list"),
        "unsubscribe",
        no("scope_id", "is required for the scope list"),
      ],
    ],
  ];
  for (const [name, content, expected] of cases) {
    it(`with ${name}`, () => {
      assert.equal(read(content).provider, "custom");
      assert.deepEqual(words(content), expected);
    });
  }

  it("keeps codes, note and expiry where there are columns for them", () => {
    const { rows } = read(
      "email,reason,status,note,expires_at\na@x.example,bounce,5.1.1,by hand,2031-01-02T03:04:05+01:00\nb@x.example,bounce,,,soon\n",
    );
    assert.deepEqual(rows[0], {
      row: 1,
      email: "a@x.example",
      reason: "hard_bounce",
      scopes: [{ scope_type: "org", scope_id: "" }],
      bounce_code: null,
      diag_code: "5.1.1",
      note: "by hand",
      expires_at: "2031-01-02T02:04:05.000Z",
    });
    assert.deepEqual(rows[1], { row: 2, column: "expires_at", value: "soon", message: "'expires_at' is not a time" });
  });

  it("takes an expiry that can be read in one way only, and none that is over", () => {
    const expiry = (text: string) => {
      const [row] = read(`email,reason,expires_at\na@x.example,bounce,"${text}"\n`).rows;
      assert.ok(row);
      return "message" in row ? row.message : row.expires_at;
    };
    const times: [string, string][] = [
      ["2031-01-02", "2031-01-02T00:00:00.000Z"],
      ["2031/01/02 03:04", "2031-01-02T03:04:00.000Z"],
      ["2031-01-02 03:04:05", "2031-01-02T03:04:05.000Z"],
      ["2031-01-02 03:04:05.1239 UTC", "2031-01-02T03:04:05.123Z"],
      ["2031-01-02T03:04:05-0530", "2031-01-02T08:34:05.000Z"],
      ["2032-02-29t00:00:00z", "2032-02-29T00:00:00.000Z"],
      ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z"],
      ["1925424000", "2031-01-06T00:00:00.000Z"],
      ["1925424000123", "2031-01-06T00:00:00.123Z"],
    ];
    for (const [text, at] of times) assert.equal(expiry(text), at, text);
    const none = [
      "46023",
      "12/31/12000",
      "12/31/2031",
      "0",
      "1",
      "may 1 2031",
      "2031-02-29",
      "2031-13-01",
      "2031-01-02T24:00",
    ];
    const beyond = [
      "+046023-01-01",
      "9999-12-31T23:59:59-01:00",
      "2031-01-02T03:04:05+25:00",
      "-000001-01-01",
      "10000-01-01",
    ];
    for (const text of [...none, ...beyond]) assert.equal(expiry(text), "'expires_at' is not a time", text);
    for (const text of ["2026-11-20", "1999-01-01", "0001-01-01", "1763000000"]) {
      assert.equal(expiry(text), "'expires_at' is in the past", text);
    }
  });

  it("holds no half of a surrogate pair, cut by a limit or written by JSON", () => {
    const note = `${"x ".repeat(249)}y😀 more`;
    const list = `${"l".repeat(255)}😀`;
    const [noted] = read(`email,reason,note\na@x.example,bounce,${note}\n`).rows as [ImportRow];
    assert.deepEqual("note" in noted && [noted.note?.length, noted.note?.isWellFormed()], [500, true]);
    const [listed] = read(`email,created,group_id,group_name\na@x.example,1,7,${list}\n`).rows as [ImportRow];
    assert.deepEqual("scopes" in listed && listed.scopes.map(({ scope_id }) => scope_id), [`${"l".repeat(255)}\ufffd`]);
    const json = '{"email":"a@x.example","reason":"bounce","note":"half \\ud800 a pair"}\n';
    const [written] = read(json.repeat(2)).rows as [ImportRow];
    assert.equal("note" in written && written.note, "half \ufffd a pair");
    const scoped = '{"email":"a@x.example","reason":"manual","scope_type":"list","scope_id":"\\udc00"}\n';
    const [inList] = read(scoped.repeat(2)).rows as [ImportRow];
    assert.ok("scopes" in inList && inList.scopes.every(({ scope_id }) => scope_id.isWellFormed()));
  });

  it("takes the provider that is given, with the file's own columns", () => {
    const found = read("email,reason\na@x.example,bounce\n", { provider: "mailchimp" });
    assert.deepEqual([found.provider, found.rows.length], ["mailchimp", 1]);
    assert.deepEqual(words("email,reason\na@x.example,who knows\n", { provider: "ses" }), [no("reason", UNKNOWN)]);
    assert.deepEqual(words("status,reason,email,created\n5.1.1,550 gone,a@x.example,1\n", { provider: "custom" }), [
      "hard_bounce",
    ]);
  });

  it("takes the reason that the file's name tells where no column does", () => {
    assert.deepEqual(words("email\na@x.example\n", { filename: "Hard Bounces.csv" }), ["hard_bounce"]);
    assert.deepEqual(words("email\na@x.example\n", { filename: "unsubscribed_members.csv" }), ["unsubscribe"]);
  });

  it("has no format without a column of addresses, and is empty when it has no rows", () => {
    assert.deepEqual(read("name,age\nann,7\n").provider, null);
    assert.deepEqual(read(""), { provider: null, rows: [] });
    assert.deepEqual(read("email,reason\r\n"), { provider: "custom", rows: [] });
    assert.deepEqual(read("[]").rows, []);
  });
});

describe("addresses in a list", () => {
  const rowOf = (address: string) => {
    const row = read(`email\n"${address.replaceAll('"', '""')}"\n`, { provider: "custom" }).rows[0];
    return row && "email" in row ? row.email : null;
  };
  it("are trimmed, lower-cased, taken out of brackets and names, with international domains in ASCII", () => {
    for (const given of [
      "  A@X.example ",
      "<a@x.example>",
      "Ann <A@x.example>",
      '"Ann, B." <a@x.example>',
      "mailto:a@x.example",
      "\ufeffa@x.example",
      "a@x.example\u00a0",
    ]) {
      assert.equal(rowOf(given), "a@x.example", given);
    }
    assert.equal(rowOf("a@m\u00fcnchen.example"), "a@xn--mnchen-3ya.example");
    assert.equal(rowOf("'=1+1@x.example"), "=1+1@x.example");
    assert.equal(rowOf("o'neil@x.example"), "o'neil@x.example");
  });

  it("that are none are shown with their row, column and value", () => {
    const content = `E-mail\n\n${["nope", "a@b@c", "@x.example", "a@x", "a b@x.example", "a@x.example,", `${"x".repeat(300)}@x.example`].join("\n")}\n`;
    const { rows } = read(content);
    assert.equal(rows.length, 7);
    assert.deepEqual(rows[0], {
      row: 1,
      column: "E-mail",
      value: "nope",
      message: "the address is not a valid e-mail address",
    });
    assert.ok(rows[6] && "value" in rows[6] && rows[6].value?.length === 200);
    const missing = read("email,reason\n,bounce\n").rows[0];
    assert.deepEqual(missing, { row: 1, column: "email", value: "", message: "there is no address" });
  });
});

describe("a damaged list", () => {
  it("is read the same in pieces of any size, also when its first line is longer than the head", () => {
    const content = `${"x".repeat(17_000)},"a;b;c;d\nA@B.example;gone\n"un"q@x.example;\nx@y.example;z\n`;
    const whole = read(content).rows;
    for (const piece of [1_000, 16_384, 17_002]) assert.deepEqual(read(content, { piece }).rows, whole, `in ${piece}s`);
  });

  it("is read the same in pieces of any size, also when rows behind its first ones have more columns", () => {
    const first = Array.from({ length: 50 }, (_, n) => `a${n}@x.example,${n % 2 === 0 ? "bounce" : ""}\n`).join("");
    const content = `${first}b@x.example,bounce,x,y,z\n`;
    const whole = read(content).rows;
    for (const piece of [1, 100]) assert.deepEqual(read(content, { piece }).rows, whole, `in ${piece}s`);
  });

  it("shows a row with NUL, more fields than headings, or a quote that is never closed", () => {
    const { rows } = read(
      'email,reason\na@x.example,bou\0nce\nb@x.example,bounce,more\nc@x.example,bounce,,\nd@x.example,"open\ne@x.example,bounce\n',
    );
    assert.deepEqual(
      rows.map((row) => ("message" in row ? [row.row, row.column, row.value, row.message] : row.email)),
      [
        [1, "reason", "bou␀nce", "the value holds a NUL character"],
        [2, null, "b@x.example,bounce,more", "the row has 3 fields, the heading 2"],
        "c@x.example",
        [4, null, 'd@x.example,"open', "a quoted field begins in this row and is never closed"],
        [5, null, "e@x.example,bounce", "the row lies inside a quoted field that is never closed"],
      ],
    );
  });

  for (const [name, bytes] of [
    ["UTF-16LE", Buffer.from("\ufeffemail\treason\r\njos\u00e9@x.example\tbounce\r\n", "utf16le")],
    ["windows-1252", Buffer.from("email;reason\rjos\u00e9@x.example;bounce\r", "latin1")],
    ["UTF-8 with BOM", Buffer.from("\ufeffemail|reason\njos\u00e9@x.example|bounce")],
  ] as const) {
    it(`is none in ${name}`, () => {
      const { rows } = read(bytes, { piece: 3 });
      assert.deepEqual(
        rows.map((row) => "email" in row && [row.email, row.reason]),
        [["jos\u00e9@x.example", "hard_bounce"]],
      );
    });
  }

  it("never throws, whatever the bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.integer({ min: 1, max: 50 }), (bytes, piece) => {
        for (const row of read(Buffer.from(bytes), { piece }).rows) assert.ok(row.row > 0);
      }),
      { numRuns: 500 },
    );
    const unit = fc.constantFrom(
      "email",
      "a@x.example",
      ",",
      "\n",
      '"',
      "{",
      "}",
      "[",
      "]",
      ":",
      "reason",
      "\0",
      "\u00e9",
      "__proto__",
    );
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 40 }), (text) => {
        const whole = read(text);
        assert.deepEqual(read(text, { piece: 2 }), whole);
      }),
      { numRuns: 1_000 },
    );
  });
});
