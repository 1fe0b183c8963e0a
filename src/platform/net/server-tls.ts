// The certificate our servers show: the one that was issued to us, the operator's files, or a self-signed one made at the
// first start and kept in the data folder. Files that are replaced (a renewal) are read again without a restart.
import { X509Certificate } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecureContext, type SecureContext } from "node:tls";
import type { Config, Role } from "../../config.ts";
import { keyFileWords } from "../../text/tls-words.ts";
import { makeFolders } from "../storage/make-folders.ts";
import type { World } from "../world.ts";
import { makeSelfSigned } from "./self-signed.ts";
import { showCertificate } from "./served-certificate.ts";

const LOOK_EVERY_MS = 30_000;

export type TlsWorld = Pick<World, "clock" | "config" | "log" | "metrics">;

type Loaded = { context: SecureContext; stamp: string };

/**
 * The context for handshakes, as new as its files. Throws at the first call when they cannot be read. What `issued` answers
 * goes first; until it answers any, the self-signed one stands in.
 */
export function serverTls(world: TlsWorld, issued: () => SecureContext | null = () => null): () => SecureContext {
  const files = certificateFiles(world);
  let loaded = world.config.tls_cert_file ? loadGiven(files) : load(files);
  if (issued() === null) show(world, files);
  let lookedAtMs = world.clock.monotonic();
  return () => {
    const given = issued();
    if (given) return given;
    const now = world.clock.monotonic();
    if (now - lookedAtMs > LOOK_EVERY_MS) {
      lookedAtMs = now;
      loaded = reload(world, files, loaded);
    }
    return loaded.context;
  };
}

type TlsConfig = Pick<Config, "tls_cert_file" | "tls_key_file" | "https">;

/** Before anything is made: throws where these roles would show the operator's files, and they cannot be used. */
export function refuseUnusableFiles(config: TlsConfig, roles: readonly Role[]): void {
  const given = givenFiles(config);
  const isShown = roles.includes("mx") || roles.includes("submission") || (roles.includes("api") && config.https);
  if (given && isShown) loadGiven(given);
}

/** A start with files that are none is to say which ones. */
function loadGiven(files: Files): Loaded {
  try {
    return load(files);
  } catch (error) {
    const what = `the certificate ${files.cert} (POSTERN_TLS_CERT) with the key ${files.key} (POSTERN_TLS_KEY) cannot be used`;
    const must = "a certificate with its chain and the private key that belongs to it, both in PEM form";
    throw new Error(`${what}: ${keyFileWords(error as Error)}. They must be ${must}.`, { cause: error });
  }
}

type Files = { cert: string; key: string };

function certificateFiles(world: TlsWorld): Files {
  return givenFiles(world.config) ?? selfSignedFiles(world.config, world.clock.now());
}

function givenFiles({ tls_cert_file, tls_key_file }: Omit<TlsConfig, "https">): Files | null {
  return tls_cert_file && tls_key_file ? { cert: tls_cert_file, key: tls_key_file } : null;
}

/**
 * One file holds both, so that two processes that start at once cannot mix theirs: the first to link it wins. On disk
 * before its name is there; one that a power cut left empty or torn all the same is replaced: nobody relies on it.
 */
function selfSignedFiles(config: Config, nowMs: number): Files {
  const path = join(config.data_dir, "self-signed.pem");
  const hosts = [...new Set([config.mx_host, config.hostname])];
  const { key, cert } = makeSelfSigned(hosts, nowMs);
  const draft = `${path}.${process.pid}`;
  makeFolders(config.data_dir);
  try {
    writeFileSync(draft, key + cert, { mode: 0o600, flush: true });
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    if (!isWhole(path)) renameSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
  return { cert: path, key: path };
}

function isWhole(path: string): boolean {
  try {
    load({ cert: path, key: path });
    return true;
  } catch (error) {
    // A file that may not be read is reported when it is read next.
    return (error as NodeJS.ErrnoException).syscall !== undefined;
  }
}

function load(files: Files): Loaded {
  const stamp = stampOf(files);
  const context = createSecureContext({
    cert: readFileSync(files.cert),
    key: readFileSync(files.key),
    minVersion: "TLSv1.2",
  });
  return { context, stamp };
}

function show({ metrics }: Pick<World, "metrics">, { cert }: Files): void {
  const { validFrom, validTo } = new X509Certificate(readFileSync(cert));
  showCertificate(metrics, { not_before: new Date(validFrom), not_after: new Date(validTo) });
}

function stampOf(files: Files): string {
  return [files.cert, files.key].map((path) => statSync(path).mtimeMs).join("/");
}

/** A renewal that is half written keeps the certificate we have. */
function reload(world: TlsWorld, files: Files, loaded: Loaded): Loaded {
  try {
    if (stampOf(files) === loaded.stamp) return loaded;
    const renewed = load(files);
    show(world, files);
    return renewed;
  } catch (err) {
    world.log.warn({ err }, "the TLS certificate could not be read again; the old one stays");
    return loaded;
  }
}
