// `upgrade`: an older version of this repository serves under load, with a receiving server so slow that thousands of mails wait
// or are under way; the new one starts beside it on the same database, which brings that up to date; both serve for a while; then the old processes go one by one and new ones come. No request fails
// twice, none with 500, nothing is lost, and no copy is unflagged. The old version comes from git.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";
import { sumUp, type Verdict } from "./drain.ts";
import { Lacking } from "./lacking.ts";
import { sleep } from "./load.ts";
import { type ReceiveVerdict, startReceiving, sumUpMailIn } from "./mail-in.ts";
import { playRound, type ScenarioOptions } from "./round.ts";
import { chanceOf } from "./seeded.ts";
import { type Role, type Stage, setStage } from "./stage.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** Before migration 0012; every version from here on upgrades without a pause. */
const OLD_VERSION = "3f23e4f";
const SENDS = 12_500;
/** Of those: so many are accepted and not delivered when the new version comes. */
const IN_FLIGHT_SHARE = 0.8;
/** What the receiving server thinks over each mail until then. */
const SLOW_MS = 5_000;
const IN_FLIGHT_WITHIN_MS = 900_000;
const ALONE_MS = 2_000;
const TOGETHER_MS = 6_000;

export type UpgradeVerdict = Verdict & {
  old: string;
  migrations: number;
  /** Accepted and not delivered when the new version came. */
  in_flight: number;
  failed_with_one_retry: number;
  unclean_exits: number;
  /** Of the mail that came in meanwhile. */
  received: ReceiveVerdict;
};

/** Runs it. */
export async function runUpgrade({ rounds, seed, sends = SENDS, say }: ScenarioOptions): Promise<UpgradeVerdict> {
  const old = checkOut(OLD_VERSION);
  try {
    const verdicts: UpgradeVerdict[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      verdicts.push(await upgradeOnce(old, { round, seed: seed + round, sends, ...(say ? { say } : {}) }));
    }
    const add = (name: "in_flight" | "failed_with_one_retry" | "unclean_exits"): number =>
      verdicts.reduce((total, verdict) => total + verdict[name], 0);
    return {
      ...sumUp(verdicts),
      old: OLD_VERSION,
      migrations: verdicts[0]?.migrations ?? 0,
      in_flight: add("in_flight"),
      failed_with_one_retry: add("failed_with_one_retry"),
      unclean_exits: add("unclean_exits"),
      received: sumUpMailIn(verdicts.map(({ received }) => received)),
    };
  } finally {
    rmSync(old, { recursive: true, force: true });
  }
}

/** The tree of a commit with its packages; Lacking where there is no such history, or no registry that has them. */
function checkOut(commit: string): string {
  const folder = mkdtempSync(join(tmpdir(), "postern-old-"));
  try {
    const tree = execFileSync("git", ["archive", commit], { cwd: ROOT, maxBuffer: 512 * 1024 * 1024, stdio: "pipe" });
    execFileSync("tar", ["-x", "-C", folder], { input: tree });
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw new Lacking(`the old version ${commit} is not to be had of git: ${(error as Error).message.split("\n")[0]}`);
  }
  try {
    const options = ["--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"];
    execFileSync("npm", ["ci", ...options], { cwd: folder, stdio: "pipe" });
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw new Lacking(`the packages of ${commit} cannot be installed: ${(error as Error).message.split("\n")[0]}`);
  }
  return folder;
}

type Options = { round: number; seed: number; sends: number; say?(text: string): void };

async function upgradeOnce(old: string, { round, seed, sends, say }: Options): Promise<UpgradeVerdict> {
  const chance = chanceOf(seed);
  const stage = await setStage({ roles: ["api", "mta", "hooks", "clock"], program: old });
  try {
    await startReceiving(stage);
    const before = await migrationsOf(stage);
    const second = await freePort();
    stage.sink.think(() => SLOW_MS);
    const tally = { in_flight: 0, unclean_exits: 0 };
    const { verdict, load, received } = await playRound(stage, {
      name: `round-${round}`,
      sends,
      pause_ms: 40, // 400 a second at most
      base_urls: [stage.settings.base_url, `http://127.0.0.1:${second}`],
      receives: true,
      async during() {
        tally.in_flight = await untilInFlight(stage, sends * IN_FLIGHT_SHARE);
        stage.sink.think(() => chance.between(0, 20));
        await upgrade(stage, second, tally);
      },
      ...(say ? { say } : {}),
    });
    const migrations = (await migrationsOf(stage)) - before;
    const failed_with_one_retry = load.acknowledged - load.within_one_retry;
    const isSmooth = failed_with_one_retry + tally.unclean_exits === 0;
    if (!received) throw new Error("no mail came in");
    const figures = { old: OLD_VERSION, migrations, failed_with_one_retry, ...tally, received };
    return { ...verdict, ...figures, ok: verdict.ok && isSmooth && migrations > 0 };
  } finally {
    await stage.close();
  }
}

async function migrationsOf(stage: Stage): Promise<number> {
  const [row] = await stage.rows<{ total: number }>("select count(*)::int as total from schema_migration");
  return row?.total ?? 0;
}

async function untilInFlight(stage: Stage, wanted: number): Promise<number> {
  let waits = 0;
  const enough = async () => {
    const [row] = await stage.rows<{ total: number }>("select count(*)::int as total from delivery");
    waits = row?.total ?? 0;
    return waits >= wanted;
  };
  await until(() => `${wanted} mails are in flight: ${waits}`, enough, IN_FLIGHT_WITHIN_MS);
  return waits;
}

async function upgrade(stage: Stage, second: number, tally: { unclean_exits: number }): Promise<void> {
  await sleep(ALONE_MS);
  stage.program = undefined;
  await stage.start("api", "api-2", { POSTERN_HTTP: `127.0.0.1:${second}` });
  await stage.start("mta", "mta-2");
  await stage.start("hooks", "hooks-2");
  await sleep(TOGETHER_MS);
  for (const role of ["clock", "hooks", "mta", "mx", "api"] as Role[]) {
    const { code } = await stage.stop(role);
    if (code !== 0) tally.unclean_exits += 1;
    await stage.start(role);
  }
}
