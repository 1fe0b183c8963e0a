// Mail of the service itself to a person: from its own domain, signed with its own key, and in no organization's list of e-mails. The domain
// is ready once its DKIM record is published as Postern's key has it: before that a mailbox would rightly refuse what claims to be from it.
import { organizationNamed } from "../../accounts/accounts.ts";
import { buildMessage } from "../../mail/mime/write/build-message.ts";
import type { Tx } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import type { World } from "../../platform/world.ts";
import { enqueueRaw, withLane } from "../../sending/sending.ts";
import { insertTraces } from "../settle/traces.ts";
import type { MaskedPorts } from "../types.ts";
import { MASKED_DOMAIN_ID, maskedDomain } from "./service-domain.ts";

/** So long a look into DNS counts, where the record was found and where not. */
const READY_FOR_MS = 60_000;
const NOT_READY_FOR_MS = 3_000;

export type OwnMail = {
  org_id: string;
  environment: "live" | "test";
  from_name: string;
  to: string;
  subject: string;
  text: string;
};

/** The message with all that the queue needs. */
export function composeOwnMail(
  world: Pick<World, "clock" | "random" | "config">,
  { org_id, environment, from_name, to, subject, text }: OwnMail,
) {
  const { masked_domain, bounce_host } = world.config;
  const id = world.random.uuid();
  const nowMs = world.clock.now();
  const from = { name: from_name, email: `no-reply@${masked_domain}` };
  const { bytes } = buildMessage({
    from,
    to: [{ name: null, email: to }],
    cc: [],
    reply_to: [],
    subject,
    date: nowMs,
    message_id: `${id}@${masked_domain}`,
    headers: [{ name: "Auto-Submitted", value: "auto-generated" }],
    html: null,
    text,
    attachments: [],
    boundary_seed: world.random.token(24),
  });
  return {
    org_id,
    id,
    environment,
    domain_id: MASKED_DOMAIN_ID,
    origin: "masked" as const,
    message_id: `${id}@${masked_domain}`,
    from_address: from.email,
    from_header: from.email,
    subject,
    metadata: {},
    recipient: to,
    envelope_from: null,
    return_path_host: bounce_host,
    mime: bytes,
    blob_key: null,
    created_at: new Date(nowMs),
  };
}

type ServiceWorld = Pick<World, "db" | "clock" | "random" | "seal" | "config" | "resolver">;
export type ServiceMail = Pick<OwnMail, "org_id" | "to" | "subject" | "text">;
export type ServiceMailer = {
  /** True if the service's own domain is ready to send. */
  isReady(): Promise<boolean>;
  /** Queues it; false where the domain is not ready. */
  send(mail: ServiceMail): Promise<boolean>;
  /** Queues ready-made mail in the name of the first organization; what `within` writes is committed with it. */
  sendMade(mails: readonly MadeMail[], within: (tx: Tx) => Promise<unknown>): Promise<void>;
};

/** Mail of the service's own domain that is no organization's: reports on TLS. */
export type MadeMail = { id: string; from_address: string; to: string; subject: string; bytes: Buffer };

export function serviceMailer(world: ServiceWorld, ports: MaskedPorts): ServiceMailer {
  let looked: { atMs: number; ready: boolean } | null = null;
  const isReady = async (): Promise<boolean> => {
    const nowMs = world.clock.monotonic();
    const countsMs = looked?.ready ? READY_FOR_MS : NOT_READY_FOR_MS;
    if (looked === null || nowMs - looked.atMs > countsMs) looked = { atMs: nowMs, ready: await isPublished(world) };
    return looked.ready;
  };
  return {
    isReady,
    sendMade: (mails, within) => sendMade(world, ports, mails, within),
    async send(mail) {
      if (!(await isReady())) return false;
      const own = composeOwnMail(world, { ...mail, environment: "live", from_name: "Postern" });
      const laned = await withLane(ports.findLane, own);
      await withPartitions(world, () =>
        world.db.asOrg(mail.org_id, async (tx) => {
          await enqueueRaw(tx, [laned]);
          await insertTraces(world, tx, [{ org_id: mail.org_id, id: laned.id, kind: "notice" }]);
        }),
      );
      ports.notify();
      return true;
    },
  };
}

async function sendMade(
  world: ServiceWorld,
  ports: MaskedPorts,
  mails: readonly MadeMail[],
  within: (tx: Tx) => Promise<unknown>,
): Promise<void> {
  const org_id = await organizationNamed(world, null);
  const { masked_domain, bounce_host } = world.config;
  const laned = await Promise.all(
    mails.map(({ id, from_address, to, subject, bytes }) =>
      withLane(ports.findLane, {
        ...{ org_id, id, environment: "live", domain_id: MASKED_DOMAIN_ID, origin: "tls_report" },
        ...{ message_id: `${id}@${masked_domain}`, from_address, from_header: from_address, subject, metadata: {} },
        ...{ recipient: to, envelope_from: null, return_path_host: bounce_host, mime: bytes, blob_key: null },
        created_at: new Date(world.clock.now()),
      }),
    ),
  );
  await withPartitions(world, () =>
    world.db.asOrg(org_id, async (tx) => {
      await enqueueRaw(tx, laned);
      await within(tx);
    }),
  );
  if (laned.length > 0) ports.notify();
}

/** True if the DKIM record is in DNS, as the key has it. */
async function isPublished(world: ServiceWorld): Promise<boolean> {
  const { records } = await maskedDomain(world);
  const wanted = records.find(({ purpose }) => purpose === "dkim");
  if (!wanted) return false;
  const answer = await world.resolver.txt(wanted.name, { fresh: true });
  return answer.kind === "found" && answer.records.some((value) => bare(value) === bare(wanted.value));
}

function bare(text: string): string {
  return text.replaceAll(/\s/g, "");
}
