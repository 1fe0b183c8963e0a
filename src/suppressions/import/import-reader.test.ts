import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { rounds } from "../../../test/support/rounds.ts";
import type { Provider } from "./formats.ts";
import { FINE, no, type Options, POLICY, read, TEMPORARY, UNKNOWN, words } from "./import-reader.fixture.ts";

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
      '{"TotalCount":2,"Bounces":[{"ID":1,"Type":"HardBounce","Email":"a@x.example","BouncedAt":"t","Details":"smtp;550 5.1.1 gone"},{"ID":2,"Type":"Transient","Email":"b@x.example","BouncedAt":"t"},{"ID":3,"Type":"Blocked","Email":"c@x.example","BouncedAt":"t"},{"ID":4,"Type":"VirusNotification","Email":"d@x.example","BouncedAt":"t"}]}',
      ["hard_bounce", no("Type", TEMPORARY), no("Type", POLICY), no("Type", POLICY)],
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
      "Mailchimp with an audience's own heading for the address",
      "mailchimp",
      "Adresse électronique,Prénom,MEMBER_RATING,UNSUB_TIME,UNSUB_REASON,LEID,EUID\na@x.example,A,1,t,ABUSE: complaint,1,2\nb@x.example,B,1,t,NORMAL,1,2\n",
      ["complaint", "unsubscribe"],
    ],
    [
      "Mailchimp's API",
      "mailchimp",
      '{"members":[{"id":"h","email_address":"a@x.example","status":"unsubscribed","unsubscribe_reason":"N/A","member_rating":2},{"email_address":"b@x.example","status":"cleaned","member_rating":2},{"email_address":"c@x.example","status":"transactional","member_rating":2}]}',
      ["unsubscribe", "hard_bounce", no("status", "is not that of a suppressed member")],
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
      "\u202aa@x.example\u202c",
      '="a@x.example"',
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
      { numRuns: rounds(200, 1_000) },
    );
  });
});
