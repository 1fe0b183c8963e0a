// The rows of `copies`: how each copy is made, and what is written of it. Not here: what is asked of every row (copies.ts).
import { execFileSync } from "node:child_process";
import { renameSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { type Cluster, makeCluster, makeOwn, removeCluster } from "./clusters.ts";
import type { Site, Theatre } from "./copies-stage.ts";
import { makeLoopDisk } from "./loop-disk.ts";

/** The site that is looked at, whose processes run, and what is to be undone. */
type Scene = { copy: Site; end?(): Promise<void> };

export type CopyRow = { name: string; expected: "goes on" | "pauses"; play(t: Theatre): Promise<Scene> };

const both = async (t: Theatre, site: Site): Promise<void> => {
  await t.start(site, "api");
  await t.start(site, "mta");
};

const folder = (t: Theatre, name: string): string => join(t.dir, name);

/** An original on a PostgreSQL of its own. */
async function outside(
  t: Theatre,
  settings: Record<string, string> = {},
): Promise<{ cluster: Cluster; original: Site }> {
  const cluster = await makeCluster(folder(t, "cluster"), settings);
  const original = await t.original(folder(t, "data"), { DATABASE_URL: cluster.url() });
  return { cluster, original };
}

/** A site on another database with a new data folder. */
async function onNewMachine(t: Theatre, original: Site, url: string, env: Record<string, string> = {}): Promise<Site> {
  const copy = await t.site(folder(t, "new-machine"), { DATABASE_URL: url, ...env }, original);
  await both(t, copy);
  return copy;
}

/** Ends the servers once the sites on them have ended. */
function ending(t: Theatre, sites: Site[], ...clusters: Cluster[]): () => Promise<void> {
  return async () => {
    for (const site of sites) await t.stop(site);
    for (const cluster of clusters) {
      await cluster.stop("immediate").catch(() => undefined); // it may have been ended by its row
      removeCluster(cluster);
    }
  };
}

/** What pg_restore has done for `dump`, taken before the original sends its queue. */
async function dumped(
  t: Theatre,
  restore: (cluster: Cluster, dump: string) => Promise<string>,
  stops: boolean,
): Promise<Scene> {
  const { cluster, original } = await outside(t);
  makeOwn(folder(t, "dumps"));
  const dump = folder(t, "dumps/dump");
  await cluster.tool("pg_dump", ["--format=custom", `--file=${dump}`, "postern"]);
  await t.sendQueue(original);
  if (stops) await t.stop(original);
  const copy = await onNewMachine(t, original, await restore(cluster, dump));
  return { copy, end: ending(t, [copy, original], cluster) };
}

async function embedded(t: Theatre): Promise<Site> {
  return t.original(folder(t, "data"), {});
}

const RESTORES: CopyRow[] = [
  {
    name: "a dump restored into a database beside the original",
    expected: "pauses",
    play: (t) =>
      dumped(
        t,
        async (cluster, dump) => {
          await cluster.tool("createdb", ["--owner=postern", "copy"]);
          await cluster.tool("pg_restore", ["--dbname=copy", dump]);
          return cluster.url("copy");
        },
        false,
      ),
  },
  {
    name: "a dump restored in the place of the original, seen from a new machine",
    expected: "pauses",
    play: (t) =>
      dumped(
        t,
        async (cluster, dump) => {
          await cluster.sql("drop schema public cascade");
          await cluster.sql("create schema public authorization postern");
          await cluster.tool("pg_restore", ["--schema=public", "--dbname=postern", dump]);
          return cluster.url();
        },
        true,
      ),
  },
  {
    name: "a dump restored into another PostgreSQL: staging",
    expected: "pauses",
    async play(t) {
      const staging = await makeCluster(folder(t, "staging"));
      const scene = await dumped(
        t,
        async (_cluster, dump) => {
          await staging.tool("pg_restore", ["--dbname=postern", dump]);
          return staging.url();
        },
        false,
      );
      const end = async (): Promise<void> => {
        await scene.end?.();
        await ending(t, [], staging)();
      };
      return { copy: scene.copy, end };
    },
  },
  {
    name: "createdb --template",
    expected: "pauses",
    async play(t) {
      const { cluster, original } = await outside(t);
      await t.stop(original);
      await cluster.tool("createdb", ["--owner=postern", "--template=postern", "copy"]);
      await t.start(original, "api");
      await t.sendQueue(original);
      const copy = await onNewMachine(t, original, cluster.url("copy"));
      return { copy, end: ending(t, [copy, original], cluster) };
    },
  },
];

/** A cluster recovered to the moment in which the queue waited; the original has sent it and is gone. */
async function recovered(t: Theatre): Promise<{ original: Site; cluster: Cluster; to: Cluster }> {
  makeOwn(folder(t, "archive"));
  const archive = `test ! -f ${folder(t, "archive")}/%f && cp %p ${folder(t, "archive")}/%f`;
  const { cluster, original } = await outside(t, { archive_mode: "on", archive_command: archive });
  const to = await cluster.baseBackup(folder(t, "recovered"));
  await cluster.sql("select pg_create_restore_point('before')");
  await t.sendQueue(original);
  await t.stop(original);
  await cluster.sql("select pg_switch_wal()");
  await cluster.stop();
  makeSignal(to, "recovery.signal");
  const target = { recovery_target_name: "before", recovery_target_action: "promote", archive_mode: "off" };
  await to.start({ ...target, restore_command: `cp ${folder(t, "archive")}/%f %p` });
  return { original, cluster, to };
}

function makeSignal({ folder: where }: Cluster, name: string): void {
  execFileSync("install", ["-m", "600", `--owner=${ownerOf(where)}`, "/dev/null", join(where, name)]);
}

function ownerOf(path: string): string {
  return execFileSync("stat", ["-c", "%u", path]).toString().trim();
}

const RECOVERIES: CopyRow[] = [
  {
    name: "a recovery to a point in time, on the machine that sent",
    expected: "pauses",
    async play(t) {
      const { original, cluster, to } = await recovered(t);
      original.settings.env.DATABASE_URL = to.url();
      await both(t, original);
      return { copy: original, end: ending(t, [original], cluster, to) };
    },
  },
  {
    name: "a recovery to a point in time, on a new machine",
    expected: "pauses",
    async play(t) {
      const { original, cluster, to } = await recovered(t);
      const copy = await onNewMachine(t, original, to.url());
      return { copy, end: ending(t, [copy], cluster, to) };
    },
  },
  {
    name: "a fork: pg_basebackup started as a primary beside the original",
    expected: "pauses",
    async play(t) {
      const { cluster, original } = await outside(t);
      const fork = await cluster.baseBackup(folder(t, "fork"));
      await t.sendQueue(original);
      await fork.start();
      const copy = await onNewMachine(t, original, fork.url());
      return { copy, end: ending(t, [copy, original], cluster, fork) };
    },
  },
  {
    name: "a fork under a staging host name, out of the original's reach",
    expected: "pauses",
    async play(t) {
      const { cluster, original } = await outside(t);
      const fork = await cluster.baseBackup(folder(t, "fork"));
      await t.sendQueue(original);
      await t.stop(original);
      await fork.start();
      const copy = await onNewMachine(t, original, fork.url(), { POSTERN_HOSTNAME: "staging.example" });
      return { copy, end: ending(t, [copy, original], cluster, fork) };
    },
  },
];

/** A synchronous standby, without which a failover may lose what was answered. */
async function withStandby(t: Theatre): Promise<{ cluster: Cluster; standby: Cluster }> {
  const cluster = await makeCluster(folder(t, "cluster"));
  const standby = await cluster.baseBackup(folder(t, "standby"), true);
  await standby.start();
  await cluster.sql("alter system set synchronous_standby_names = '*'");
  await cluster.sql("select pg_reload_conf()");
  return { cluster, standby };
}

/** A standby without a connection: it has the queue as it waits, and nothing of what the original does from then on. */
async function laggingStandby(t: Theatre): Promise<{ cluster: Cluster; standby: Cluster; original: Site }> {
  const { cluster, original } = await outside(t);
  const standby = await cluster.baseBackup(folder(t, "standby"));
  makeSignal(standby, "standby.signal");
  await standby.start();
  await t.sendQueue(original);
  return { cluster, standby, original };
}

async function failOver(cluster: Cluster, standby: Cluster): Promise<void> {
  await cluster.stop("immediate");
  await standby.promote();
}

/** What a virtual address or a proxy before PostgreSQL does. */
async function forwarder(first: number): Promise<{ port: number; to(port: number): void; close(): void }> {
  let target = first;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const there = connect(target, "127.0.0.1");
    for (const one of [socket, there]) {
      sockets.add(one);
      one.on("error", () => undefined);
      one.on("close", () => {
        sockets.delete(one);
        socket.destroy();
        there.destroy();
      });
    }
    socket.pipe(there).pipe(socket);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    port: (server.address() as { port: number }).port,
    to: (port) => {
      target = port;
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

const FAILOVERS: CopyRow[] = [
  {
    name: "a failover under running processes",
    expected: "goes on",
    async play(t) {
      const { cluster, standby } = await withStandby(t);
      const front = await forwarder(cluster.port);
      const url = `postgresql://postern@127.0.0.1:${front.port}/postern`;
      const original = await t.original(folder(t, "data"), { DATABASE_URL: url });
      await t.start(original, "mta");
      await t.arrived(t.accepted);
      await failOver(cluster, standby);
      front.to(standby.port);
      const ended = ending(t, [original], cluster, standby);
      return { copy: original, end: () => ended().then(front.close) };
    },
  },
  {
    name: "a failover, with the processes started again",
    expected: "goes on",
    async play(t) {
      const { cluster, standby } = await withStandby(t);
      const original = await t.original(folder(t, "data"), { DATABASE_URL: cluster.url() });
      await failOver(cluster, standby);
      await t.stop(original, "SIGKILL");
      original.settings.env.DATABASE_URL = standby.url();
      await both(t, original);
      return { copy: original, end: ending(t, [original], cluster, standby) };
    },
  },
  {
    name: "a failover to a new machine, with the old ones gone",
    expected: "goes on",
    async play(t) {
      const { cluster, standby } = await withStandby(t);
      const original = await t.original(folder(t, "data"), { DATABASE_URL: cluster.url() });
      await failOver(cluster, standby);
      await t.stop(original, "SIGKILL");
      const copy = await onNewMachine(t, original, standby.url());
      return { copy, end: ending(t, [copy], cluster, standby) };
    },
  },
  {
    name: "a failover that lost commits in which mail was sent, with the processes started again",
    expected: "pauses",
    async play(t) {
      const { cluster, standby, original } = await laggingStandby(t);
      await failOver(cluster, standby);
      await t.stop(original, "SIGKILL");
      original.settings.env.DATABASE_URL = standby.url();
      await both(t, original);
      return { copy: original, end: ending(t, [original], cluster, standby) };
    },
  },
];

const FOLDERS: CopyRow[] = [
  {
    name: "the data folder copied and started beside the original",
    expected: "pauses",
    async play(t) {
      const original = await embedded(t);
      await t.stop(original);
      execFileSync("cp", ["-a", folder(t, "data"), folder(t, "copy")]);
      await t.start(original, "api");
      await t.sendQueue(original);
      const copy = await t.site(folder(t, "copy"), {}, original);
      await both(t, copy);
      return { copy };
    },
  },
  {
    name: "an older data folder put back in its place",
    expected: "pauses",
    async play(t) {
      const original = await embedded(t);
      await t.stop(original);
      execFileSync("cp", ["-a", folder(t, "data"), folder(t, "backup")]);
      await t.start(original, "api");
      await t.sendQueue(original);
      await t.stop(original);
      rmSync(folder(t, "data"), { recursive: true });
      renameSync(folder(t, "backup"), folder(t, "data"));
      await both(t, original);
      return { copy: original };
    },
  },
  {
    name: "an older data folder copied over the present one",
    expected: "pauses",
    async play(t) {
      const original = await embedded(t);
      await t.stop(original);
      execFileSync("cp", ["-a", folder(t, "data"), folder(t, "backup")]);
      await t.start(original, "api");
      await t.sendQueue(original);
      await t.stop(original);
      execFileSync("rm", ["-rf", folder(t, "data/postgres")]);
      execFileSync("cp", ["-a", `${folder(t, "backup")}/.`, folder(t, "data")]);
      await both(t, original);
      return { copy: original };
    },
  },
  {
    name: "the data folder moved by copying it",
    expected: "pauses",
    async play(t) {
      const original = await embedded(t);
      await t.sendQueue(original);
      await t.stop(original);
      execFileSync("cp", ["-a", folder(t, "data"), folder(t, "elsewhere")]);
      rmSync(folder(t, "data"), { recursive: true });
      const copy = await t.site(folder(t, "elsewhere"), {}, original);
      await both(t, copy);
      return { copy };
    },
  },
  {
    name: "a clone of the machine's disk beside the original",
    expected: "pauses",
    play: cloneOfMachine,
  },
];

/** Births, inodes and times are the same on a clone of a file system. Both machines have one name and one address. */
async function cloneOfMachine(t: Theatre): Promise<Scene> {
  const disk = makeLoopDisk(512 * 1024 * 1024);
  const original = await t.original(join(disk.path, "data"), {});
  await t.stop(original);
  const clone = await disk.clone();
  await t.start(original, "api");
  await t.sendQueue(original);
  const copy = await t.site(join(clone.path, "data"), { POSTERN_BASE_URL: original.settings.base_url }, original);
  await both(t, copy);
  const end = async (): Promise<void> => {
    for (const site of [copy, original]) await t.stop(site);
    await clone.remove();
    await disk.remove();
  };
  return { copy, end };
}

const NOTHING_NEW: CopyRow[] = [
  {
    name: "kill -9 and a restart",
    expected: "goes on",
    async play(t) {
      const { cluster, original } = await outside(t);
      await t.start(original, "mta");
      await t.stop(original, "SIGKILL");
      await cluster.stop("immediate");
      await cluster.start();
      await both(t, original);
      return { copy: original, end: ending(t, [original], cluster) };
    },
  },
  {
    name: "a further machine that joins",
    expected: "goes on",
    async play(t) {
      const { cluster, original } = await outside(t);
      const copy = await onNewMachine(t, original, cluster.url());
      return { copy, end: ending(t, [copy, original], cluster) };
    },
  },
  {
    name: "the data folder moved within its disk",
    expected: "goes on",
    async play(t) {
      const original = await embedded(t);
      await t.stop(original);
      renameSync(folder(t, "data"), folder(t, "elsewhere"));
      const copy = await t.site(folder(t, "elsewhere"), {}, original);
      await both(t, copy);
      return { copy };
    },
  },
  {
    name: "the volume mounted again, elsewhere",
    expected: "goes on",
    async play(t) {
      const disk = makeLoopDisk(512 * 1024 * 1024);
      const original = await t.original(join(disk.path, "data"), {});
      await t.stop(original);
      const elsewhere = await disk.moveTo(folder(t, "elsewhere"));
      const copy = await t.site(join(elsewhere.path, "data"), {}, original);
      await both(t, copy);
      return { copy, end: () => t.stop(copy).then(elsewhere.remove) };
    },
  },
  {
    name: "chown -R and chmod -R of the data folder",
    expected: "goes on",
    async play(t) {
      const original = await embedded(t);
      await t.stop(original);
      const cluster = folder(t, "data/postgres/cluster");
      execFileSync("chown", ["-R", ownerOf(cluster), cluster]);
      execFileSync("chmod", ["-R", "u+rwX", folder(t, "data")]);
      await both(t, original);
      return { copy: original };
    },
  },
];

/** In the order of the table. */
export const COPY_ROWS: readonly CopyRow[] = [...NOTHING_NEW, ...FAILOVERS, ...RESTORES, ...RECOVERIES, ...FOLDERS];
