// The artefacts of a release: how each is made, and how it is tried out. `run.ts` takes them one after the other.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inheritedEnv } from "../test/support/inherited-env.ts";
import { buildCli, tryCli } from "./cli.ts";
import { buildDebian, tryDebian } from "./debian.ts";
import { buildChart, buildCompose, tryChart, tryCompose } from "./deploy-files.ts";
import { buildImage, tryImage } from "./image.ts";
import { layOutPackage, ownVersion, packPackage, ROOT, refuseOtherVersion } from "./package.ts";
import { scratchFolder, type Tried, tryOut } from "./try.ts";

export type Artefact = {
  name: string;
  /** Two clones give the same bytes. */
  is_reproducible: boolean;
  /** Programs of the machine without which it is skipped. */
  needs: readonly string[];
  /** Makes it in the folder `out`, and answers its file. `work` is for what lies between. */
  build(out: string, work: string): string;
  /** Null for what is not started. */
  tryOut: ((file: string) => Promise<Tried>) | null;
};

export const ARTEFACTS: readonly Artefact[] = [
  { name: "sbom", is_reproducible: true, needs: ["npm"], build: buildSbom, tryOut: null },
  { name: "package", is_reproducible: true, needs: ["npm"], build: buildPackage, tryOut: tryPackage },
  { name: "cli", is_reproducible: true, needs: ["npm"], build: buildCli, tryOut: tryCli },
  {
    name: "debian",
    is_reproducible: true,
    needs: ["npm", "dpkg-deb", "debootstrap", "setpriv"],
    build: buildDebian,
    tryOut: tryDebian,
  },
  {
    name: "image",
    is_reproducible: false,
    needs: ["npm", "buildah", "debootstrap", "unshare", "setpriv"],
    build: buildImage,
    tryOut: tryImage,
  },
  {
    name: "compose",
    is_reproducible: true,
    needs: ["podman-compose", "podman", "buildah", "debootstrap", "unshare", "setpriv"],
    build: buildCompose,
    tryOut: tryCompose,
  },
  { name: "chart", is_reproducible: true, needs: ["helm"], build: buildChart, tryOut: tryChart },
];

function buildSbom(out: string): string {
  const file = join(out, `postern-${ownVersion()}.cdx.json`);
  execFileSync(process.execPath, [join(ROOT, "release/sbom.ts"), file], { stdio: "ignore" });
  return file;
}

function buildPackage(out: string, work: string): string {
  const tree = join(work, "package");
  layOutPackage(tree);
  return packPackage(tree, out);
}

/** Installed in an empty folder, without development packages and without anybody's install script. */
async function tryPackage(file: string): Promise<Tried> {
  using undo = new DisposableStack();
  const folder = scratchFolder(undo);
  writeFileSync(join(folder, "package.json"), "{}\n");
  execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", file], {
    cwd: folder,
    stdio: "ignore",
  });
  const program = join(folder, "node_modules/.bin/postern");
  refuseOtherVersion(execFileSync(program, ["--version"], { cwd: folder, env: inheritedEnv() }).toString());
  const data = join(folder, "data");
  mkdirSync(data);
  return await tryOut(
    (env) =>
      spawn(program, ["start"], { cwd: folder, env: { ...inheritedEnv(), ...env }, stdio: ["ignore", "pipe", "pipe"] }),
    data,
  );
}
