// The service's own masked domain: aliases on it belong to organizations, its signing key to nobody of them. The key is
// made once, at the first start or when it is first needed, and its records are shown at /v1/masked/domain.
import type { Config } from "../../config.ts";
import { dkimRecord, generateDkimKey, loadSigningKey } from "../../mail/dkim/key.ts";
import type { SigningKey } from "../../mail/dkim/sign.ts";
import type { SealedColumn } from "../../platform/storage/sealed-columns.ts";
import type { World } from "../../platform/world.ts";
import { findMaskedKey, insertMaskedKey, type MaskedKey } from "../queries.ts";

/** Stands for the service's masked domain where messages name their domain. */
export const MASKED_DOMAIN_ID = "00000000-0000-7000-8000-00000000a11a";
const SELECTOR = "postern1";

type KeyWorld = Pick<World, "db" | "clock" | "random" | "seal" | "config">;

/** The key of the service's masked domain, made if there is none. Safe from several processes. */
export async function ensureMaskedKey(world: KeyWorld): Promise<MaskedKey> {
  const { masked_domain } = world.config;
  const [known] = await findMaskedKey(world.db, masked_domain);
  if (known) return known;
  const { private_key_pem, public_key } = await generateDkimKey("rsa");
  await insertMaskedKey(world.db, {
    domain: masked_domain,
    id: world.random.uuid(),
    selector: SELECTOR,
    public_key,
    private_key: world.seal.seal(Buffer.from(private_key_pem), context(masked_domain)),
    created_at: new Date(world.clock.now()),
  });
  const [made] = await findMaskedKey(world.db, masked_domain);
  return made as MaskedKey;
}

export const SEALED_KEY: SealedColumn = {
  ...{ table: "masked_key", column: "private_key", key: ["domain"] },
  context: ({ domain }) => context(domain!),
};

function context(domain: string): string {
  return `masked-dkim-key:${domain}`;
}

type FindKeys = (orgId: string, domainId: string) => Promise<SigningKey[]>;

/** Signing keys of every domain: those of organizations by `others`, the service's masked domain by its own. */
export function withMaskedKey(world: KeyWorld, others: FindKeys): FindKeys {
  let kept: Promise<SigningKey[]> | null = null;
  return async (orgId, domainId) => {
    if (domainId !== MASKED_DOMAIN_ID) return others(orgId, domainId);
    kept ??= openKey(world);
    return kept.catch((error) => {
      kept = null;
      throw error;
    });
  };
}

async function openKey(world: KeyWorld): Promise<SigningKey[]> {
  const { domain, selector, private_key } = await ensureMaskedKey(world);
  const pem = world.seal.open(private_key, context(domain)).toString();
  return [loadSigningKey(pem, { domain, selector })];
}

export type ServiceRecord = {
  purpose: "mx" | "spf" | "dkim" | "dmarc";
  type: "MX" | "TXT";
  name: string;
  value: string;
  priority: number | null;
};

/** What the operator publishes for the service's masked domain. */
export async function maskedDomain(world: KeyWorld): Promise<{ domain: string; records: ServiceRecord[] }> {
  const key = await ensureMaskedKey(world);
  return { domain: world.config.masked_domain, records: maskedRecords(world.config, key) };
}

/** The same with a key that is known. */
export function maskedRecords(
  { masked_domain: domain, mx_host, spf_host }: Pick<Config, "masked_domain" | "mx_host" | "spf_host">,
  key: Pick<MaskedKey, "selector" | "public_key">,
): ServiceRecord[] {
  const text = (purpose: ServiceRecord["purpose"], name: string, value: string): ServiceRecord => ({
    purpose,
    type: "TXT",
    name,
    value,
    priority: null,
  });
  return [
    { purpose: "mx", type: "MX", name: domain, value: mx_host, priority: 10 },
    text("dkim", `${key.selector}._domainkey.${domain}`, dkimRecord(key.public_key, "rsa")),
    text("spf", domain, `v=spf1 include:${spf_host} -all`),
    text("dmarc", `_dmarc.${domain}`, "v=DMARC1; p=reject; adkim=s"),
  ];
}
