// The certificate during the set-up: a running Postern asks for it, else this process does and answers the ACME server.
import { startChallengeServer } from "../certificates/challenges.ts";
import { findCertificate, renewNow, type Stored } from "../certificates/queries.ts";
import { CERTIFICATES_CHANNEL, renewIfDue } from "../certificates/renew.ts";
import { sleep } from "../platform/clock.ts";
import { portProblem } from "../platform/net/places.ts";
import type { World } from "../platform/world.ts";
import type { AcmeConfig } from "../settings/certificates.ts";
import type { Step } from "./types.ts";

const LOOK_EVERY_MS = 1_000;
const WITHIN_MS = 180_000;

export async function getCertificate(world: World, isRunning: boolean): Promise<Step> {
  const { acme, tls_cert_file } = world.config;
  if (acme === null) {
    const says = tls_cert_file ? `${tls_cert_file} is used.` : "POSTERN_ACME is off: no certificate is asked for.";
    return { name: "certificate", status: tls_cert_file ? "unchanged" : "skipped", says, remedy: null };
  }
  const before = await stored(world, acme);
  // Somebody mended what was wrong, and does not want to wait for the next attempt.
  if (before?.failure) await renewNow(world.db, acme.directory, new Date(world.clock.now()));
  const trouble = isRunning ? await askRunning(world, acme, before) : await askHere(world, acme);
  if (trouble) return trouble;
  return judge(before, await stored(world, acme));
}

async function stored(world: Pick<World, "db">, { directory }: AcmeConfig): Promise<Stored | null> {
  return (await findCertificate(world.db, directory))[0] ?? null;
}

async function askHere(world: World, acme: AcmeConfig): Promise<Step | null> {
  let server: { stop(): Promise<void> };
  try {
    server = await startChallengeServer(world, acme);
  } catch (error) {
    const place = { variable: "POSTERN_ACME_HTTP", ...acme.http };
    const { says, remedy } = portProblem(place, (error as NodeJS.ErrnoException).code ?? "");
    return {
      name: "certificate",
      status: "problem",
      says,
      remedy: `${remedy} Or start Postern: it asks for the certificate.`,
    };
  }
  try {
    await renewIfDue(world, acme);
    return null;
  } finally {
    await server.stop();
  }
}

async function askRunning(world: World, acme: AcmeConfig, before: Stored | null): Promise<null> {
  await world.db.query("select pg_notify($1, '')", [CERTIFICATES_CHANNEL]);
  for (let waitedMs = 0; waitedMs < WITHIN_MS; waitedMs += LOOK_EVERY_MS) {
    const now = await stored(world, acme);
    if (now && (now.updated_at.getTime() !== before?.updated_at.getTime() || now.failure === null)) return null;
    await sleep(LOOK_EVERY_MS);
  }
  return null;
}

function judge(before: Stored | null, now: Stored | null): Step {
  const name = "certificate" as const;
  const until = now?.not_after?.toISOString().slice(0, 10);
  if (now?.chain && now.failure === null) {
    const isNew = before?.chain !== now.chain;
    const says = `${isNew ? "A certificate was issued" : "There is a certificate"} for ${now.names.join(", ")}, valid until ${until}.`;
    return { name, status: isNew ? "done" : "unchanged", says, remedy: null };
  }
  const why = now?.failure ?? "the running Postern has not asked yet";
  const remedy = "Mend that, then run postern setup again; a running Postern asks again by itself.";
  return { name, status: "problem", says: `No certificate was issued: ${why}.`, remedy };
}
