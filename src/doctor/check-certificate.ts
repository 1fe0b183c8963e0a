// TLS of this installation as others meet it: the certificate in use, from an ACME server or in files, how long it is valid,
// and whether the API can be reached without encryption.
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { createSecureContext } from "node:tls";
import { findCertificate, type Stored } from "../certificates/queries.ts";
import type { Config, FoundConfig } from "../config.ts";
import { createClock } from "../platform/clock.ts";
import { addressOf } from "../platform/net/places.ts";
import { keyFileWords } from "../text/tls-words.ts";
import { type Check, ok, problem, skipped, warning } from "./check.ts";
import { isLocal } from "./local.ts";
import { askDatabase } from "./sending-addresses.ts";

const NAME = "certificate";
const DAY_MS = 86_400_000;
/** Renewal is at a third of the life that is left: with less than this, several attempts have failed. */
const LEFT_SHARE_MIN = 0.2;

/** Checks the certificate of POSTERN_ACME, else that of POSTERN_TLS_CERT. */
export async function checkCertificate(config: FoundConfig): Promise<Check> {
  if (config.acme) return await checkIssued(config, config.acme.directory);
  const { tls_cert_file, tls_key_file } = config;
  if (tls_cert_file && tls_key_file) return await checkFiles(config, tls_cert_file, tls_key_file);
  const says = "Neither POSTERN_ACME nor POSTERN_TLS_CERT is set: mail servers are offered a self-signed certificate.";
  const remedy = "Set POSTERN_ACME=on, or POSTERN_TLS_CERT and POSTERN_TLS_KEY.";
  if (config.https === null) return skipped(NAME, says, remedy);
  return problem(NAME, `${says} No browser and no client of the API accepts it.`, remedy);
}

async function checkIssued(config: FoundConfig, directory: string): Promise<Check> {
  const answer = await askDatabase(config, (db) => findCertificate(db, directory));
  const row = answer?.[0];
  if (!row) return skipped(NAME, "No certificate was asked for yet: Postern does so when it runs.");
  const why = row.failure === null ? "" : ` The last attempt failed: ${row.failure}.`;
  if (!row.chain) {
    return problem(NAME, `No certificate was issued yet.${why}`, againAt(row));
  }
  const life = { not_before: row.not_before as Date, not_after: row.not_after as Date };
  return judge(`The certificate for ${row.names.join(", ")}`, life, { why, remedy: againAt(row) });
}

function againAt({ renew_at }: Stored): string {
  return `Postern asks again at ${renew_at.toISOString().slice(0, 16)}Z; \`postern certificates renew\` asks at once.`;
}

async function checkFiles(config: FoundConfig, certFile: string, keyFile: string): Promise<Check> {
  try {
    const cert = await readFile(certFile);
    const read = new X509Certificate(cert);
    createSecureContext({ cert, key: await readFile(keyFile) });
    const life = { not_before: new Date(read.validFrom), not_after: new Date(read.validTo) };
    const judged = judge(certFile, life, { why: "", remedy: "Renew it; Postern reads it again by itself." });
    return judged.status === "ok" ? (checkNames(config, certFile, read) ?? judged) : judged;
  } catch (error) {
    return problem(
      NAME,
      `${certFile} with the key ${keyFile} cannot be used: ${keyFileWords(error as Error)}.`,
      "They must be a certificate with its chain and the private key that belongs to it, both in PEM form.",
    );
  }
}

/** Null where it names all hosts of this installation that others come to. */
function checkNames(config: FoundConfig, certFile: string, cert: X509Certificate): Check | null {
  const { https, base_url, mx_host, hostname } = config;
  const web = https === null ? [] : [new URL(base_url).hostname];
  const isMissing = (host: string): boolean => !isLocal(host) && isIP(host) === 0 && !cert.checkHost(host);
  const missing = [...new Set([mx_host, hostname, ...web])].filter(isMissing);
  if (missing.length === 0) return null;
  const says = `${certFile} does not name ${missing.join(", ")}:`;
  const remedy = "Take one that names every host here, or let Postern get one: POSTERN_ACME=on.";
  return web.some(isMissing)
    ? problem(NAME, `${says} no browser and no client of the API accepts it.`, remedy)
    : warning(
        NAME,
        `${says} who checks the name of a mail server sends it no mail, or sends without encryption.`,
        remedy,
      );
}

type Life = { not_before: Date; not_after: Date };

function judge(what: string, { not_before, not_after }: Life, { why, remedy }: { why: string; remedy: string }): Check {
  const leftMs = not_after.getTime() - createClock({}).now();
  const share = leftMs / (not_after.getTime() - not_before.getTime());
  const left = leftMs >= DAY_MS ? `${Math.floor(leftMs / DAY_MS)} days` : `${Math.floor(leftMs / 3_600_000)} hours`;
  if (leftMs > not_after.getTime() - not_before.getTime())
    return problem(NAME, `${what} is not valid before ${not_before.toISOString().slice(0, 16)}Z.${why}`, remedy);
  if (leftMs < 0) return problem(NAME, `${what} has expired.${why}`, remedy);
  if (share < LEFT_SHARE_MIN) return warning(NAME, `${what} expires in ${left}.${why}`, remedy);
  return why === ""
    ? ok(NAME, `${what} is valid for ${left}.`)
    : warning(NAME, `${what} is valid for ${left}.${why}`, remedy);
}

/** How the API is reached. */
export function checkWeb(config: FoundConfig): Check[] {
  const { base_url } = config;
  const { protocol, hostname } = new URL(base_url);
  const remedy =
    "Set POSTERN_HTTPS=0.0.0.0:443, or put a proxy with TLS before POSTERN_HTTP and set POSTERN_BASE_URL=https://…";
  const open = plainHttp(config);
  const found = open === null ? [] : [warning("HTTP", open.says, open.remedy)];
  if (protocol === "https:") return [ok("base URL", `${base_url} is encrypted.`), ...found];
  if (isLocal(hostname))
    return [warning("base URL", `${base_url} can be reached from this machine only.`, remedy), ...found];
  const says = `${base_url} is not encrypted: API keys and mail would cross the network in clear.`;
  return [problem("base URL", says, remedy), ...found];
}

/** What is wrong with an API that others reach without TLS; null where they do not, or where a proxy is declared. */
export function plainHttp({
  http,
  trusted_proxies,
}: Pick<Config, "http" | "trusted_proxies">): { says: string; remedy: string } | null {
  if (isLocal(http.host) || trusted_proxies.length > 0) return null;
  return {
    says: `POSTERN_HTTP is ${addressOf(http)}: others reach the API without encryption there.`,
    remedy:
      "Set POSTERN_HTTP=127.0.0.1:8080 beside POSTERN_HTTPS, or name the proxies before it in POSTERN_TRUSTED_PROXIES.",
  };
}
