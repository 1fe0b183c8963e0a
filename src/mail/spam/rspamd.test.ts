// What is said to rspamd, and what its answers mean.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readRspamdReply, rspamdHeaders } from "./rspamd.ts";

const read = (value: unknown) =>
  readRspamdReply(Buffer.from(typeof value === "string" ? value : JSON.stringify(value)));

test("the request names client, sender and recipients on one line each", () => {
  const reported = {
    ip: "192.0.2.1",
    helo: "a.example",
    from: "ä@b.example",
    recipients: ["c@d.example\r\nX: y"],
    host: "mx",
  };
  assert.deepEqual(rspamdHeaders(reported), {
    ip: "192.0.2.1",
    helo: "a.example",
    from: "Ã¤@b.example",
    rcpt: ["c@d.exampleX: y"],
    "mta-name": "mx",
    "content-type": "message/rfc822",
  });
  const { ip, helo, from } = rspamdHeaders({ ...reported, ip: null, helo: "", from: "" });
  assert.deepEqual([ip, helo, from], [undefined, undefined, "<>"]);
});

test("symbols are read and add up to the score", () => {
  const symbols = {
    A: { name: "A", score: 2.5, description: "a" },
    B: { name: "B", score: 4.004 },
    ZERO: { name: "ZERO", score: 0 },
    ODD: 7,
  };
  assert.deepEqual(read({ score: 5, required_score: 15, action: "add header", symbols }), {
    kind: "judged",
    forced: false,
    symptoms: [
      { name: "B", score: 4, description: "" },
      { name: "A", score: 2.5, description: "a" },
      {
        name: "RSPAMD_GROUP_LIMITS",
        score: -1.5,
        description: "What rspamd's limits on groups of symbols take away or add",
      },
    ],
  });
});

test("a forced rejection is taken over, one by score is left to the domain", () => {
  const forced = (value: object) => {
    const reply = read({ symbols: {}, ...value });
    return reply.kind === "judged" && reply.forced;
  };
  assert.equal(forced({ score: 3, required_score: 15, action: "reject" }), true);
  assert.equal(forced({ score: 16, required_score: 15, action: "reject" }), false);
  assert.equal(
    forced({ score: 16, required_score: 15, action: "reject", is_skipped: true, symbols: { GTUBE: { score: 0 } } }),
    true,
  );
  assert.equal(forced({ score: 6, required_score: 15, action: "greylist" }), false);
  assert.deepEqual(read({ score: 1, action: "soft reject" }), { kind: "later" });
});

test("what is no judgement has failed", () => {
  for (const odd of ["", "[]", "null", "{", "{}", '{"score":"1"}', '{"score":null}', '{"error":"bad"}']) {
    assert.equal(read(odd).kind, "failed", odd);
  }
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`S${index}`, { score: 1 }]));
  const reply = read({ score: 500, symbols: many });
  assert.equal(reply.kind === "judged" && reply.symptoms.length, 101);
  assert.equal(reply.kind === "judged" && reply.symptoms.at(-1)?.score, 400);
});
