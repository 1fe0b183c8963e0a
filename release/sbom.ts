// `npm run sbom [-- <file>]`: the software bill of materials of a release (CycloneDX 1.5, JSON), by default in
// postern.cdx.json. npm reads it off package-lock.json alone, so that it needs no installed packages and no network, and is
// the same on every platform. What npm makes new each time is taken out or derived from the content, so that anybody can
// make the same bytes from the same commit with the same npm. Not here: checking for known holes (`npm audit`).
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { readOptions } from "../test/support/options.ts";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const BYTES_MAX = 64 * 1024 * 1024;

type Component = { "bom-ref": string; name: string; type: string };
type Lock = { packages: Record<string, { version: string; dev?: boolean; link?: boolean }> };
type Bom = {
  serialNumber?: string;
  metadata: { timestamp?: string; component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
};

/** As npm says it, development included. It names the root after the folder it works in, and so works in a folder of our name. */
function readFromNpm(): Bom {
  const folder = mkdtempSync(join(tmpdir(), "postern-sbom-"));
  try {
    for (const file of ["package.json", "package-lock.json"]) cpSync(join(ROOT, file), join(folder, file));
    const options = ["sbom", "--package-lock-only", "--sbom-format", "cyclonedx"];
    const npm = process.platform === "win32" ? "npm.cmd" : "npm";
    const text = execFileSync(npm, [...options, "--sbom-type", "application"], {
      cwd: folder,
      maxBuffer: BYTES_MAX,
      shell: process.platform === "win32",
    });
    return JSON.parse(text.toString("utf8"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * What `npm ci --omit dev` installs, by package-lock.json. Deliberate: not `npm sbom --omit dev`, which leaves out what a
 * development dependency needs as well (seen with npm 11.19.1: `ajv`, `iconv-lite` and `pg-protocol` were missing).
 */
function withoutDevelopment(bom: Bom): Bom {
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as Lock;
  const installed = Object.entries(packages).filter(
    ([path, { dev, link }]) => path.startsWith("node_modules/") && !dev && !link,
  );
  const refs = new Set(installed.map(([path, { version }]) => `${path.replace(/^.*node_modules\//, "")}@${version}`));
  const root = bom.metadata.component["bom-ref"];
  return {
    ...bom,
    components: bom.components.filter((component) => refs.has(component["bom-ref"])),
    dependencies: bom.dependencies
      .filter(({ ref }) => ref === root || refs.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) })),
  };
}

/** The same for the same content: no time of day, and a serial number that is a UUID (version 8) of the rest. */
function reproducible(bom: Bom, name: string): Bom {
  const { timestamp: _timestamp, ...metadata } = bom.metadata;
  const { serialNumber: _serialNumber, ...rest } = bom;
  const content = {
    ...rest,
    metadata: { ...metadata, component: { ...metadata.component, name } },
    components: bom.components.toSorted((a, b) => order(a["bom-ref"], b["bom-ref"])),
    dependencies: bom.dependencies
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.toSorted(order) }))
      .sort((a, b) => order(a.ref, b.ref)),
  };
  return { ...content, serialNumber: `urn:uuid:${uuidOf(JSON.stringify(content))}` };
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function uuidOf(text: string): string {
  const bytes = createHash("sha256").update(text).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

const { positionals } = readOptions({ allowPositionals: true }, "npm run sbom -- [file]");
const { name } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const target = resolve(positionals[0] ?? join(ROOT, `${name}.cdx.json`));
const bom = reproducible(withoutDevelopment(readFromNpm()), name);
writeFileSync(target, `${JSON.stringify(bom, null, 2)}\n`);
process.stdout.write(`${bom.components.length} components: ${target}\n`);
