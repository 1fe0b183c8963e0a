// What the doctor says about block lists and rspamd.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { Answer } from "../platform/dns/resolver.ts";
import { checkSpam } from "./check-spam.ts";

const settings = { dns_block_lists: [] as string[], rspamd_url: null as string | null, mx_host: "mx.example" };

async function found(change: Partial<typeof settings>, records: Record<string, string[]> = {}) {
  const a = async (name: string): Promise<Answer<string>> =>
    records[name]
      ? { kind: "found", records: records[name], ttl_s: 1, authenticated: false }
      : { kind: "absent", reason: "nxdomain" };
  const checks = await checkSpam({ ...settings, ...change }, { a });
  return checks.map(({ status, says }) => `${status}: ${says}`);
}

test("nothing is looked at where nothing is set", async () => {
  assert.deepEqual(await found({}), []);
});

test("a list must answer for its test entries and for nothing else", async () => {
  const lists = { dns_block_lists: ["zen.example", "domain:dbl.example"] };
  const good = { "2.0.0.127.zen.example": ["127.0.0.2"], "test.dbl.example": ["127.0.0.2"] };
  assert.deepEqual(await found(lists, good), ["ok: zen.example answers.", "ok: dbl.example answers."]);
  const [typo] = await found(lists);
  assert.match(typo ?? "", /^warning: zen.example does not have its test entry/);
  const refusing = { "2.0.0.127.zen.example": ["127.255.255.254"], "1.0.0.127.zen.example": ["127.255.255.254"] };
  const wild = { ...good, "1.0.0.127.zen.example": ["127.0.0.2"] };
  for (const records of [refusing, wild]) {
    assert.match((await found(lists, records))[0] ?? "", /^problem: zen.example refuses questions from here/);
  }
});

test("rspamd must judge a mail", async () => {
  let body = '{"score":0.1,"symbols":{}}';
  let status = 200;
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(status).end(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const rspamd_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  assert.deepEqual(await found({ rspamd_url }), [`ok: rspamd at ${rspamd_url} judges mail.`]);
  body = "<html>";
  assert.match((await found({ rspamd_url }))[0] ?? "", /^problem: .*not JSON/);
  status = 401;
  assert.match((await found({ rspamd_url }))[0] ?? "", /^problem: .*it answers 401/);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  assert.match((await found({ rspamd_url }))[0] ?? "", /^problem: .*does not judge mail: connect ECONNREFUSED/);
});
