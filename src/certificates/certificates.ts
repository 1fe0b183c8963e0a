// The certificates of a process: the newest that the database has from the ACME server, read again as soon as another process
// stored one; answers to the ACME server's challenges; renewal, where the role `clock` runs. Face of the folder.
import { createSecureContext, type SecureContext } from "node:tls";
import type { Role } from "../config.ts";
import type { Api } from "../http/http.ts";
import { type ServedCertificate, showCertificate } from "../platform/net/served-certificate.ts";
import { startRounds } from "../platform/process/rounds.ts";
import type { SealedColumn } from "../platform/storage/sealed-columns.ts";
import type { World } from "../platform/world.ts";
import type { AcmeConfig } from "../settings/certificates.ts";
import { CHALLENGE_ROLES, mountChallenges, startChallengeServer } from "./challenges.ts";
import { mountPolicy } from "./open-routes.ts";
import { SEALED_ACCOUNT } from "./order.ts";
import { findCertificate } from "./queries.ts";
import { CERTIFICATES_CHANNEL, keyContext, renewIfDue, SEALED_KEY } from "./renew.ts";

export const SEALED: readonly SealedColumn[] = [SEALED_ACCOUNT, SEALED_KEY];

export type Certificates = {
  /** The one that was issued, for the next handshake; null until there is one. */
  issued(): SecureContext | null;
  /** Where the ACME server's questions are answered; null where nothing listens for them. */
  challenge_port: number | null;
  stop(): Promise<void>;
};

type Loaded = { context: SecureContext; updated_at: number };

const LOOK_EVERY_MS = 60_000;

/** Null when POSTERN_ACME is off. Resolves once what the database has is in use. */
export async function startCertificates(world: World, roles: readonly Role[]): Promise<Certificates | null> {
  const { acme } = world.config;
  if (acme === null) return null;
  const state: State = { loaded: null, renews: roles.includes("clock") };
  await load(world, acme, state);
  const answering = roles.some((role) => CHALLENGE_ROLES.includes(role))
    ? await startChallengeServer(world, acme)
    : null;
  // One look after another: what a notification is about may have been seen by the round before it.
  let looking: Promise<void> = Promise.resolve();
  const look = (): Promise<void> => {
    looking = looking.catch(() => undefined).then(() => lookAt(world, acme, state));
    return looking;
  };
  const rounds = startRounds(world, { name: "certificates", every_ms: LOOK_EVERY_MS, round: look });
  const logged = (err: unknown) => world.log.warn({ err }, "the certificate could not be looked at; it is tried again");
  const listener = await world.db.listen([CERTIFICATES_CHANNEL], () => void look().catch(logged));
  return {
    issued: () => state.loaded?.context ?? null,
    challenge_port: answering?.port ?? null,
    async stop() {
      await Promise.all([rounds.stop(), listener.close()]);
      await looking.catch(() => undefined);
      await answering?.stop();
    },
  };
}

type State = { loaded: Loaded | null; renews: boolean };

/** Asks for a new certificate where that is this process's to do, and takes up what the database has. */
async function lookAt(world: World, acme: AcmeConfig, state: State): Promise<void> {
  if (state.renews) await renewIfDue(world, acme);
  await load(world, acme, state);
}

async function load(world: World, acme: AcmeConfig, state: State): Promise<void> {
  state.loaded = await loadNewer(world, acme, state.loaded);
}

async function loadNewer(world: World, { directory }: AcmeConfig, loaded: Loaded | null): Promise<Loaded | null> {
  const [row] = await findCertificate(world.db, directory);
  if (!row?.chain || !row.key) return loaded;
  const served: ServedCertificate = { not_before: row.not_before as Date, not_after: row.not_after as Date };
  showCertificate(world.metrics, served);
  const updated_at = row.updated_at.getTime();
  if (loaded?.updated_at === updated_at) return loaded;
  const key = world.seal.open(row.key, keyContext(directory));
  return { context: createSecureContext({ cert: row.chain, key, minVersion: "TLSv1.2" }), updated_at };
}

/** Routes without a key: challenges that come through a proxy on port 80, and the policy of our own domains. */
export function mountCertificates(api: Api, world: Pick<World, "config" | "db">): void {
  if (world.config.acme) mountChallenges(api, world);
  mountPolicy(api, world);
}
