import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { test } from "node:test";
import { refuseTakenPlaces } from "./free-places.ts";

async function taken(): Promise<{ server: Server; place: { host: string; port: number } }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, place: { host: "127.0.0.1", port: (server.address() as AddressInfo).port } };
}

test("all addresses that are taken are named at once, of the roles that are started", async (t) => {
  const [http, internal, mx, submission] = await Promise.all([taken(), taken(), taken(), taken()]);
  t.after(() => [http, internal, mx, submission].map(({ server }) => server.close()));
  const config = {
    ...{ http: http.place, internal: internal.place, mx: mx.place, submission: submission.place },
    ...{ submissions: { host: "127.0.0.1", port: 0 }, https: null, acme: null, internal_is_default: false },
  };
  const says = async (roles: Parameters<typeof refuseTakenPlaces>[1], change = {}) => {
    const refused = await refuseTakenPlaces({ ...config, ...change }, roles).catch((error: Error) => error.message);
    return String(refused ?? "").matchAll(
      /^127\.0\.0\.1:(\d+) \((POSTERN_\w+)\) is in use by another program\. Stop /gm,
    );
  };
  const names = async (...given: Parameters<typeof says>) =>
    [...(await says(...given))].map(([, , name]) => name).sort();
  assert.deepEqual(await names(["api", "mx", "submission", "mta"]), [
    "POSTERN_HTTP",
    "POSTERN_INTERNAL",
    "POSTERN_MX",
    "POSTERN_SUBMISSION",
  ]);
  assert.deepEqual(await names(["mx"], { internal_is_default: true }), ["POSTERN_MX"]);
  assert.deepEqual(await names(["mta"], { internal_is_default: true }), []);
  assert.deepEqual(await names(["mta"]), ["POSTERN_INTERNAL"]);
});
