// The states as a pure function: what holds whatever the checks saw, in whatever order.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  afterCheck,
  FAILED_AFTER_MS,
  GRACE_MS,
  hasAllRequired,
  isVerified,
  notReadyReason,
  withType,
} from "./state.ts";
import { DOMAIN_TYPES, type DomainRow, type DomainType, PURPOSES, type RecordCheck } from "./types.ts";

const START = Date.parse("2026-11-05T10:00:00.000Z");

function newRow(type: DomainType): DomainRow {
  const at = new Date(START);
  return {
    ...{
      org_id: "o",
      id: "d",
      domain: "example.com",
      environment: "live",
      type,
      status: "pending",
      active: true,
      claimed: false,
    },
    ...{ ownership_token: "t", dmarc_token: "d", ownership_verified: false, mx_verified: false, spf_verified: false },
    ...{ dkim_verified: false, dmarc_verified: false, return_path_verified: false, has_active_key: false },
    ...{ catch_all_enabled: false, catch_all_webhook_ids: [], inbound_mx_acknowledged: false, ip_pool: null },
    ...{ tls_policy: "opportunistic", checks: [], lost: {}, unverified_since: at, watch_since: at, next_check_at: at },
    ...{ last_dns_check: null, verified_at: null, created_at: at, updated_at: at },
  } as DomainRow;
}

const status = fc.constantFrom("ok" as const, "missing" as const, "mismatch" as const, "error" as const);
const PROVABLE = PURPOSES.filter((purpose) => purpose !== "dmarc_authorization");
const step = fc.record({
  wait_ms: fc.constantFrom(0, 60_000, 600_000, 3_600_000, GRACE_MS, FAILED_AFTER_MS),
  seen: fc.record({ ownership: status, spf: status, dkim: status, return_path: status, mx: status, dmarc: status }),
  may_verify: fc.boolean(),
  type: fc.option(fc.constantFrom(...DOMAIN_TYPES), { freq: 5 }),
});

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function check(before: DomainRow, { seen, may_verify }: Step, at: Date): DomainRow {
  const checks = PROVABLE.map(
    (purpose): RecordCheck => ({
      ...{ purpose, name: purpose, status: seen[purpose], found: [], hint: null, checked_at: at.toISOString() },
    }),
  );
  const conclusive = seen.dkim !== "error";
  const verified = conclusive ? seen.dkim === "ok" : before.dkim_verified;
  const dkim = { verified, conclusive, active: before.has_active_key || verified };
  return afterCheck(before, { checks, dkim, at }, may_verify);
}

function walk(type: DomainType, steps: Step[], look: (before: DomainRow, after: DomainRow, step: Step) => void): void {
  let row = newRow(type);
  let nowMs = START;
  for (const one of steps) {
    nowMs += one.wait_ms;
    if (one.type) row = withType(row, one.type, new Date(nowMs));
    const before = structuredClone(row);
    row = check(row, one, new Date(nowMs));
    assert.deepEqual(before, { ...before }, "the row before is not changed");
    look(before, row, one);
  }
}

test("a domain becomes verified only by a check that sees all its records, and only one may hold it", () => {
  fc.assert(
    fc.property(fc.constantFrom(...DOMAIN_TYPES), fc.array(step, { maxLength: 30 }), (type, steps) => {
      walk(type, steps, (before, after, { may_verify }) => {
        if (after.status === "verified" && before.status !== "verified") assert.ok(hasAllRequired(after) && may_verify);
        if (after.status === "verified") assert.ok(after.claimed && after.unverified_since === null);
        else assert.notEqual(after.unverified_since, null);
        if (hasAllRequired(after) && may_verify) assert.equal(after.status, "verified");
      });
    }),
    { numRuns: 500 },
  );
});

test("a verified domain is degraded only by a second conclusive look, at least 10 minutes after the first", () => {
  fc.assert(
    fc.property(fc.constantFrom(...DOMAIN_TYPES), fc.array(step, { maxLength: 30 }), (type, steps) => {
      walk(type, steps, (before, after, { seen }) => {
        if (before.status !== "verified" || after.status === "verified") return;
        assert.equal(after.status, "degraded");
        const at = after.last_dns_check?.getTime() ?? 0;
        const confirmed = Object.entries(after.lost).filter(
          ([purpose, since]) =>
            ["missing", "mismatch"].includes(seen[purpose as "spf"]) && at - Date.parse(since) >= 600_000,
        );
        assert.notEqual(confirmed.length, 0);
      });
    }),
    { numRuns: 500 },
  );
});

test("checks that could not ask take no proof away, whatever their number", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), fc.integer({ min: 1, max: 20 }), (steps, times) => {
      let last = newRow("both");
      walk("both", steps, (_, after) => {
        last = after;
      });
      const seen = {
        ownership: "error",
        spf: "error",
        dkim: "error",
        return_path: "error",
        mx: "error",
        dmarc: "error",
      } as const;
      let nowMs = last.last_dns_check?.getTime() ?? START;
      let row = last;
      for (let index = 0; index < times; index += 1) {
        nowMs += GRACE_MS;
        row = check(row, { seen, may_verify: false, wait_ms: 0, type: null }, new Date(nowMs));
      }
      for (const purpose of PROVABLE) assert.equal(row[`${purpose}_verified`], last[`${purpose}_verified`]);
      assert.equal(row.claimed, last.claimed);
      if (last.status === "verified") assert.equal(row.status, "verified");
    }),
    { numRuns: 300 },
  );
});

test("a domain may send exactly when there is no reason against it, and never without being verified", () => {
  fc.assert(
    fc.property(fc.constantFrom(...DOMAIN_TYPES), fc.array(step, { maxLength: 20 }), (type, steps) => {
      walk(type, steps, (_, after) => {
        const nowMs = after.last_dns_check?.getTime() ?? 0;
        if (notReadyReason(after, nowMs) !== null) return;
        assert.ok(isVerified(after, nowMs) && after.claimed && after.active && after.has_active_key);
        assert.ok(after.type === "outbound" || after.type === "both");
      });
    }),
    { numRuns: 300 },
  );
});
