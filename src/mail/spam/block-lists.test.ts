// Who is listed, what is no answer, and which lists count for nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { askBlockLists, domainsIn, readBlockList } from "./block-lists.ts";

const zen = { zone: "zen.example", kind: "address", score: 4 } as const;
const dbl = { zone: "dbl.example", kind: "domain", score: 6 } as const;

function zones(records: Record<string, string[] | "failed">) {
  const asked: string[] = [];
  const ask = async (name: string) => {
    asked.push(name);
    const found = records[name];
    if (found === "failed") return { kind: "failed" };
    return found ? { kind: "found", records: found } : { kind: "absent" };
  };
  return { ask, asked };
}
const symbols = async (records: Record<string, string[] | "failed">, ip: string | null = "192.0.2.99") => {
  const { symptoms, refused } = await askBlockLists([zen], { ip, domains: [] }, zones(records).ask);
  return [symptoms.map(({ name }) => name).join(), refused.join()];
};

test("a listed address is a symptom with the list's score", async () => {
  const { ask, asked } = zones({ "99.2.0.192.zen.example": ["127.0.0.2", "127.0.0.11"] });
  const { symptoms } = await askBlockLists([zen], { ip: "192.0.2.99", domains: ["x.example"] }, ask);
  assert.deepEqual(symptoms, [
    { name: "DNSBL_ZEN_EXAMPLE", score: 4, description: "192.0.2.99 is listed by zen.example (127.0.0.2)" },
  ]);
  assert.deepEqual(asked, ["1.0.0.127.zen.example", "99.2.0.192.zen.example"]);
});

test("IPv6 is asked by nibbles, mapped IPv4 by octets (RFC 5782 §2.4)", async () => {
  const { ask, asked } = zones({});
  await askBlockLists([zen], { ip: "2001:db8:1:2:3:4:567:89ab", domains: [] }, ask);
  assert.equal(asked[1], "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.zen.example");
  await askBlockLists([zen], { ip: "::ffff:192.0.2.99", domains: [] }, ask);
  assert.equal(asked[3], "99.2.0.192.zen.example");
});

test("this machine and private networks are nobody to look up", async () => {
  for (const ip of [
    "127.0.0.1",
    "::1",
    "::ffff:127.0.0.1",
    "10.1.2.3",
    "192.168.0.9",
    "100.64.0.1",
    "fd00::1",
    "fe80::1",
    "?",
  ]) {
    const { ask, asked } = zones({});
    await askBlockLists([zen], { ip, domains: [] }, ask);
    assert.deepEqual(asked, [], ip);
  }
  assert.deepEqual(await symbols({ "2.0.0.127.zen.example": ["127.0.0.2"] }, "127.0.0.2"), ["DNSBL_ZEN_EXAMPLE", ""]);
});

test("only 127.0.0.0/8 lists, and a refusal of the list is none", async () => {
  const name = "99.2.0.192.zen.example";
  assert.deepEqual(await symbols({}), ["", ""]);
  assert.deepEqual(await symbols({ [name]: ["198.51.100.1"] }), ["", ""], "a page of a registrar");
  assert.deepEqual(await symbols({ [name]: ["127.0.0.1"] }), ["", ""]);
  assert.deepEqual(await symbols({ [name]: ["127.255.255.254"] }), ["", "zen.example"], "a public resolver asked");
  assert.deepEqual(await symbols({ [name]: "failed" }), ["", ""]);
  assert.deepEqual(await symbols({ [name]: ["127.0.0.2"] }, null), ["", ""], "nobody to look up");
});

test("a list that names what must never be listed counts for nothing (RFC 5782 §5)", async () => {
  const all = { "1.0.0.127.zen.example": ["127.0.0.2"], "99.2.0.192.zen.example": ["127.0.0.2"] };
  assert.deepEqual(await symbols(all), ["", "zen.example"]);
});

test("domains are asked in lists of domains, one symptom a list", async () => {
  const records = { "bad.example.dbl.example": ["127.0.1.2"], "worse.example.dbl.example": ["127.0.1.4"] };
  const { ask, asked } = zones(records);
  const about = { ip: "192.0.2.99", domains: ["good.example", "bad.example", "worse.example"] };
  const { symptoms } = await askBlockLists([dbl], about, ask);
  assert.deepEqual(
    symptoms.map(({ name, score, description }) => [name, score, description]),
    [["DNSBL_DBL_EXAMPLE", 6, "bad.example is listed by dbl.example (127.0.1.2)"]],
  );
  assert.equal(asked[0], "invalid.dbl.example");
});

test("settings name a zone, its kind and its score", () => {
  assert.deepEqual(readBlockList("zen.example"), { zone: "zen.example", kind: "address", score: 4 });
  assert.deepEqual(readBlockList("Zen.Example=2.5"), { zone: "zen.example", kind: "address", score: 2.5 });
  assert.deepEqual(readBlockList("domain:dbl.example=6"), dbl);
  for (const word of ["", "zen", "zen.example=", "zen.example=101", "url:zen.example", "a b.example", "domain:"]) {
    assert.equal(readBlockList(word), null, word);
  }
});

test("the author's and the links' registrable domains are found, each once, at most ten", () => {
  const text = "see https://www.Shop.example.com/x, http://user@pay.example.org:8080/ or http://192.0.2.1/ http://x";
  assert.deepEqual(domainsIn(["a@mail.sender.example.net", null, ""], [text, null, text]), [
    "example.net",
    "example.com",
    "example.org",
  ]);
  const written = [
    ...[
      "www.one.com",
      "(WWW.One.com/x)",
      '<a href="//two.com/x">',
      "https:\\\\three.com\\x",
      "&#104;ttps://four&#46;com/x",
    ],
    ...["<https://a@www.five.com:8443>", "not a link: six.com, a@www.seven.com, x.www.eight.com"],
  ];
  assert.deepEqual(domainsIn([], written), ["one.com", "two.com", "three.com", "four.com", "five.com"]);
  const many = Array.from({ length: 50 }, (_, index) => `https://a${index}.com/`).join(" ");
  assert.equal(domainsIn([], [many]).length, 10);
  const started = process.threadCpuUsage();
  for (const piece of ["http://", "https://@", "http://a", "http://a@b@"]) domainsIn([], [piece.repeat(100_000)]);
  const { user, system } = process.threadCpuUsage(started);
  assert.ok(user + system < 1_000_000, `${(user + system) / 1_000} ms`);
});
