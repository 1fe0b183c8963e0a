// What root does with the embedded database before it gives its rights up: makes its cluster, and looks whether a server of an
// earlier start still runs. Starts none.
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { isAlive } from "../process/process-alive.ts";
import { findPostgres } from "./embedded-postgres-binaries.ts";
import { clusterMajor, createCluster, isServerOf, prepareFolders, readPidFile } from "./embedded-postgres-cluster.ts";
import type { User } from "./own-user.ts";

/** As root: makes the cluster in `dataDir` for `user`, who cannot do it without a line in /etc/passwd. */
export async function makeCluster(dataDir: string, user: User): Promise<void> {
  const cluster = await prepareFolders(dataDir, false, user);
  if ((await clusterMajor(cluster)) !== null) return;
  const search = { data_dir: cluster.data_dir, run_as: user, bin_dir: undefined, cluster_major: null };
  await createCluster(cluster, await findPostgres(search), true);
}

/** The server that was left running in `dataDir`, and as whom it runs; null when there is none. */
export async function serverOf(dataDir: string): Promise<{ pid: number; uid: number } | null> {
  const cluster_dir = join(dataDir, "cluster");
  const file = await readPidFile({ cluster_dir });
  if (file === null || !isAlive(file.pid) || !(await isServerOf(file.pid, cluster_dir))) return null;
  return { pid: file.pid, uid: (await lstat(cluster_dir)).uid };
}
