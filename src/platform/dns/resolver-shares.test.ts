// The shares that askers have of the questions under way.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startDnsServer } from "../../../test/support/dns-server.ts";
import { until } from "../../../test/support/until.ts";
import { createResolver, resolverFor } from "./resolver.ts";

test("questions that one asker's name servers never answer keep nobody else's waiting", async (t) => {
  const dns = await startDnsServer();
  t.after(() => dns.stop());
  dns.set("example.com", "A", ["192.0.2.1"]);
  dns.set("joined.example.com", "A", ["192.0.2.1"]);
  const limits = { timeout_ms: 3_000, attempts: 1, cache_max: 100 };
  const resolver = createResolver({ servers: [dns.address], ...limits, validating: false, now: () => 0 });
  for (let n = 0; n < 300; n += 1) dns.fail(`slow${n}.example.com`, "timeout");
  let ended = 0;
  const slow = Array.from({ length: 300 }, (_none, n) =>
    resolver.a(`slow${n}.example.com`, { who: "shop" }).then(() => {
      ended += 1;
    }),
  );
  const own = resolver.a("joined.example.com", { who: "shop" });
  await until("all that may be under way at once to be", () => dns.queries.length >= 256);
  assert.equal((await resolver.a("example.com")).kind, "found");
  assert.equal((await resolverFor(resolver, "other").a("example.com", { fresh: true })).kind, "found");
  // A look-up that the busy asker waits for is not waited for by others.
  assert.equal((await resolver.a("joined.example.com")).kind, "found");
  assert.equal(ended, 0);
  await Promise.all([...slow, own]);
});
