// When to ask for a certificate: at two thirds of the life of the one that is there (as Let's Encrypt recommends), somewhat
// earlier by chance, so that not all installations ask in one minute; at once without a certificate, or where a name is missing
// in it; later and later after failures. One process of a database asks at a time. Not here: how to ask (order.ts).

import type { Resolver } from "../platform/dns/resolver.ts";
import type { SealedColumn } from "../platform/storage/sealed-columns.ts";
import type { World } from "../platform/world.ts";
import type { AcmeConfig } from "../settings/certificates.ts";
import { type NamesConfig, wantedNames } from "./names.ts";
import { type Certificate, type OrderWorld, orderCertificate } from "./order.ts";
import { AcmeProblem } from "./problems.ts";
import * as queries from "./queries.ts";

export const CERTIFICATES_CHANNEL = "postern_certificates";

type RenewWorld = OrderWorld & Pick<World, "metrics" | "random"> & { config: NamesConfig; resolver: Resolver };

export type Renewal = "renewed" | "failed" | "not due" | "others";

/** Longer than an order takes at most: each of its answers is waited for 30 s. */
const LEASE_S = 900;
const RETRY_MS = 15 * 60_000;
const RETRY_MS_MAX = 12 * 3_600_000;
const AT_SHARE = 2 / 3;
/** A renewal comes earlier by up to this share of the certificate's life, so that many do not come at once. */
const JITTER_SHARE = 0.05;

/** Asks for a certificate if one is due. Never throws for what the ACME server does. */
export async function renewIfDue(world: RenewWorld, acme: AcmeConfig): Promise<Renewal> {
  const { db, clock, log } = world;
  const { directory } = acme;
  await queries.ensureCertificate(db, directory, new Date(clock.now()));
  const [row] = (await queries.findCertificate(db, directory)) as [queries.Stored];
  const { names, absent } = await wantedNames(world.config, world.resolver);
  if (!isDue(row, names, clock.now())) return "not due";
  if (!(await queries.takeLease(db, { directory, read: row.updated_at, seconds: LEASE_S }))) return "others";
  try {
    if (names.length === 0) throw new Error(`none of our names has an address in DNS: ${absent.join(", ")}`);
    if (absent.length > 0)
      log.warn({ absent }, "these names have no address in DNS: the certificate is asked for without them");
    await keep(world, directory, { names, certificate: await orderCertificate(world, acme, names) });
    log.info({ names, directory }, "a certificate was issued");
    count(world, "issued");
    return "renewed";
  } catch (error) {
    await fail(world, { directory, error: error as Error, row });
    count(world, "failed");
    return "failed";
  }
}

/** After a failure the time that was set then counts alone. */
function isDue({ renew_at, failures, names }: queries.Stored, wanted: string[], nowMs: number): boolean {
  const isMissing = wanted.some((name) => !names.includes(name));
  return renew_at.getTime() <= nowMs || (failures === 0 && isMissing);
}

type Kept = { names: string[]; certificate: Certificate };

async function keep(world: RenewWorld, directory: string, { names, certificate }: Kept): Promise<void> {
  const { chain, not_before, not_after } = certificate;
  const key = world.seal.seal(Buffer.from(certificate.key), keyContext(directory));
  const renew_at = renewalAt(certificate, world.random.float());
  const at = new Date(world.clock.now());
  await queries.storeIssued(world.db, directory, { names, chain, key, not_before, not_after, renew_at, at });
  await world.db.query("select pg_notify($1, '')", [CERTIFICATES_CHANNEL]);
}

/** `fraction`: from 0 to 1, by chance. */
export function renewalAt(
  { not_before, not_after }: Pick<Certificate, "not_before" | "not_after">,
  fraction: number,
): Date {
  const lifeMs = not_after.getTime() - not_before.getTime();
  return new Date(not_before.getTime() + lifeMs * (AT_SHARE - JITTER_SHARE * fraction));
}

export const SEALED_KEY: SealedColumn = {
  ...{ table: "acme_certificate", column: "key", key: ["directory"] },
  context: ({ directory }) => keyContext(directory!),
};

export function keyContext(directory: string): string {
  return `acme-certificate-key:${directory}`;
}

type Failed = { directory: string; error: Error; row: queries.Stored };

async function fail({ db, clock, log }: RenewWorld, { directory, error, row }: Failed): Promise<void> {
  const afterMs = (error instanceof AcmeProblem ? error.retry_after_ms : null) ?? 0;
  const waitMs = Math.max(afterMs, Math.min(RETRY_MS * 2 ** row.failures, RETRY_MS_MAX));
  const at = new Date(clock.now());
  const renew_at = new Date(at.getTime() + waitMs);
  log.error({ why: error.message, directory, again_at: renew_at }, "no certificate was issued; the one in use stays");
  await queries.storeFailure(db, directory, { failure: error.message, renew_at, at });
}

function count({ metrics }: RenewWorld, result: "issued" | "failed"): void {
  metrics.counter("postern_certificate_orders_total", "Certificates asked for", ["result"]).inc({ result });
}
