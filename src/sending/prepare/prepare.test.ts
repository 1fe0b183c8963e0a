// What preparing does to the process it runs in. What it refuses and builds: test/api/.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Account } from "../../http/http.ts";
import { createTurns } from "../../platform/fair/turns.ts";
import { createRandom } from "../../platform/random.ts";
import { Refusal } from "../../platform/refusal.ts";
import type { Preparing } from "../types.ts";
import { prepare } from "./prepare.ts";

const account = { org_id: "org", environment: "test", state: "active" } as unknown as Account;
const request = { from: "a@sender.example", to: ["b@recipient.example"], subject: "x", html_body: "<p>x</p>" };

/** Up to the composed message: where it leaves from is not looked for. A look at the clock takes 30 ms. */
function preparing(composed: () => void): Preparing {
  let ms = 0;
  const monotonic = (): number => {
    ms += 30;
    return ms;
  };
  const clock = { now: () => 1_770_000_000_000, monotonic };
  const deps = {
    findSender: async () => ({ id: "d", domain: "sender.example", ready: true }),
    findSuppressed: async () => new Map(),
    render: async () => ({ template_id: "t", version: 1, subject: "s", html_body: "ü", text_body: "xy" }),
    chooseExit: async () => {
      composed();
      throw new Refusal("unavailable", "that is all");
    },
  };
  return {
    world: { clock, random: createRandom(clock), config: { hostname: "mail.example" } },
    deps,
    domains: new Map(),
    inTurn: createTurns(clock),
  } as unknown as Preparing;
}

test("messages that take long to compose leave everything else its turns", async () => {
  const order: string[] = [];
  const context = preparing(() => {
    order.push("composed");
    if (order.length === 1) setImmediate(() => order.push("somebody else"));
  });
  const all = Array.from({ length: 5 }, () => prepare(context, { account, request, hold: () => undefined }));
  await Promise.allSettled(all);
  assert.equal(order.length, 6);
  assert.notEqual(order.at(-1), "somebody else");
});

test("what a template made is counted before it becomes a message", async () => {
  const order: (string | number)[] = [];
  const context = preparing(() => order.push("composed"));
  const { subject: _subject, html_body: _html, ...rest } = request;
  const byTemplate = { account, request: { ...rest, template: "t" } };
  await assert.rejects(prepare(context, { ...byTemplate, hold: (bytes) => order.push(bytes) }), /that is all/);
  assert.deepEqual(order, [5, "composed"]);
  const hold = (): void => {
    throw new Refusal("unavailable", "too many");
  };
  await assert.rejects(prepare(context, { ...byTemplate, hold }), /too many/);
  assert.deepEqual(order, [5, "composed"]);
});

test("a domain that came back under another id is judged by what holds for the new one", async () => {
  const ids = ["old", "old", "new"];
  const context = preparing(() => undefined);
  const asked: string[] = [];
  context.deps.findSender = async () => ({ id: ids.shift(), domain: "sender.example", ready: true }) as never;
  context.deps.chooseExit = async () => ({}) as never;
  context.deps.findSuppressed = async (_org, { domain_id }) => {
    asked.push(String(domain_id));
    return new Map(domain_id === "new" ? [["b@recipient.example", { reason: "unsubscribe" }]] : []);
  };
  context.deps.keepIfLarge = async () => null;
  const send = () => prepare(context, { account, request, hold: () => undefined });
  assert.deepEqual((await send()).suppressed, []);
  assert.deepEqual((await send()).suppressed, []);
  await assert.rejects(send(), /all recipients are suppressed/);
  assert.deepEqual(asked, ["old", "old", "old", "new"]);
});

test("a request that was answered before is neither composed nor written", async () => {
  const order: string[] = [];
  const context = preparing(() => order.push("composed"));
  const given = { account, request, hold: () => undefined };
  await assert.rejects(prepare(context, { ...given, isNew: Promise.reject(new Error("answered")) }), /answered/);
  await assert.rejects(prepare(context, { ...given, isNew: Promise.resolve() }), /that is all/);
  assert.deepEqual(order, ["composed"]);
});
