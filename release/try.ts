// Tries an artefact out as its users would: starts it, verifies a domain, looks at the dashboard, sends one mail through the
// API to a real SMTP server and looks at what arrived. The name server, the receiving server and the addresses are on loopback. Throws at the first
// thing that does not go as it should. Not here: how each artefact is installed and started.
import type { ChildProcess } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startDnsServer } from "../test/support/dns-server.ts";
import {
  apiOf,
  ask,
  type PosternProcess,
  type Posterns,
  posternSettings,
  whenReady,
} from "../test/support/postern-process.ts";
import { startSmtpSink } from "../test/support/smtp-sink.ts";
import { receiveAt } from "../test/support/stories.ts";
import { addVerifiedDomain } from "../test/support/verified-domain.ts";

const DELIVERED_WITHIN_MS = 30_000;
const STOPPED_WITHIN_MS = 60_000;

export type Tried =
  | {
      started: true;
      showed_dashboard: true;
      sent_one_mail: true;
      stopped_by_sigterm: true;
      seconds_to_start: number;
      /** From the start to the mail at the receiving server, signed. */
      seconds_to_mail: number;
      /** From `postern setup` to the mail at the operator's server, signed, where that is measured. */
      seconds_from_setup_to_mail?: number;
      /** The same from the beginning of the installation. */
      seconds_from_install_to_mail?: number;
    }
  /** For what cannot be started here: what checked it. */
  | { checked: string };

const MAIL = {
  from: "Shop <orders@shop.example>",
  to: ["anna@recipient.example"],
  subject: "From a release",
  text_body: "It was built, installed, started, and it sent this.",
};

/** How an artefact is started: with these settings, standard output and error piped. */
export type StartArtefact = (env: Record<string, string>) => ChildProcess;

export type TryOptions = {
  env?: Record<string, string>;
  /** What else must hold while it runs; throws when it does not. */
  look?: (env: Record<string, string>) => void;
  /** How the mail is sent; without it by the API. */
  send?: (settings: Posterns, mail: typeof MAIL) => void | Promise<void>;
  /** Gives the program SIGTERM where the child is another process than it. */
  terminate?: () => void;
};

/** Starts it, sends one mail with it, and stops it by SIGTERM. `dataDir` is a path as the artefact sees it. */
export async function tryOut(start: StartArtefact, dataDir: string, options: TryOptions = {}): Promise<Tried> {
  await using undo = new AsyncDisposableStack();
  const dns = undo.adopt(await startDnsServer(), (server) => server.stop());
  const sink = undo.adopt(await startSmtpSink(), (server) => server.stop());
  const settings = await posternSettings(dataDir, {
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    ...options.env,
  });
  const began = performance.now();
  const child = start(settings.env);
  undo.defer(() => void child.kill("SIGKILL"));
  const running = await whenReady(child);
  const secondsToStart = secondsSince(began);
  await refuseWithoutDashboard(settings.base_url);
  await addVerifiedDomain(apiOf(settings), dns, "shop.example");
  receiveAt(dns, "recipient.example");
  await (options.send ?? sendByApi)(settings, MAIL);
  const [mail] = await sink.waitFor(1, DELIVERED_WITHIN_MS);
  const text = mail?.bytes.toString() ?? "";
  if (!/^subject: From a release\r$/im.test(text)) throw new Error(`another mail arrived:\n${text}`);
  if (!/^dkim-signature:/im.test(text)) throw new Error(`the mail is not signed:\n${text}`);
  const secondsToMail = secondsSince(began);
  options.look?.(settings.env);
  await stopBySigterm(running, options.terminate);
  return {
    ...{ started: true, showed_dashboard: true, sent_one_mail: true, stopped_by_sigterm: true },
    ...{ seconds_to_start: secondsToStart, seconds_to_mail: secondsToMail },
  };
}

async function sendByApi(settings: Posterns, mail: typeof MAIL): Promise<void> {
  const { status, body } = await ask(settings, "POST", "/v1/send", mail);
  if (status !== 202) throw new Error(`POST /v1/send answered ${status}: ${JSON.stringify(body)}`);
}

/** The seconds since `beganMs` of `performance.now()`, with one decimal. */
export function secondsSince(beganMs: number): number {
  return Math.round((performance.now() - beganMs) / 100) / 10;
}

/** The page at `/` is there, and so is the program that it names. */
async function refuseWithoutDashboard(baseUrl: string): Promise<void> {
  const page = await fetch(baseUrl, { headers: { accept: "text/html" } }); // as a browser asks
  const text = await page.text();
  const script = /<script type="module"[^>]* src="([^"]+)"/.exec(text)?.[1];
  if (page.status !== 200 || !script) throw new Error(`GET / answered ${page.status} without the dashboard: ${text}`);
  const program = await fetch(new URL(script, baseUrl));
  if (program.status !== 200 || !/javascript/.test(program.headers.get("content-type") ?? ""))
    throw new Error(`GET ${script} answered ${program.status}`);
  await program.body?.cancel();
}

async function stopBySigterm(running: PosternProcess, terminate?: () => void): Promise<void> {
  const late = setTimeout(() => running.child.kill("SIGKILL"), STOPPED_WITHIN_MS);
  terminate?.();
  const code = terminate ? await running.exited : await running.stop();
  clearTimeout(late);
  if (code !== 0) throw new Error(`SIGTERM ended it with ${code}:\n${running.output()}`);
}

/** A folder for one try that other users may pass through; it goes with `undo`. */
export function scratchFolder(undo: DisposableStack): string {
  const folder = mkdtempSync(join(tmpdir(), "postern-release-"));
  undo.defer(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  return folder;
}
