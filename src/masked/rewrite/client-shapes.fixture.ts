// Replies in the shapes that real mail programs write, whole: heads with everything they say of their author, both
// alternatives, quotes, inline answers, reply-all with the own address, read receipts, invitations and their answers.

/** `d` the mailbox, `r` the reverse address, `a` the alias. */
export type Cast = { d: string; r: string; a: string };

export type Shape = {
  program: string;
  what: string;
  message(cast: Cast): string;
  /** What the contact must find in the text or HTML. */
  keeps: RegExp;
  /** What must be left of the attachments, by type; none by default. */
  attachments?: string[];
};

const head = ({ d, r }: Cast, ...more: string[]) =>
  [
    "Return-Path: <{d}>",
    'From: "Anna Real" <{d}>',
    "To: Shop (shop at example.com) <{r}>",
    "Subject: Re: Your order",
    "Date: Fri, 20 Nov 2026 20:35:00 +0530",
    "MIME-Version: 1.0",
    ...more,
  ]
    .join("\n")
    .replaceAll("{d}", d)
    .replaceAll("{r}", r);

const b64 = (text: string) => Buffer.from(text).toString("base64").replace(/.{76}/g, "$&\n");
const qp = (text: string) =>
  text.replace(/[=\u0080-\uffff]/g, (char) =>
    [...Buffer.from(char)].map((byte) => `=${byte.toString(16).toUpperCase()}`).join(""),
  );

const invitationAnswer = ({ d, r }: Cast, more = "") =>
  `BEGIN:VCALENDAR\r\nPRODID:-//Client//EN\r\nVERSION:2.0\r\nCALSCALE:GREGORIAN\r\nMETHOD:REPLY\r\nBEGIN:VEVENT\r\nDTSTART:20261124T090000Z\r\nDTEND:20261124T100000Z\r\nDTSTAMP:20261120T150500Z\r\nORGANIZER;CN="Shop (shop at example.com)":mailto:${r}\r\nUID:meeting-1@example.com\r\nATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=ACCEPTED;CN=${d};X\r\n -NUM-GUESTS=0;EMAIL=${d}:mailto:${d}\r\n${more}SEQUENCE:0\r\nSTATUS:CONFIRMED\r\nSUMMARY:Fitting\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n`;

export const SHAPES: readonly Shape[] = [
  {
    program: "Gmail",
    what: "a reply above the quote, in two alternatives",
    message: (c) =>
      `${head(c, "X-Google-DKIM-Signature: v=1; d=1e100.net", "X-Gm-Message-State: AOJu0YzX", "Message-ID: <CAJ=abc@mail.gmail.com>", 'Content-Type: multipart/alternative; boundary="000000000000a1b2c3"')}

--000000000000a1b2c3
Content-Type: text/plain; charset="UTF-8"
Content-Transfer-Encoding: quoted-printable

${qp("Yes – that is right.")}

On Fri, Nov 20, 2026 at 8:30=E2=80=AFPM Shop (shop at example.com) <
${c.r}> wrote:

> Is it right? We have ${c.d} as
> your address.
>

--000000000000a1b2c3
Content-Type: text/html; charset="UTF-8"
Content-Transfer-Encoding: quoted-printable

<div dir=3D"ltr">${qp("Yes – that is right.")}</div><br><div class=3D"gmail_quote gmail_=
quote_container"><div dir=3D"ltr" class=3D"gmail_attr">On Fri, Nov 20, 2026=
 at 8:30=E2=80=AFPM Shop (shop at example.com) &lt;<a href=3D"mailto:${c.r}">${c.r}</a>&gt; wrote:<br></div><blockquote class=3D"gmail_quote" style=3D"margin:0px"><div>Is it right? We have <a href=3D"mailto:${c.d}" target=3D"_blank">${c.d}</a> as your address.</div></blockquote></div>

--000000000000a1b2c3--
`,
    keeps: /that is right/,
  },
  {
    program: "Gmail",
    what: "an accepted invitation",
    message: (c) =>
      `${head(c, "Sender: Google Calendar <calendar-notification@google.com>", `Reply-To: Anna Real <${c.d}>`, 'Content-Type: multipart/mixed; boundary="0000mix"')}

--0000mix
Content-Type: multipart/alternative; boundary="0000alt"

--0000alt
Content-Type: text/plain; charset="UTF-8"; format=flowed; delsp=yes
Content-Transfer-Encoding: base64

${b64(`Anna Real has accepted this invitation.\n\nFitting\n${c.d} - attendee\n`)}
--0000alt
Content-Type: text/html; charset="UTF-8"
Content-Transfer-Encoding: base64

${b64(`<span itemprop="email" content="${c.d}">${c.d}</span> has accepted this invitation.`)}
--0000alt
Content-Type: text/calendar; charset="UTF-8"; method=REPLY
Content-Transfer-Encoding: 7bit

${invitationAnswer(c)}
--0000alt--

--0000mix
Content-Type: application/ics; name="invite.ics"
Content-Disposition: attachment; filename="invite.ics"
Content-Transfer-Encoding: base64

${b64(invitationAnswer(c))}
--0000mix--
`,
    keeps: /invitation was accepted/,
    attachments: ["text/calendar"],
  },
  {
    program: "Outlook",
    what: "a reply from the desktop program, with a logo in the signature",
    message: (c) =>
      `${head(c, "Thread-Topic: Your order", "Thread-Index: AQHb0W", "X-MS-Has-Attach: yes", `x-ms-exchange-messagesentrepresentingtype: 1`, `X-MS-Exchange-CrossTenant-UserPrincipalName: ${c.d}`, "Message-ID: <DB9PR0@DB9PR0.eurprd08.prod.outlook.com>", 'Content-Type: multipart/related; boundary="_004_DB9"; type="multipart/alternative"')}

--_004_DB9
Content-Type: multipart/alternative; boundary="_000_DB9"

--_000_DB9
Content-Type: text/plain; charset="iso-8859-1"
Content-Transfer-Encoding: quoted-printable

Yes, that is right. Gr=FC=DFe

Anna Real

From: Shop (shop at example.com) <${c.r}>
Sent: Friday, November 20, 2026 8:30 PM
To: ${c.d}
Subject: Your order

Is it right?

--_000_DB9
Content-Type: text/html; charset="iso-8859-1"
Content-Transfer-Encoding: quoted-printable

<html xmlns:o=3D"urn:schemas-microsoft-com:office:office"><head><!-- ${c.d} --><style>p.MsoNormal {margin:0cm;}</style></head><body lang=3D"EN-US"><p class=3D"MsoNormal">Yes, that is right. Gr=FC=DFe<o:p></o:p></p><p class=3D"MsoNormal"><img id=3D"Picture_1" src=3D"cid:image001.png@01DB3C5A.7B0B1C20" alt=3D"${c.d}"></p><div><div style=3D"border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm"><p class=3D"MsoNormal"><b>From:</b> Shop (shop at example.com) &lt;${c.r}&gt; <br><b>Sent:</b> Friday<br><b>To:</b> <a href=3D"mailto:${c.d}">${c.d.replace("@", "&#64;")}</a><br></p></div></div></body></html>

--_000_DB9--

--_004_DB9
Content-Type: image/png; name="image001.png"
Content-Description: image001.png
Content-Disposition: inline; filename="image001.png"; size=68; creation-date="Fri, 20 Nov 2026 15:05:00 GMT"
Content-ID: <image001.png@01DB3C5A.7B0B1C20>
Content-Transfer-Encoding: base64

iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==

--_004_DB9--
`,
    keeps: /that is right\. Grüße/,
    attachments: ["image/png"],
  },
  {
    program: "Outlook",
    what: "rich text with winmail.dat, which names its author",
    message: (c) =>
      `${head(c, 'Content-Type: multipart/mixed; boundary="tnef"')}

--tnef
Content-Type: text/plain; charset="us-ascii"

Yes, that is right.

--tnef
Content-Type: application/ms-tnef; name="winmail.dat"
Content-Disposition: attachment; filename="winmail.dat"
Content-Transfer-Encoding: base64

${b64(`x\u009f>"\u0001SMTP:${c.d}`)}
--tnef--
`,
    keeps: /that is right/,
  },
  {
    program: "Outlook",
    what: "a tentative answer to an invitation, with a property of its own about the sender",
    message: (c) =>
      `${head(c, 'Content-Type: multipart/alternative; boundary="_000_cal"')}

--_000_cal
Content-Type: text/plain; charset="us-ascii"

Perhaps.

--_000_cal
Content-Type: text/calendar; charset="utf-8"; method=REPLY
Content-Transfer-Encoding: base64

${b64(invitationAnswer(c, `X-MS-OLK-SENDER;CN="Anna Real":mailto:${c.d}\r\nATTENDEE;SENT-BY="mailto:${c.d}";PARTSTAT=TENTATIVE:MAILTO:${c.d.toUpperCase()}\r\n`))}
--_000_cal--
`,
    keeps: /invitation was accepted/,
    attachments: ["text/calendar"],
  },
  {
    program: "Apple Mail",
    what: "answers between the quoted lines",
    message: (c) =>
      `${head(c, "X-Mailer: Apple Mail (2.3826.200.121)", "X-Universally-Unique-Identifier: 1B2", "Mime-Version: 1.0 (Mac OS X Mail 16.0)", "Message-Id: <7B1@home.real.example>", 'Content-Type: multipart/alternative; boundary="Apple-Mail=_A1B2"')}

--Apple-Mail=_A1B2
Content-Transfer-Encoding: 7bit
Content-Type: text/plain;
	charset=us-ascii

> On 20. Nov 2026, at 20:30, Shop (shop at example.com) <${c.r}> wrote:
> 
> Is it right?

Yes, that is right.

> Is ${c.d} still your address?

It is.

--Apple-Mail=_A1B2
Content-Transfer-Encoding: quoted-printable
Content-Type: text/html;
	charset=utf-8

<html><body id=3D"${c.d}" style=3D"overflow-wrap: break-word;"><blockquote type=3D"cite"><div>On 20. Nov 2026, at 20:30, Shop (shop at example.com) &lt;<a href=3D"mailto:${c.r}">${c.r}</a>&gt; wrote:</div>Is it right?</blockquote>Yes, that is right.<br><blockquote type=3D"cite">Is <span>${c.d.slice(0, 4)}</span>${c.d.slice(4)} still your address?</blockquote>It is.</body></html>
--Apple-Mail=_A1B2--
`,
    keeps: /It is\./,
  },
  {
    program: "Thunderbird",
    what: "a flowed reply to all, with the own address among the recipients, a key and a card",
    message: (c) =>
      `${head(c, `Cc: Anna <${c.d}>, ${c.a}`, "User-Agent: Mozilla Thunderbird", `Autocrypt: addr=${c.d}; keydata=xsDN`, `X-Identity-Key: id1`, `FCC: imap://${c.d.replace("@", "%40")}@imap.home.real.example/Sent`, "Content-Language: en-US", 'Content-Type: multipart/mixed; boundary="------------XYZ"')}

This is a multi-part message in MIME format, from ${c.d}
--------------XYZ
Content-Type: text/plain; charset=UTF-8; format=flowed
Content-Transfer-Encoding: 8bit

On 20/11/2026 20:30, Shop (shop at example.com) wrote:
> Is it right? Your address is ${c.d.slice(0, 5)}\u200b${c.d.slice(5)}
Yes, that is right.

-- 
Anna Real <${c.d}>

--------------XYZ
Content-Type: text/vcard; charset=UTF-8; name="anna.vcf"
Content-Disposition: attachment; filename="anna.vcf"
Content-Transfer-Encoding: base64

${b64(`BEGIN:VCARD\r\nEMAIL:${c.d}\r\nEND:VCARD\r\n`)}
--------------XYZ
Content-Type: application/pgp-keys; name="OpenPGP_0x1.asc"
Content-Disposition: attachment; filename="OpenPGP_0x1.asc"

-----BEGIN PGP PUBLIC KEY BLOCK-----
Comment: ${c.d}

-----END PGP PUBLIC KEY BLOCK-----

--------------XYZ--
`,
    keeps: /that is right/,
  },
  {
    program: "Thunderbird",
    what: "a signed reply (PGP/MIME)",
    message: (c) =>
      `${head(c, 'Content-Type: multipart/signed; micalg=pgp-sha256; protocol="application/pgp-signature"; boundary="sig"')}

--sig
Content-Type: multipart/mixed; boundary="in"; protected-headers="v1"
From: Anna <${c.d}>
Subject: Re: Your order

--in
Content-Type: text/plain; charset=UTF-8

Yes, that is right.

--in--
--sig
Content-Type: application/pgp-signature; name="OpenPGP_signature.asc"
Content-Description: OpenPGP digital signature of ${c.d}

-----BEGIN PGP SIGNATURE-----

wsD5
-----END PGP SIGNATURE-----

--sig--
`,
    keeps: /that is right/,
  },
  {
    program: "Thunderbird",
    what: "a read receipt, which is all about its author",
    message: (c) =>
      `${head(c, 'Content-Type: multipart/report; report-type=disposition-notification; boundary="mdn"')}

--mdn
Content-Type: text/plain; charset=utf-8

This is a Return Receipt for the mail that you sent to ${c.d}.

--mdn
Content-Type: message/disposition-notification

Reporting-UA: home.real.example; Mozilla Thunderbird
Final-Recipient: rfc822; ${c.d}
Disposition: manual-action/MDN-sent-manually; displayed

--mdn
Content-Type: text/rfc822-headers

From: Shop <${c.r}>
Delivered-To: ${c.d}

--mdn--
`,
    keeps: /Return Receipt/,
  },
  {
    program: "Proton",
    what: "a reply with its quote and its footer",
    message: (c) =>
      `${head(c, "Feedback-ID: 12345:user:proton", "X-Pm-Message-ID: 98f6", `X-Pm-Spamscore: 0`, "Content-Type: text/html; charset=utf-8", "Content-Transfer-Encoding: base64")}

${b64(`<div style="font-family: Arial, sans-serif; font-size: 14px;">Yes, that is right.</div><div class="protonmail_signature_block" style="font-family: Arial"><div class="protonmail_signature_block-user">Anna &lt;${c.d}&gt;</div><div class="protonmail_signature_block-proton">Sent with <a href="https://proton.me">Proton Mail</a></div></div><div class="protonmail_quote">On Friday, November 20th, 2026 at 8:30 PM, Shop (shop at example.com) &lt;${c.r}&gt; wrote:<br><blockquote class="protonmail_quote" type="cite"><a href="https://track.example/?u=${encodeURIComponent(c.d)}">Is it right?</a></blockquote></div>`)}
`,
    keeps: /that is right/,
  },
  {
    program: "K-9",
    what: "a reply below the quote",
    message: (c) =>
      `${head(c, "User-Agent: K-9 Mail for Android", "Autocrypt: addr=x", "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: quoted-printable")}

On November 20, 2026 8:30:00 PM GMT+05:30, "Shop (shop at example.com)" <${c.r.slice(0, 20)}=
${c.r.slice(20)}> wrote:
>Is it right, ${c.d.slice(0, 6)}=
${c.d.slice(6)}?

Yes, that is right.
--=20
Sent from my Android device with K-9 Mail. Please excuse my brevity.
`,
    keeps: /that is right/,
  },
];
