import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { processorMs } from "../../../test/support/processor-time.ts";
import { rounds } from "../../../test/support/rounds.ts";
import { headersMax } from "./parse-head.ts";
import { parseMessage } from "./parse-message.ts";
import type { ParsedMail } from "./parsed-mail.ts";

const lines = (...text: string[]) => Buffer.from(text.join("\r\n"));

const mixed = (...parts: string[]) => mixedOf(parts);

const mixedOf = (parts: string[]) =>
  Buffer.from(
    `From: a@example.com\r\nContent-Type: multipart/mixed; boundary="b"\r\n\r\n${parts.map((part) => `--b\r\n${part}\r\n`).join("")}--b--\r\n`,
  );

describe("parseMessage", () => {
  it("gives fields, bodies and attachments of a whole message", () => {
    const mail = parseMessage(
      lines(
        "Received: from x by y; Fri, 20 Nov 2026 10:00:00 +0000",
        "From: =?utf-8?q?J=C3=B6rg?= <joerg@example.com>",
        'To: "Doe, Jane" <jane@example.org>, bob@example.net (Bob)',
        "Cc: team: c@example.org, d@example.org;",
        "Reply-To: r@example.com",
        "Subject: =?iso-8859-1?Q?Gr=FC=DFe?=",
        "\tfolded",
        "Date: Fri, 20 Nov 2026 11:00:00 +0100",
        "Message-ID: <1@example.com>",
        "In-Reply-To: <0@example.org>",
        "References: <a@example.org>\t<0@example.org>",
        "MIME-Version: 1.0",
        "Content-Type: multipart/mixed; boundary=o",
        "",
        "--o",
        "Content-Type: multipart/alternative; boundary=i",
        "",
        "--i",
        "Content-Type: text/plain; charset=utf-8; format=flowed",
        "Content-Transfer-Encoding: quoted-printable",
        "",
        "Gr=C3=BC=C3=9Fe =",
        "soft",
        "--i",
        "Content-Type: text/html; charset=utf-8",
        "",
        '<p>hi <img src="cid:p@x"></p>',
        "--i--",
        "--o",
        "Content-Type: image/png; name=p.png",
        "Content-ID: <p@x>",
        "Content-Disposition: inline",
        "Content-Transfer-Encoding: base64",
        "",
        "AAEC",
        "--o",
        "Content-Type: message/rfc822",
        "",
        "Subject: within",
        "",
        "body",
        "--o--",
        "",
      ),
    );
    assert.deepEqual(mail.from, [{ name: "Jörg", email: "joerg@example.com" }]);
    assert.deepEqual(mail.to, [
      { name: "Doe, Jane", email: "jane@example.org" },
      { name: "Bob", email: "bob@example.net" },
    ]);
    assert.deepEqual(
      mail.cc.map(({ email }) => email),
      ["c@example.org", "d@example.org"],
    );
    assert.equal(mail.subject, "Grüße\tfolded");
    assert.deepEqual(
      [mail.date, mail.message_id, mail.in_reply_to],
      ["2026-11-20T10:00:00.000Z", "<1@example.com>", "<0@example.org>"],
    );
    assert.deepEqual(mail.references, ["<a@example.org>", "<0@example.org>"]);
    assert.deepEqual([mail.text, mail.html], ["Grüße soft", '<p>hi <img src="cid:p@x"></p>']);
    const attachments = mail.attachments.map(({ content, ...rest }) => ({
      ...rest,
      content: content.toString("latin1"),
    }));
    assert.deepEqual(attachments, [
      {
        filename: "p.png",
        content_type: "image/png",
        size: 3,
        content_id: "p@x",
        disposition: "inline",
        content: "\x00\x01\x02",
      },
      {
        filename: "message.eml",
        content_type: "message/rfc822",
        size: 23,
        content_id: null,
        disposition: null,
        content: "Subject: within\r\n\r\nbody",
      },
    ]);
    assert.deepEqual(mail.headers.slice(0, 2), [
      { name: "Received", value: "from x by y; Fri, 20 Nov 2026 10:00:00 +0000" },
      { name: "From", value: "Jörg <joerg@example.com>" },
    ]);
    assert.deepEqual([mail.auto_submitted, mail.defects], [false, []]);
  });

  it("gives nulls and empty lists for what is not there", () => {
    const empty: ParsedMail = {
      ...{
        headers: [],
        from: [],
        sender: [],
        to: [],
        cc: [],
        reply_to: [],
        subject: null,
        date: null,
        message_id: null,
      },
      ...{
        in_reply_to: null,
        answered: [],
        references: [],
        text: "",
        html: null,
        attachments: [],
        auto_submitted: false,
        defects: ["no_empty_line"],
      },
    };
    assert.deepEqual(parseMessage(Buffer.alloc(0)), empty);
    assert.deepEqual(parseMessage(Buffer.from("\r\n")), { ...empty, defects: [] });
  });

  const charsets: [label: string, bytes: string | number[], text: string][] = [
    ["windows-1252", [0x80, 0x93, 0xe9], "€“é"],
    ["iso-8859-1", [0x92, 0xe9], "’é"],
    ["iso-8859-2", [0xb1, 0xbb], "ąť"],
    ["ISO_8859-15", [0xa4], "€"],
    ["cp-1251", [0xcf, 0xf0, 0xe8], "При"],
    ["koi8-r", [0xf0, 0xd2, 0xc9], "При"],
    ["koi8-u", [0xa4], "є"],
    ["windows-1255", [0xf9, 0xec, 0xe5, 0xed], "שלום"],
    ["gb2312", [0xc4, 0xe3, 0xba, 0xc3], "你好"],
    ["gb18030", [0x81, 0x30, 0x89, 0x38], "ß"],
    ["big5", [0xa7, 0x41, 0xa6, 0x6e], "你好"],
    ["shift_jis", [0x93, 0xfa, 0x96, 0x7b], "日本"],
    ["euc-jp", [0xc6, 0xfc, 0xcb, 0xdc], "日本"],
    ["iso-2022-jp", "\x1b$BF|K\\\x1b(B!", "日本!"],
    ["euc-kr", [0xb0, 0xa1], "가"],
    ["ks_c_5601-1987", [0xb0, 0xa1], "가"],
    ["iso-2022-kr", "\x1b$)C\x0e0!\x0f!", "가!"],
    ["iso-2022-cn", "\x1b$)A\x0eDc\x0f!", "你!"],
    ["hz-gb-2312", "~{Dc:C~} ~~", "你好 ~"],
    ["utf-7", "Hi +AOk-+2D3eAA- 1 +- 1", "Hi é😀 1 + 1"],
    ["utf-16le", [0xe9, 0x00], "é"],
    ["utf-16be", [0x00, 0xe9], "é"],
    ["x-mac-roman", [0x8e], "é"],
    ["cp850", [0x82], "é"],
    ["tis-620", [0xa1], "ก"],
    ["us-ascii", "é", "é"],
    ["us-ascii", [0xe9], "é"],
    ["utf-8", "é", "é"],
    ["utf-8", [0xe9, 0x20, 0xfc], "é ü"],
    ["no-such-charset", "é", "é"],
    ["no-such-charset", [0xe9], "é"],
    ['"utf-8"', "é", "é"],
    ["", "é", "é"],
  ];
  for (const [label, bytes, text] of charsets) {
    it(`reads text in ${label || "no charset"} (${text}), as a body and as an encoded word`, () => {
      const octets = Buffer.from(bytes as string);
      const head = Buffer.from(`Content-Type: text/plain; charset=${label}\r\n\r\n`);
      assert.equal(parseMessage(Buffer.concat([head, octets])).text, text);
      if (label === "" || label.includes('"')) return;
      assert.equal(
        parseMessage(Buffer.from(`Subject: =?${label}?B?${octets.toString("base64")}?=\r\n\r\n`)).subject,
        text,
      );
    });
  }

  it("reads header fields in the charset of the body when they were not encoded", () => {
    const octets = Buffer.concat([
      Buffer.from("Subject: "),
      Buffer.from([0xc4, 0xe3]),
      Buffer.from("\r\nContent-Type: text/plain; charset=gbk\r\n\r\n"),
    ]);
    assert.equal(parseMessage(octets).subject, "你");
    assert.equal(parseMessage(octets).headers[0]!.value, "你");
  });

  it("takes the charset of HTML from its head when the field has none", () => {
    const html = Buffer.concat([
      Buffer.from('Content-Type: text/html\r\n\r\n<meta charset="koi8-r">'),
      Buffer.from([0xf0]),
    ]);
    assert.equal(parseMessage(html).html, '<meta charset="koi8-r">П');
  });

  const filenames: [fields: string, filename: string][] = [
    ["Content-Disposition: attachment; filename=a.pdf", "a.pdf"],
    ["Content-Disposition: attachment; filename=a b.pdf; size=3", "a b.pdf"],
    ['Content-Disposition: attachment; filename="a;b=\\"c\\".pdf"', "a;b=_c_.pdf"],
    ["Content-Disposition: attachment; filename*=utf-8''na%C3%AFve%20file.txt", "naïve file.txt"],
    [
      "Content-Disposition: attachment; filename*0*=utf-8'en'%E2%82%AC; filename*1=a;\r\n filename*2*=%20b.txt",
      "€a b.txt",
    ],
    ["Content-Disposition: attachment; filename=\"plain.txt\"; filename*=utf-8''%C3%A4.txt", "ä.txt"],
    ['Content-Disposition: attachment; filename="=?utf-8?B?w6QudHh0?="', "ä.txt"],
    ['Content-Disposition: attachment; filename="report.pdf"; filename*1="x"', "report.pdf"],
    ['Content-Disposition: attachment; filename="report.pdf"; filename*=""', "report.pdf"],
    ['Content-Disposition: attachment; filename*1="report"; filename*2=".pdf"; filename*4=x', "report.pdf"],
    ["Content-Type: application/pdf; name=n.pdf\r\nContent-Disposition: attachment", "n.pdf"],
    ["Content-Type: application/pdf name=n.pdf", "n.pdf"],
    ["Content-Disposition: attachment; filename=../../etc/passwd", "passwd"],
    ['Content-Disposition: attachment; filename="C:\\dir\\x.exe. "', "x.exe"],
    ["Content-Disposition: attachment; filename=a\x07b.txt", "a b.txt"],
    ["Content-Disposition: attachment; filename=é.txt", "é.txt"],
    ["Content-Type: application/ms-tnef", "winmail.dat"],
    ["Content-Type: text/calendar; method=REQUEST", "invite.ics"],
    ["Content-Type: application/octet-stream", "attachment"],
  ];
  for (const [fields, filename] of filenames) {
    it(`names the attachment of ${JSON.stringify(fields)} ${filename}`, () => {
      const mail = parseMessage(mixed("\r\ntext", `${fields}\r\n\r\nx`));
      assert.deepEqual(
        mail.attachments.map((one) => one.filename),
        [filename],
      );
    });
  }

  const bodies: [what: string, bytes: Buffer, text: string | null, html: string | null, attachments: number][] = [
    ["one text", mixed("\r\na"), "a", null, 0],
    ["two texts", mixed("\r\na", "\r\nb"), "a\nb", null, 0],
    ["a text and a named text", mixed("\r\na", "Content-Type: text/plain; name=b.txt\r\n\r\nb"), "a", null, 1],
    ["a text to be saved", mixed("Content-Disposition: attachment\r\n\r\na"), null, null, 1],
    [
      "HTML and a footer",
      mixed("Content-Type: text/html\r\n\r\n<b>a</b>", "\r\n<list>"),
      "<list>",
      "<b>a</b>\n<div>&lt;list&gt;</div>",
      0,
    ],
    ["only HTML", lines("Content-Type: text/html", "", "<b>"), null, "<b>", 0],
    ["another kind of text", lines("Content-Type: text/markdown", "", "# a"), "# a", null, 1],
    ["an image alone", lines("Content-Type: image/gif", "", "GIF"), null, null, 1],
    ["a calendar", lines("Content-Type: text/calendar", "", "BEGIN:VCALENDAR"), "BEGIN:VCALENDAR", null, 1],
    ["CRLF and NUL", lines("", "a", "b\0c"), "a\nb\ufffdc", null, 0],
  ];
  for (const [what, bytes, text, html, attachments] of bodies) {
    it(`sorts ${what}`, () => {
      const mail = parseMessage(bytes);
      assert.deepEqual([mail.text, mail.html, mail.attachments.length], [text, html, attachments]);
    });
  }

  it("keeps the attachments of a multipart/related and reads its root, wherever it stands", () => {
    const related = lines(
      'Content-Type: multipart/related; boundary=b; start="<root@x>"',
      ...["", "--b", "Content-Type: image/png", "Content-ID: <i@x>", "", "png"],
      ...["--b", "Content-Type: text/html", "Content-ID: <root@x>", "", "<p>", "--b--"],
    );
    // Also where one of them lacks its brackets, or has a comment.
    for (const [from, to] of [
      ["", ""],
      ['"<root@x>"', '"root@x"'],
      ["Content-ID: <root@x>", "Content-ID: root@x"],
      ["<i@x>", "(a picture) <i@x> (of me)"],
    ] as const) {
      const mail = parseMessage(Buffer.from(related.toString().replace(from, to)));
      assert.deepEqual([mail.html, mail.attachments.map(({ content_id }) => content_id)], ["<p>", ["i@x"]], to);
    }
  });

  const encodings: [encoding: string, body: string, text: string, defects: string[]][] = [
    ["base64", "aGVs\r\nbG8=\r\n", "hello", []],
    ["base64", "aGVsbG8", "hello", []],
    ["base64", "aGk=aGk=", "hihi", []],
    ["base64", "aGVs*bG8=", "hello", ["bad_base64"]],
    ["quoted-printable", "a=3Db =\r\nc=3d", "a=b c=", []],
    ["quoted-printable", "a=  \r\nb", "ab", []],
    ["quoted-printable", "a=ZZ", "a=ZZ", ["bad_quoted_printable"]],
    ["x-uuencode", "begin 644 x\r\n#0V%T\r\n`\r\nend\r\n", "Cat", []],
    ["BASE64 ", "aGk=", "hi", []],
    ["7bit", "a=3D", "a=3D", []],
    ["rot13", "uryyb", "uryyb", ["unknown_encoding"]],
  ];
  for (const [encoding, body, text, defects] of encodings) {
    it(`undoes ${encoding} of ${JSON.stringify(body)}`, () => {
      const mail = parseMessage(Buffer.from(`Content-Transfer-Encoding: ${encoding}\r\n\r\n${body}`));
      assert.deepEqual([mail.text, mail.defects], [text, defects]);
    });
  }

  const automatic: [field: string, expected: boolean][] = [
    ["Auto-Submitted: auto-replied", true],
    ["Auto-Submitted: auto-generated; owner=x", true],
    ["Auto-Submitted: no", false],
    ["Auto-Submitted: No (really)", false],
    ["Precedence: auto_reply", true],
    ["Precedence: bulk", false],
    ["X-Autoreply: yes", true],
    ["Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\n\r\nx\r\n--b--", true],
  ];
  for (const [field, expected] of automatic) {
    it(`${expected ? "takes" : "does not take"} ${field.split("\r")[0]} for a machine's`, () => {
      assert.equal(parseMessage(Buffer.from(`${field}\r\n\r\n`)).auto_submitted, expected);
    });
  }

  it("treats names of objects as names like others", () => {
    const mail = parseMessage(
      lines(
        "__proto__: 1",
        "constructor: 2",
        "toString: 3",
        "Content-Type: text/plain; __proto__=x; charset=utf-8",
        "",
        "a",
      ),
    );
    assert.deepEqual(
      mail.headers.slice(0, 3).map(({ name, value }) => [name, value]),
      [
        ["__proto__", "1"],
        ["constructor", "2"],
        ["toString", "3"],
      ],
    );
    assert.equal(({} as Record<string, unknown>)["1"], undefined);
  });

  it("names what is wrong and keeps what it can", () => {
    const cases: [bytes: Buffer, defect: string, text: string][] = [
      [lines("Subject: a", "no field", "To: b@c", "", "x"), "line_without_field", "x"],
      [lines("Subject: a", "no field, no empty line"), "no_empty_line", "no field, no empty line"],
      [lines("Content-Type: multipart/mixed", "", "just text"), "boundary_missing", "just text"],
      [lines("Content-Type: multipart/mixed", "", "--guess", "", "x", "--guess--"), "boundary_missing", "x"],
      [lines("Content-Type: multipart/mixed; boundary=b", "", "just text"), "boundary_not_found", "just text"],
      [lines("Content-Type: multipart/mixed; boundary=b", "", "--b", "", "x"), "boundary_not_closed", "x"],
      [lines("Subject: 1", "Subject: 2", "", "x"), "duplicate_subject", "x"],
      [Buffer.from("From a@b Fri Nov 20 11:00:00 2026\nSubject: a\n\nx"), "", "x"],
      [Buffer.from("Subject: a\rTo: b@c\r\rx"), "", "x"],
    ];
    for (const [bytes, defect, text] of cases) {
      const mail = parseMessage(bytes);
      assert.deepEqual([mail.text, mail.defects], [text, defect === "" ? [] : [defect]], bytes.toString());
    }
  });

  it("keeps its limits, one past each, says so, and stays fast", () => {
    const parts = (count: number) => mixedOf(Array.from({ length: count }, () => "\r\nx"));
    assert.deepEqual(parseMessage(parts(999)).defects, []);
    assert.deepEqual(parseMessage(parts(1_000)).defects, ["too_many_parts"]);
    const nested = (depth: number) =>
      Buffer.from(
        Array.from(
          { length: depth },
          (_, index) => `Content-Type: multipart/mixed; boundary=b${index}\r\n\r\n--b${index}\r\n`,
        ).join(""),
      );
    assert.ok(!parseMessage(nested(50)).defects.includes("too_deep"));
    assert.ok(parseMessage(nested(51)).defects.includes("too_deep"));
    const many = parseMessage(Buffer.from(`${"A: 1\r\n".repeat(headersMax + 1)}\r\nbody`));
    assert.deepEqual([many.headers.length, many.text, many.defects], [headersMax, "body", ["head_too_large"]]);
  });

  const hostile: [what: string, bytes: Buffer][] = [
    ["50,000 parts", mixedOf(Array.from({ length: 50_000 }, () => "\r\nx"))],
    [
      "a depth of 10,000",
      Buffer.from(
        Array.from(
          { length: 10_000 },
          (_, index) => `Content-Type: multipart/mixed; boundary=b${index}\r\n\r\n--b${index}\r\n`,
        ).join(""),
      ),
    ],
    [
      "the same boundary 1,000 deep",
      Buffer.from("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n".repeat(1_000)),
    ],
    ["100,000 fields", Buffer.from(`${"A: b\r\n".repeat(100_000)}\r\nx`)],
    ["a field of 10 MB", Buffer.from(`Subject: ${"x".repeat(10_000_000)}\r\n\r\nx`)],
    ["2 MB of hyphens", Buffer.from(`Content-Type: multipart/mixed; boundary=b\r\n\r\n${"--\n".repeat(700_000)}`)],
    ["quotes and spaces in Content-Type", Buffer.from(`Content-Type: text/plain; a=${'" '.repeat(60_000)}\r\n\r\nx`)],
    ["spaces in Content-Type", Buffer.from(`Content-Type: text/plain;${" ".repeat(200_000)}\r\n\r\nx`)],
    ["quotes in From", Buffer.from(`From: ${'"\\"'.repeat(60_000)}\r\n\r\nx`)],
    ["brackets in From", Buffer.from(`From: ${"<".repeat(200_000)}\r\n\r\nx`)],
    ["at signs in From", Buffer.from(`From: ${" @ ".repeat(60_000)}\r\n\r\nx`)],
    ["encoded words", Buffer.from(`Subject: ${"=?utf-8?q?a?= ".repeat(17_000)}\r\n\r\nx`)],
    ["references", Buffer.from(`References: ${"<a@b> ".repeat(40_000)}\r\n\r\nx`)],
    ["2 MB of UTF-7", Buffer.from(`Content-Type: text/plain; charset=utf-7\r\n\r\n${"+AGE-".repeat(400_000)}`)],
    ["10 MB in one line", Buffer.from(`Subject: x\r\n\r\n${"x".repeat(10_000_000)}`)],
    [
      "2 MB of equals signs",
      Buffer.from(`Content-Transfer-Encoding: quoted-printable\r\n\r\n${"=".repeat(2_000_000)}`),
    ],
  ];
  for (const [what, bytes] of hostile) {
    it(`reads ${what} in a second`, () => {
      assert.ok(processorMs(() => parseMessage(bytes)) < 1_000);
    });
  }
});

describe("parseMessage on anything", () => {
  const word = fc.constantFrom(
    "multipart/mixed",
    "boundary=b",
    "text/html",
    "charset=",
    "utf-7",
    "iso-2022-jp",
    "base64",
    "quoted-printable",
    "=?utf-8?q?=ff?=",
    "--b",
    "--b--",
    '"',
    ";",
    "<a@b>",
    "\x00",
    "\x1b$B",
    "é",
    "\ud83d",
    "filename*0*=x'",
    "message/rfc822",
    "\\",
  );
  const text = fc
    .array(fc.oneof(word, fc.string({ unit: "binary", maxLength: 8 })), { maxLength: 8 })
    .map((words) => words.join(""));
  const field = fc
    .tuple(
      fc.constantFrom(
        "Content-Type",
        "Content-Transfer-Encoding",
        "Content-Disposition",
        "From",
        "Subject",
        "Date",
        "Message-ID",
        "References",
        "Content-ID",
        "__proto__",
      ),
      text,
    )
    .map(([name, value]) => `${name}: ${value}`);
  const head = fc.array(field, { maxLength: 4 }).map((fields) => fields.join("\r\n"));
  const piece = fc.oneof(text, head, fc.constantFrom("\r\n", "\n", "\r\n\r\n", "\r\n--b\r\n", "\r\n--b--\r\n", "\r"));
  const start = fc.constantFrom(
    "",
    "Content-Type: multipart/mixed; boundary=b\r\n",
    "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n",
  );
  const structured = fc
    .tuple(start, fc.array(piece, { maxLength: 12 }))
    .map(([first, pieces]) => Buffer.from(first + pieces.join("")));
  const raw = fc.uint8Array({ maxLength: 400 }).map((octets) => Buffer.from(octets));

  it("never throws, and gives well-formed text without NUL, sizes that are true and names that are safe", () => {
    fc.assert(
      fc.property(fc.oneof({ weight: 4, arbitrary: structured }, raw), (bytes) => {
        const before = Buffer.from(bytes);
        const mail = parseMessage(bytes);
        assert.ok(bytes.equals(before), "the message is not changed");
        const { attachments, ...rest } = mail;
        const plain = JSON.stringify([rest, attachments.map(({ content, ...one }) => one)]);
        assert.ok(plain.isWellFormed() && !plain.includes("\\u0000") && !/\\ud[89a-f]/i.test(plain));
        for (const { content, size, filename } of attachments) {
          assert.equal(content.length, size);
          assert.ok(filename !== "" && !/[/\\\p{Cc}]/u.test(filename));
        }
        for (const { value } of mail.headers) assert.ok(!/[\r\n]/.test(value));
      }),
      { numRuns: rounds(300, 3_000) },
    );
  });
});
