// Many organizations or domains, made in the database as copies of the first: verified, warm, with the same DKIM key. To make
// them over the API would take hours, for their keys alone.
import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type pg from "pg";
import { secretDigest } from "../../src/accounts/keys.ts";
import { asQuery } from "../../src/backup/tables.ts";
import { sealContext } from "../../src/dkim/dkim.ts";
import { readKeys } from "../../src/platform/storage/key-ring.ts";
import { createSeal } from "../../src/platform/storage/seal.ts";
import { type Stage, withClient } from "./bench.ts";

/** Who sends: an API key and an address of a domain of its organization. */
export type Sender = { key: string; from: string };

const ROWS_AT_ONCE = 500;

/** `count` further domains of the first organization. */
export async function addDomains(stage: Stage, count: number): Promise<Sender[]> {
  return withClient(stage, async (client) => {
    const { org_id } = await firstOf(client, "domain", stage.domain_id);
    const copies = Array.from({ length: count }, () => ({ org_id, key: stage.settings.live_key }));
    return copyDomains(stage, client, copies);
  });
}

/** `count` further organizations with an API key and a domain each. */
export async function addOrganizations(stage: Stage, count: number): Promise<Sender[]> {
  return withClient(stage, async (client) => {
    const { org_id } = await firstOf(client, "domain", stage.domain_id);
    const copies = Array.from({ length: count }, () => ({
      org_id: randomUUID(),
      key: `svc_live_${randomBytes(16).toString("hex")}`,
    }));
    await copyRows(
      client,
      "organization",
      `one.id = '${org_id}'`,
      copies.map(({ org_id: id }) => ({ id })),
    );
    const keys = copies.map(({ org_id: id, key }) => ({
      org_id: id,
      id: randomUUID(),
      digest: hex(secretDigest(key)),
    }));
    await copyRows(client, "api_key", `one.org_id = '${org_id}' and environment = 'live'`, keys);
    return copyDomains(stage, client, copies);
  });
}

async function firstOf(client: pg.Client, table: string, id: string) {
  const { rows } = await client.query(`select * from ${table} where id = $1`, [id]);
  return rows[0];
}

type Copy = { org_id: string; key: string };

async function copyDomains(stage: Stage, client: pg.Client, copies: Copy[]): Promise<Sender[]> {
  const domains = copies.map(({ org_id }) => {
    const id = randomUUID();
    const tokens = { ownership_token: randomUUID(), dmarc_token: randomUUID() };
    return { org_id, id, domain: `d${id}.example`, ...tokens, next_check_at: "2100-01-01T00:00:00Z" };
  });
  await copyRows(client, "domain", `one.id = '${stage.domain_id}'`, domains);
  await copyKeys(stage, client, domains);
  const warm = domains.map(({ org_id, id }) => ({ org_id, domain_id: id }));
  await copyRows(client, "warming", `one.domain_id = '${stage.domain_id}'`, warm);
  return copies.map(({ key }, n) => ({ key, from: `orders@${domains[n]?.domain}` }));
}

/** Each copy is sealed for its own row, as the product does it. */
async function copyKeys(stage: Stage, client: pg.Client, domains: { org_id: string; id: string; domain: string }[]) {
  const text = readFileSync(join(stage.settings.env.POSTERN_DATA as string, "master.key"), "utf8").trim();
  const masterKey = Buffer.from(text, "hex");
  const seal = createSeal(masterKey);
  const ring = await readKeys(asQuery(client), masterKey);
  if (ring) seal.use(ring);
  const { rows } = await client.query("select * from dkim_key where domain_id = $1 and status = 'active'", [
    stage.domain_id,
  ]);
  const [first] = rows;
  const pem = seal.open(first.private_key, sealContext(first.org_id, first.id));
  const keys = domains.map(({ org_id, id, domain }) => {
    const own = randomUUID();
    const private_key = hex(seal.seal(pem, sealContext(org_id, own)));
    return { org_id, id: own, domain_id: id, domain, private_key };
  });
  await copyRows(client, "dkim_key", `one.id = '${first.id}'`, keys);
}

function hex(bytes: Buffer): string {
  return `\\x${bytes.toString("hex")}`;
}

/** Copies of one row, each with some fields changed. */
async function copyRows(client: pg.Client, table: string, where: string, changes: object[]): Promise<void> {
  for (let at = 0; at < changes.length; at += ROWS_AT_ONCE) {
    await client.query(
      `insert into ${table} select (jsonb_populate_record(one, change.value)).*
         from ${table} as one, jsonb_array_elements($1::jsonb) as change where ${where}`,
      [JSON.stringify(changes.slice(at, at + ROWS_AT_ONCE))],
    );
  }
}
