// Who is let into the embedded database: those who know a password that the folder holds. Clusters of earlier versions let in
// everybody who reached their socket; they are closed at their next start. Files of the cluster are written as its user.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { appendFile, constants, open, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
import type { RunAs } from "./embedded-postgres-binaries.ts";

const ADMISSION = "# Postern lets in who knows a password of";
/** What earlier versions wrote: everybody who reached the socket was let in. */
const TRUST = "local all all trust\nlocal replication postgres trust\n";

/** Who is let in: those who know a password. The first line tells which passwords the roles have. */
export function admission({ socket_dir, passwords: known }: Pick<Cluster, "socket_dir" | "passwords">): string {
  const mark = createHash("sha256").update(`${known.admin} ${known.owner}`).digest("hex").slice(0, 32);
  const lines =
    socket_dir === null
      ? ["host all all 127.0.0.1/32 scram-sha-256", "host replication postgres 127.0.0.1/32 scram-sha-256"]
      : ["local all all scram-sha-256", "local replication postgres scram-sha-256"];
  return `${ADMISSION} ${mark}\n${lines.join("\n")}\n`;
}

/**
 * The text of pg_hba.conf when it lets others in than `admission` says: what an earlier version wrote, or with other
 * passwords than the folder has. Null when all is well, and when the operator wrote a file of their own.
 */
export async function oldAdmission(cluster: Cluster): Promise<string | null> {
  const text = await readFile(join(cluster.cluster_dir, "pg_hba.conf"), "utf8");
  if (text.includes(admission(cluster))) return null;
  return text.includes(TRUST) || text.startsWith(ADMISSION) ? text : null;
}

/**
 * Gives the roles the folder's passwords, and from then on lets in only who knows them. `before`: what pg_hba.conf said;
 * lines of the operator's in it stay.
 */
export async function givePasswords(cluster: Cluster, client: pg.Client, before: string): Promise<void> {
  const { rows } = await client.query<{ rolname: string }>(
    "select rolname from pg_roles where rolname in ('postgres', 'postern')",
  );
  for (const { rolname } of rows) {
    const password = rolname === "postgres" ? cluster.passwords.admin : cluster.passwords.owner;
    await client.query(`alter role ${rolname} password '${password}'`);
  }
  await admitKnown(cluster, before);
  await client.query("select pg_reload_conf()");
}

/** Lets everybody in who reaches the socket, whose folder is closed: until the roles have their passwords. */
export async function admitAll(cluster: Cluster): Promise<void> {
  await writeAs(cluster.run_as, join(cluster.cluster_dir, "pg_hba.conf"), { text: TRUST, sync: true });
}

async function admitKnown(cluster: Cluster, before: string): Promise<void> {
  const more = before.includes(TRUST) ? before.replace(TRUST, "") : "";
  const text = admission(cluster) + more;
  await writeAs(cluster.run_as, join(cluster.cluster_dir, "pg_hba.conf"), { text, sync: true });
}

type Written = { text: string; sync: boolean; appended?: boolean };

/**
 * Writes a file as the user whose folder it is in, with no more rights than that user has: links lead nowhere else. A
 * whole file is written beside its place and moved there.
 */
export async function writeAs(user: RunAs, path: string, { text, sync, appended = false }: Written): Promise<void> {
  const how = appended ? ">>" : ">";
  const draft = how === ">" ? `${path}.${process.pid}` : path;
  if (user === null) await (how === ">" ? writeFile : appendFile)(draft, text, { mode: 0o600 });
  else {
    const child = spawn(
      "/bin/sh",
      ["-c", `umask 077${how === ">" ? ' && rm -f "$1"' : ""} && cat ${how} "$1"`, "sh", draft],
      {
        stdio: ["pipe", "ignore", "pipe"],
        env: { PATH: "/usr/bin:/bin" },
        ...user,
      },
    );
    child.stdin.on("error", () => undefined).end(text);
    const [code] = await once(child, "close");
    if (code !== 0) throw new Error(`${path} cannot be written by user ${user.uid}.`);
  }
  if (sync) await syncFile(draft);
  if (draft !== path) await rename(draft, path);
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  await handle.sync().finally(() => handle.close());
}

/** Everything about one cluster that does not change while it runs. */
export type Cluster = {
  data_dir: string;
  cluster_dir: string;
  run_as: RunAs;
  /** null: TCP on 127.0.0.1 (Windows). */
  socket_dir: string | null;
  passwords: { admin: string; owner: string };
};
