import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FINE, no, POLICY, read, TEMPORARY, UNKNOWN, words } from "./import-reader.fixture.ts";
import type { ImportRow } from "./import-reader.ts";

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

describe("a log of what happened to mail", () => {
  it("suppresses nobody whom it calls reached, whichever column says it", () => {
    const mailgun = [
      "event,recipient,severity,reason,delivery-status.code,timestamp",
      "accepted,a@x.example,,,,1",
      "failed,b@x.example,permanent,bounce,550,1",
      "failed,c@x.example,temporary,generic,421,1",
      "delivered,d@x.example,,,250,1",
      "complained,e@x.example,,,,1",
    ].join("\n");
    assert.deepEqual(words(mailgun), [
      no("event", FINE),
      "hard_bounce",
      no("severity", TEMPORARY),
      no("event", FINE),
      "complaint",
    ]);
    const sendgrid = [
      "processed,message_id,event,subject,from,email,reason",
      "x,m,delivered,s,f@y.example,a@x.example,",
      "x,m,delivered,s,f@y.example,b@x.example,250 2.0.0 OK",
      "x,m,delivered,s,f@y.example,c@x.example,handed over to mx.x.example",
      "x,m,bounce,s,f@y.example,d@x.example,550 5.1.1 no",
      "x,m,open,s,f@y.example,e@x.example,",
      "x,m,dropped,s,f@y.example,f@x.example,Bounced Address",
    ].join("\n");
    const [fine, bounced] = [no("event", FINE), "hard_bounce"];
    assert.deepEqual(words(sendgrid), [fine, no("reason", FINE), fine, bounced, fine, bounced]);
    const resend =
      '{"data":[{"to":["a@x.example"],"last_event":"delivered"},{"to":["b@x.example"],"last_event":"bounced"},' +
      '{"to":["c@x.example"],"last_event":"delivery_delayed"},{"to":["d@x.example"],"last_event":"teleported"}]}';
    const event = (what: string) => no("last_event", what);
    assert.deepEqual(words(resend), [event(FINE), "hard_bounce", event(TEMPORARY), event(UNKNOWN)]);
  });

  it("suppresses nobody for a reply of success", () => {
    assert.deepEqual(words("email,status\na@x.example,250\nb@x.example,2.0.0\nc@x.example,5.1.1\n"), [
      no("status", FINE),
      no("status", FINE),
      "hard_bounce",
    ]);
  });
});

describe("a list of contacts", () => {
  const flagged = (heading: string, ...values: string[]) =>
    words(`Email,Name,${heading}\n${values.map((value, row) => `p${row}@x.example,P,${value}`).join("\n")}\n`);

  it("suppresses those who opted out, as each kind of software calls it, yes or with a date", () => {
    for (const heading of [
      "unsubscribed",
      "HasOptedOutOfEmail",
      "Unsubscribed from all email",
      "GLOBAL_UNSUBSCRIBE",
      "Email Opt Out",
      "is_unsubscribed",
      "Opted Out",
      "unsubscribed_at",
      "Opt-out date",
      "Date unsubscribed",
      "marketing_opt_out",
    ]) {
      const [yes, dated, no_, empty] = flagged(heading, "true", "2024-01-01 10:00:00", "false", "");
      assert.deepEqual([yes, dated], ["unsubscribe", "unsubscribe"], heading);
      assert.deepEqual([no_, empty], [no(heading, FINE), no(heading, FINE)], heading);
    }
    for (const never of ["0000-00-00", "0", "no", "-", "null"]) {
      assert.deepEqual(flagged("unsubscribed_at", never, "2024-01-01"), [no("unsubscribed_at", FINE), "unsubscribe"]);
    }
  });

  it("suppresses those whose subscription is over, and nobody for wanting no advertising", () => {
    for (const heading of ["subscribed", "Is Subscribed"]) {
      const fine = no(heading, FINE);
      assert.deepEqual(flagged(heading, "yes", "no", "FALSE", ""), [fine, "unsubscribe", "unsubscribe", fine], heading);
    }
    for (const heading of ["opt_in", "Accepts Email Marketing"]) {
      assert.deepEqual(flagged(heading, "yes", "no"), [no(heading, FINE), no(heading, FINE)], heading);
    }
    const list = "email,opt_in\na@x.example,no\n";
    assert.deepEqual(words(list, { filename: "unsubscribed.csv" }), ["unsubscribe"]);
    assert.deepEqual(flagged("opt_in", "2024-01-01", "2024-01-02"), ["manual", "manual"]);
    assert.deepEqual(flagged("Consent", "UNSUBSCRIBED", "NEVER_SUBSCRIBED"), ["unsubscribe", no("Consent", FINE)]);
  });

  it("tells what each date stands for, and that none stands for nothing", () => {
    const rows = ",,\nx@x.example,2024-01-01,,\ny@x.example,,2024-01-01,\nz@x.example,,,2024-01-01\n";
    const list = `email,bounced_at,complained_at,unsubscribed_at\nw@x.example,${rows}`;
    for (const filename of ["", "bounces.csv"]) {
      assert.deepEqual(words(list, { filename }), [
        no("complained_at", FINE),
        "hard_bounce",
        "complaint",
        "unsubscribe",
      ]);
    }
  });

  it("goes by a column of words that it has under any name, before flags that say nothing", () => {
    assert.deepEqual(flagged("Contact Standing", "Unsubscribed", "Bounced", "Active", ""), [
      "unsubscribe",
      "hard_bounce",
      no("Contact Standing", FINE),
      "manual",
    ]);
    assert.deepEqual(flagged("理由", "bounce", "complaint"), ["hard_bounce", "complaint"]);
    assert.deepEqual(flagged("Statut", "désabonné", "actif"), ["unsubscribe", no("Statut", FINE)]);
    // Words that stand for a kind of customer as well as for a suppression are no such column.
    assert.deepEqual(flagged("Kind", "customer", "active"), ["manual", "manual"]);
    assert.deepEqual(
      words("email,status,unsubscribed\na@x.example,active,yes\nb@x.example,active,no\nc@x.example,bounced,yes\n"),
      ["unsubscribe", no("status", FINE), "hard_bounce"],
    );
  });
});

describe("a list without a heading", () => {
  it("has as many entries as addresses where a line holds nothing else", () => {
    for (const list of [
      "a@x.example,b@x.example,c@x.example",
      "a@x.example; b@x.example;\nc@x.example;",
      "a@x.example\tb@x.example\n<c@x.example>\n",
    ]) {
      const { rows } = read(list);
      assert.deepEqual(
        rows.map((row) => ("email" in row ? [row.row, row.email] : row)),
        [
          [1, "a@x.example"],
          [2, "b@x.example"],
          [3, "c@x.example"],
        ],
        list,
      );
    }
    assert.deepEqual(words("a@x.example,b@,c@x.example\n"), [
      "manual",
      "no: the address is not a valid e-mail address",
      "manual",
    ]);
  });
});

describe("our own export", () => {
  it("comes back as it was where a cell was guarded from being a formula", () => {
    const { rows } = read(
      "email,reason,scope_type,scope_id,note\n" +
        "'+a@x.example,unsubscribe,list,'@y,'=1+1\n''=b@x.example,unsubscribe,list,''=q,'plain\no'c@x.example,manual,org,,'tis\n",
    );
    assert.deepEqual(
      rows.map((row) => ("email" in row ? [row.email, row.scopes[0]?.scope_id, row.note] : row)),
      [
        ["+a@x.example", "@y", "=1+1"],
        ["'=b@x.example", "'=q", "'plain"],
        ["o'c@x.example", "", "'tis"],
      ],
    );
  });
});
