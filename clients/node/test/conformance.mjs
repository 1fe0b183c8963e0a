// Plays the conformance set (clients/conformance) with the built library. `CONFORMANCE_URL` is the recording server.
// Prints what failed, and last one line: {"cases","passed","failed"}.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as library from "../dist/postern.js";

const url = process.env.CONFORMANCE_URL;
const runner = `node-${process.versions.node.split(".")[0]}`;
const operations = JSON.parse(readFileSync(new URL("../../conformance/operations.json", import.meta.url), "utf8"));
const cases = await (await fetch(`${url}/cases`)).json();
const KEY = "svc_test_conformance";
const BACKOFF_S_MAX = 8;

function camelCase(name) {
  return name.replace(/_([a-z])/g, (_all, letter) => letter.toUpperCase());
}

/** The client that a case wants, and the waits that it asked for. */
function clientOf(given = {}, base) {
  const waits = [];
  for (const name of ["POSTERN_API_KEY", "POSTERN_BASE_URL"]) delete process.env[name];
  for (const [name, value] of Object.entries(given.env ?? {})) process.env[name] = value.replace("$base", base);
  const options = {};
  if (given.api_key !== null) options.apiKey = given.api_key ?? KEY;
  if (given.base_url !== null) options.baseUrl = (given.base_url ?? "$base").replace("$base", base);
  if (given.max_retries !== undefined) options.maxRetries = given.max_retries;
  if (given.timeout_ms !== undefined) options.timeoutMs = given.timeout_ms;
  if (given.headers) options.headers = given.headers;
  const timing = { random: Math.random, sleep: async (ms) => void waits.push(ms / 1000) };
  return { client: new library.Postern(options, timing), waits };
}

async function perform(client, call) {
  if (call.twice) {
    await perform(client, call.twice);
    return perform(client, call.twice);
  }
  if (call.request) {
    const { method, path, ...rest } = call.request;
    return client.request(method, path, rest);
  }
  const { resource, method, path, input } = operations[call.op];
  const target = resource.reduce((at, name) => at[camelCase(name)], client);
  const values = path.map((name) => call.path[name]);
  if (input === "bytes") values.push(Buffer.from(call.bytes_base64, "base64"));
  else if (input !== null) values.push(call.input);
  if (call.options) values.push({ idempotencyKey: call.options.idempotency_key, headers: call.options.headers });
  return target[camelCase(method)](...values);
}

async function outcomeOf(one, base) {
  const waits = [];
  try {
    if (one.call.verify) {
      const { body_base64, header, secrets, now, tolerance } = one.call.verify;
      return { event: library.verify(Buffer.from(body_base64, "base64"), header, secrets, { now, tolerance }), waits };
    }
    const made = clientOf(one.client, base);
    waits.push = (wait) => Array.prototype.push.call(waits, wait);
    made.waits.push = waits.push;
    return { ...(await resultOf(made.client, one)), waits };
  } catch (raised) {
    return { raised, waits };
  }
}

async function resultOf(client, { call, outcome }) {
  const result = await perform(client, call);
  if (outcome.page) return { page: { items: result.items, total: result.total, has_more: result.has_more } };
  if (call.op && operations[call.op].page) {
    const items = [];
    for await (const item of result) {
      items.push(item);
      if (items.length === call.take) break;
    }
    return { items };
  }
  if (call.op && operations[call.op].answer === "bytes") return { return_base64: Buffer.from(await new Response(result).arrayBuffer()).toString("base64") };
  const meta = outcome.response ? library.responseOf(result) : undefined;
  return { return: result, response: meta && { status: meta.status, request_id: meta.request_id, rate_limit: meta.rate_limit } };
}

function check(one, got) {
  const { outcome, waits } = one;
  if (outcome.raise) {
    assert.ok(got.raised, `nothing was raised: ${JSON.stringify(got)}`);
    const { class: kind, ...fields } = outcome.raise;
    assert.ok(library[kind], `the library has no ${kind}`);
    assert.equal(got.raised.constructor.name, kind, String(got.raised?.stack));
    for (const [name, value] of Object.entries(fields)) assert.deepEqual(got.raised[name], value, name);
    const shown = `${got.raised.stack} ${JSON.stringify(got.raised)} ${String(got.raised)}`;
    assert.ok(!shown.includes(KEY), "the error shows the key");
  } else {
    if (got.raised) throw got.raised;
    for (const [name, value] of Object.entries(outcome)) assert.deepEqual(JSON.parse(JSON.stringify(got[name] ?? null)), value, name);
  }
  if (!waits) return;
  assert.equal(got.waits.length, waits.length, `waits ${JSON.stringify(got.waits)}`);
  for (const [at, wait] of waits.entries()) {
    if (wait === "backoff") assert.ok(got.waits[at] > 0 && got.waits[at] <= BACKOFF_S_MAX, `wait ${got.waits[at]}`);
    else assert.equal(got.waits[at], wait);
  }
}

let failed = 0;
for (const [index, one] of cases.entries()) {
  try {
    check(one, await outcomeOf(one, `${url}/case/${runner}/${index}`));
    if (!one.call.verify) {
      const verdict = await (await fetch(`${url}/verdict/${runner}/${index}`)).json();
      assert.deepEqual(verdict.problems, []);
    }
  } catch (error) {
    failed += 1;
    process.stdout.write(`✖ ${one.name}: ${error.message}\n`);
  }
}
process.stdout.write(`${JSON.stringify({ cases: cases.length, passed: cases.length - failed, failed })}\n`);
process.exitCode = failed > 0 ? 1 : 0;
