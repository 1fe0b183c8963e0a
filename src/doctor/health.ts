// The health of the installation as a page shows it: what runs, and the last look of `postern doctor` at each machine. A look is asked
// for by an operator, done once however many ask at the same time, and kept. It takes some seconds: names are asked for, and ports.
import { statfs } from "node:fs/promises";
import { hostname } from "node:os";
import { findCertificate } from "../certificates/queries.ts";
import { listNodes } from "../outbound/outbound.ts";
import { ownVersion } from "../platform/own-version.ts";
import type { World } from "../platform/world.ts";
import type { Check } from "./check.ts";
import * as queries from "./health-queries.ts";

export type HealthWorld = Pick<World, "db" | "clock" | "config">;
export type Examine = () => Promise<Check[]>;

const MACHINES_SHOWN = 50;

export async function readHealth({ db, config }: HealthWorld) {
  const [[database], nodes, looks, disk, certificates] = await Promise.all([
    queries.describeDatabase(db),
    listNodes(db),
    queries.listLooks(db, MACHINES_SHOWN),
    statfs(config.data_dir).catch(() => null),
    config.acme ? findCertificate(db, config.acme.directory) : [],
  ]);
  const [certificate] = certificates;
  return {
    machine: hostname(),
    versions: { postern: ownVersion(), node: process.versions.node, database: database?.version ?? "" },
    database: { bytes: database?.bytes ?? 0, started_at: database?.started_at ?? new Date(0) },
    disk: disk && { folder: config.data_dir, free_bytes: disk.bavail * disk.bsize, bytes: disk.blocks * disk.bsize },
    certificate: certificate
      ? { names: certificate.names, not_after: certificate.not_after, failure: certificate.failure }
      : null,
    nodes,
    looks,
  };
}

/** Looks at this machine; a call while a look is under way waits for that look and starts none. */
export function looker(world: HealthWorld, examine: Examine): (askedBy: string) => Promise<void> {
  let underWay: Promise<void> | null = null;
  async function look(asked_by: string): Promise<void> {
    const checks = await examine();
    const at = new Date(world.clock.now());
    await queries.keepLook(world.db, { machine: hostname(), at, asked_by, checks });
  }
  return (askedBy) => {
    underWay ??= look(askedBy).finally(() => {
      underWay = null;
    });
    return underWay;
  };
}
