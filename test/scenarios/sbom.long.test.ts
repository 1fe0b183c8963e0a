// The bill of materials: made twice, in a clone without packages, and compared with what package-lock.json says.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, describe, it } from "node:test";

const ROOT = resolve(import.meta.dirname, "../..");

describe("npm run sbom", () => {
  const folder = mkdtempSync(join(tmpdir(), "postern-clone-"));
  after(() => rmSync(folder, { recursive: true }));

  it("writes the same bytes in two clones without installed packages", () => {
    const [first, second] = [makeIn("first"), makeIn("a-second-clone")];
    assert.ok(first.equals(second), "the two differ");
  });

  it("names every package that a release installs, with its licence and the digest of its archive, and no other", () => {
    const bom = JSON.parse(makeIn("third").toString());
    const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
    const wanted = Object.entries<{ version: string; dev?: boolean; link?: boolean }>(packages)
      .filter(([path, { dev, link }]) => path.startsWith("node_modules/") && !dev && !link)
      .map(([path, { version }]) => `${path.replace(/^.*node_modules\//, "")}@${version}`);
    const found = bom.components.map((component: { "bom-ref": string }) => component["bom-ref"]);
    assert.deepEqual(found, [...new Set(wanted)].sort());
    for (const { name, licenses, hashes, purl } of bom.components) {
      assert.ok(licenses.length > 0 && hashes.length > 0 && purl.startsWith("pkg:npm/"), name);
    }
    assert.equal(bom.bomFormat, "CycloneDX");
    assert.equal(bom.metadata.component.name, "postern");
    const refs = new Set([...found, bom.metadata.component["bom-ref"]]);
    for (const { ref, dependsOn } of bom.dependencies) {
      for (const each of [ref, ...dependsOn]) assert.ok(refs.has(each), `${each} is no component`);
    }
  });

  function makeIn(name: string): Buffer {
    const clone = join(folder, name);
    mkdirSync(clone);
    for (const each of ["package.json", "package-lock.json", "release", "test/support/options.ts"]) {
      cpSync(join(ROOT, each), join(clone, each), { recursive: true });
    }
    execFileSync(process.execPath, [join(clone, "release/sbom.ts")], { cwd: clone });
    return readFileSync(join(clone, "postern.cdx.json"));
  }
});
