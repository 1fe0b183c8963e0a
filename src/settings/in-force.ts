// `postern config`: each setting with the value in force and where it came from. Of a secret it says only that it is set.
import type { Config, FoundConfig } from "../config.ts";
import { databaseHost } from "../platform/database/database-url.ts";
import { addressOf } from "../platform/net/places.ts";
import { type Origin, SECRETS } from "./gather.ts";

export type SettingInForce = {
  name: string;
  /** As the variable would be written; null where it has no value: then the setting is off, or its default is no fixed value. */
  value: string | null;
  /** True: the value is not shown. */
  secret: boolean;
  source: Origin["source"] | "default";
  path: string | null;
};

type Row = [name: string, value: (config: FoundConfig, name: string) => string | null];

const listed = (words: string[]): string | null => (words.length === 0 ? null : words.join(","));
const flagged = (isOn: boolean): string => (isOn ? "1" : "0");
const withoutLogin = (url: string | undefined): string | null => url?.replace(/\/\/[^/]*@/, "//…@") ?? null;
const hidden = (value: unknown): string | null => (value ? "(set)" : null);
/** One of the two variables says where traces go. */
function collector({ traces }: FoundConfig, name: string): string | null {
  return traces?.endpoint.variable === name ? withoutLogin(traces.endpoint.given) : null;
}

const ROWS: Row[] = [
  ["DATABASE_URL", ({ database_url }) => (database_url ? `(set: ${databaseHost(database_url)})` : "(embedded)")],
  ["POSTERN_DATABASE_POOLER", ({ database_pooler_url: url }) => (url ? `(set: ${databaseHost(url)})` : null)],
  ["POSTERN_DATABASE_CONNECTIONS", ({ database_connections }) => String(database_connections)],
  ["POSTERN_DATA", ({ data_dir }) => data_dir],
  ["POSTERN_HOSTNAME", ({ hostname }) => hostname],
  ["POSTERN_MX_HOST", ({ mx_host }) => mx_host],
  ["POSTERN_BOUNCE_HOST", ({ bounce_host }) => bounce_host],
  ["POSTERN_REPORT_DOMAIN", ({ report_domain }) => report_domain],
  ["POSTERN_MASKED_DOMAIN", ({ masked_domain }) => masked_domain],
  ["POSTERN_SPF_HOST", ({ spf_host }) => spf_host],
  ["POSTERN_PUBLIC_ADDRESSES", ({ public_addresses }) => listed(public_addresses)],
  ["POSTERN_BASE_URL", ({ base_url }) => base_url],
  ["POSTERN_HTTP", ({ http }) => addressOf(http)],
  ["POSTERN_INTERNAL", ({ internal }) => addressOf(internal)],
  ["POSTERN_MX", ({ mx }) => addressOf(mx)],
  ["POSTERN_SUBMISSION", ({ submission }) => addressOf(submission)],
  ["POSTERN_SUBMISSIONS", ({ submissions }) => submissions && addressOf(submissions)],
  ["POSTERN_HTTPS", ({ https }) => https && addressOf(https)],
  ["POSTERN_ACME", ({ acme }) => acme?.directory ?? null],
  ["POSTERN_ACME_EMAIL", ({ acme }) => acme?.email ?? null],
  ["POSTERN_ACME_HTTP", ({ acme }) => acme && addressOf(acme.http)],
  ["POSTERN_ACME_PROFILE", ({ acme }) => acme?.profile ?? null],
  ["POSTERN_ACME_CA", ({ acme }) => acme?.ca_file ?? null],
  ["POSTERN_TLS_CERT", ({ tls_cert_file }) => tls_cert_file],
  ["POSTERN_TLS_KEY", ({ tls_key_file }) => tls_key_file],
  ["POSTERN_DNS", ({ dns_servers }) => listed(dns_servers)],
  ["POSTERN_DNS_VALIDATING", ({ dns_validating }) => flagged(dns_validating)],
  ["POSTERN_DNS_BLOCK_LISTS", ({ dns_block_lists }) => listed(dns_block_lists)],
  ["POSTERN_MASTER_KEY", ({ master_key }) => hidden(master_key)],
  ["POSTERN_S3_ENDPOINT", ({ s3 }) => withoutLogin(s3?.endpoint)],
  ["POSTERN_S3_REGION", ({ s3 }) => s3?.region ?? null],
  ["POSTERN_S3_BUCKET", ({ s3 }) => s3?.bucket ?? null],
  ["POSTERN_S3_ACCESS_KEY", ({ s3 }) => hidden(s3)],
  ["POSTERN_S3_SECRET_KEY", ({ s3 }) => hidden(s3)],
  ["POSTERN_RSPAMD_URL", ({ rspamd_url }) => rspamd_url && `(set: ${new URL(rspamd_url).host})`],
  ["POSTERN_BACKUP_PASSPHRASE", ({ backup }) => hidden(backup.passphrase)],
  ["POSTERN_BACKUP_RECIPIENTS", ({ backup }) => listed(backup.recipients)],
  ["POSTERN_BACKUP_S3_ENDPOINT", ({ backup }) => withoutLogin(backup.s3?.endpoint)],
  ["POSTERN_BACKUP_S3_REGION", ({ backup }) => backup.s3?.region ?? null],
  ["POSTERN_BACKUP_S3_ACCESS_KEY", ({ backup }) => hidden(backup.s3)],
  ["POSTERN_BACKUP_S3_SECRET_KEY", ({ backup }) => hidden(backup.s3)],
  ["OTEL_SDK_DISABLED", ({ traces_disabled }) => String(traces_disabled)],
  ["OTEL_EXPORTER_OTLP_ENDPOINT", collector],
  ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector],
  ["OTEL_EXPORTER_OTLP_PROTOCOL", ({ traces }) => traces && "http/json"],
  ["OTEL_EXPORTER_OTLP_HEADERS", ({ traces }) => hidden(Object.keys(traces?.headers ?? {}).length)],
  ["OTEL_SERVICE_NAME", ({ traces }) => traces?.service_name ?? null],
  ["OTEL_TRACES_SAMPLER_ARG", ({ traces }) => traces && String(traces.share)],
  ["POSTERN_PROXY_PROTOCOL_FROM", ({ proxy_protocol_from }) => listed(proxy_protocol_from)],
  ["POSTERN_PROXY_TLS", ({ proxies_end_tls }) => flagged(proxies_end_tls)],
  ["POSTERN_CELLS_DOOR", ({ cells_door }) => cells_door && addressOf(cells_door)],
  ["POSTERN_TRUSTED_PROXIES", ({ trusted_proxies }) => listed(trusted_proxies)],
  ["POSTERN_ALLOWED_NETWORKS", ({ allowed_networks }) => listed(allowed_networks)],
  ["POSTERN_GREYLISTING", ({ greylisting }) => flagged(greylisting)],
  ["POSTERN_TLS_REPORTS", ({ tls_reports }) => flagged(tls_reports)],
  ["POSTERN_OIDC_ISSUER", ({ oidc }) => oidc?.issuer ?? null],
  ["POSTERN_OIDC_CLIENT_ID", ({ oidc }) => oidc?.client_id ?? null],
  ["POSTERN_OIDC_CLIENT_SECRET", ({ oidc }) => hidden(oidc)],
  ["POSTERN_OIDC_NAME", ({ oidc }) => oidc?.name ?? null],
  ["POSTERN_OIDC_DOMAINS", ({ oidc }) => listed(oidc?.domains ?? [])],
  ["POSTERN_OIDC_ROLE", ({ oidc }) => oidc?.role ?? null],
  ["POSTERN_SIGNUP", ({ sign_up }) => sign_up],
  ["POSTERN_LOG_LEVEL", ({ log_level }) => log_level],
  ["POSTERN_BOOTSTRAP_LIVE_KEY", ({ bootstrap_live_key }) => hidden(bootstrap_live_key)],
  ["POSTERN_BOOTSTRAP_TEST_KEY", ({ bootstrap_test_key }) => hidden(bootstrap_test_key)],
  ["POSTERN_RETENTION_MESSAGE_DAYS", ({ retention_days }) => `${retention_days.message}`],
  ["POSTERN_RETENTION_BODY_DAYS", ({ retention_days }) => `${retention_days.body}`],
  ["POSTERN_RETENTION_EVENT_DAYS", ({ retention_days }) => `${retention_days.event}`],
  ["POSTERN_RETENTION_INBOUND_DAYS", ({ retention_days }) => `${retention_days.inbound}`],
];

/** What holds where one of these has no value; of all others the value is then off. */
const WITHOUT_VALUE: Record<string, string> = {
  POSTERN_PUBLIC_ADDRESSES: "(of the host name)",
  POSTERN_TLS_CERT: "(none: ACME or self-signed)",
  POSTERN_TLS_KEY: "(none: ACME or self-signed)",
  POSTERN_DNS: "(the system's resolvers)",
  POSTERN_MASTER_KEY: "(made by the first start)",
  POSTERN_BOOTSTRAP_LIVE_KEY: "(random)",
  POSTERN_BOOTSTRAP_TEST_KEY: "(random)",
};

/** Every setting, grouped as in docs/settings.md. The master key's own file counts as a file. */
export function settingsInForce(config: FoundConfig, origins: Map<string, Origin>): SettingInForce[] {
  return ROWS.map(([name, value]) => {
    const shown = { name, value: value(config, name), secret: SECRETS.includes(name) };
    const origin = origins.get(name);
    if (origin) return { ...shown, ...origin };
    if (name === "POSTERN_MASTER_KEY" && config.master_key) {
      return { ...shown, source: "file", path: `${config.data_dir}/master.key` };
    }
    return { ...shown, source: "default", path: null };
  });
}

/** One line for each setting, and one for each variable that is unknown or has no effect. */
export function settingLines(settings: SettingInForce[], unused: Config["unused"]): string {
  const width = Math.max(...settings.map(({ name }) => name.length));
  const lines = settings.map(({ name, value, source, path }) => {
    const from = path === null ? source : `${source.replace("_", " ")} ${path}`;
    return `${name.padEnd(width)}  ${(value ?? WITHOUT_VALUE[name] ?? "(off)").padEnd(28)}  ${from}`;
  });
  return [...lines, ...unused.map((name) => `${name.padEnd(width)}  is an unknown setting, or has no effect`)].join(
    "\n",
  );
}
