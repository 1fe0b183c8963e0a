// What a page's address says, read: what is wrong in it is left out, and nothing else gets to the API.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readDmarcView, readStatsView } from "./domain-views.ts";
import { isNarrowed, readEmailFilters, readSearch, searchText } from "./email-filters.ts";
import { readAliasFilters, readInboundFilters, readOfDomain } from "./inbound-filters.ts";
import * as lists from "./list-filters.ts";
import * as masked from "./masked-filters.ts";
import * as operator from "./operator-filters.ts";

type Read = (search: Record<string, unknown>) => object;
const AFTER = "01a20955-f37d-7779-8000-000000000000";

const READERS: [name: string, read: Read, full: Record<string, unknown>][] = [
  [
    "e-mails",
    readEmailFilters,
    { status: "bounced", to: "a@b.example", environment: "test", after: AFTER, live: true },
  ],
  ["inbound", readInboundFilters, { q: "x", status: "quarantined", has_attachments: false, live: true, after: AFTER }],
  ["domain aliases", readAliasFilters, { q: "x", domain_id: AFTER, action: "forward", after: AFTER }],
  ["rules", readOfDomain, { domain_id: AFTER }],
  ["statistics", readStatsView, { by: "provider", days: 90 }],
  ["DMARC", readDmarcView, { days: 365, list: "upload", after: AFTER }],
  ["suppressions", lists.readSuppressionFilters, { query: "x", reason: "complaint", after: AFTER }],
  ["deliveries", lists.readLogFilters, { status: "failed", event: "email.bounced", endpoint_id: AFTER, after: AFTER }],
  ["a list without filters", lists.readPageView, { after: AFTER }],
  ["an import", lists.readImport, { job: AFTER }],
  ["organizations", lists.readOrganizationFilters, { state: "pending_review", query: "x", after: AFTER }],
  [
    "audit log",
    lists.readAuditFilters,
    { operation: "x", from_date: "2026-11-01", to_date: "2026-11-02", after: AFTER },
  ],
  ["templates", lists.readTemplateFilters, { query: "x", active: false, after: AFTER }],
  ["a template", lists.readTemplateView, { part: "difference", view: "phone" }],
  ["versions", lists.readVersionsView, { version: 3, with: 1, before: 9 }],
  ["masked", masked.readMaskedFilters, { q: "x", state: "off", forward_to: "a@b.example", pattern: "*@b.example" }],
  ["one mask", masked.readMaskedAliasView, { show: "contacts", blocked: false, email: "a@b.example", after: AFTER }],
  ["mailboxes", masked.readDestinationFilters, { email: "a@b.example", status: "suspended", after: AFTER }],
  ["one mailbox", masked.readMailboxView, { after: AFTER }],
  ["failed mail", masked.readFailedFilters, { kind: "reply", alias_id: AFTER, after: AFTER }],
  ["queue", operator.readQueueFilters, { query: "x", state: "resting", after: "3 b.example" }],
  ["sources", operator.readSourceFilters, { query: "x", state: "out_of_use", after: `192.0.2.1 ${AFTER}` }],
  ["the installation's mail", operator.readOwnMailFilters, { query: "x", mailbox: "abuse", after: AFTER }],
  ["relays", operator.readRelayFilters, { query: "x", state: "standby", after: `3 ${AFTER}` }],
];

describe("the address of a page", () => {
  for (const [name, read, full] of READERS) {
    it(`${name}: is read whole, the same each time`, () => {
      assert.deepEqual(read(full), full);
      assert.deepEqual(read(read(full) as Record<string, unknown>), full);
    });

    it(`${name}: nothing is made up, and what is wrong or unknown is left out`, () => {
      assert.deepEqual(read({}), {});
      const wrong = Object.fromEntries(Object.keys(full).map((field) => [field, { $ne: null }]));
      assert.deepEqual(read({ ...wrong, colour: "blue", __proto__: { q: "inherited" } }), {});
      const empty = Object.fromEntries(Object.keys(full).map((field) => [field, ""]));
      assert.deepEqual(read(empty), {});
    });
  }

  it("a number that somebody searches for is a text", () => {
    assert.deepEqual(readEmailFilters({ subject: 2026 }), { subject: "2026" });
    assert.deepEqual(masked.readMaskedFilters({ q: 7 }), { q: "7" });
  });

  it("a state that no mail has, and a span that no page offers, show everything", () => {
    assert.deepEqual(readEmailFilters({ status: "lost", live: "yes", environment: "all" }), {});
    assert.deepEqual(readStatsView({ days: 31, by: "week" }), {});
    assert.deepEqual(lists.readVersionsView({ version: -1, with: 1.5, before: "x" }), {});
  });
});

describe("the search for e-mails", () => {
  it("knows an id, an address, a Message-ID; anything else is part of the subject", () => {
    assert.deepEqual(readSearch(` ${AFTER} `), { id: AFTER });
    assert.deepEqual(readSearch("maja@posteo.example"), { to: "maja@posteo.example" });
    assert.deepEqual(readSearch("<1@a.example>"), { message_id: "1@a.example" });
    assert.deepEqual(readSearch("invoice for maja@posteo.example"), { subject: "invoice for maja@posteo.example" });
    assert.deepEqual(readSearch("  "), { subject: undefined });
  });

  it("shows again what was sought", () => {
    for (const text of ["maja@posteo.example", "<1@a.example>", "Your invoice"]) {
      assert.equal(searchText(readEmailFilters(readSearch(text))), text);
    }
    assert.equal(searchText({}), "");
  });

  it("a further page and following live do not narrow the list", () => {
    assert.equal(isNarrowed({ after: AFTER, live: true }), false);
    assert.equal(isNarrowed({ tag: "x" }), true);
  });
});
