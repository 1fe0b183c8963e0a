// Postfix as a peer: relays everything to the sink, with OpenDKIM (RSA-2048) as a milter or without. Fed by its own
// smtp-source. Stock settings but for addresses.
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../test/support/postern-process.ts";
import { postfixMissing, startPostfix } from "../../test/support/postfix.ts";
import type { BenchSink } from "./sink.ts";

/** Messages a second from smtp-source to the sink; null when Postfix (or OpenDKIM) is not installed or may not run. */
export async function benchPostfix(options: {
  sink: BenchSink;
  count: number;
  signed: boolean;
  body_bytes: number;
}): Promise<number | null> {
  if (postfixMissing() || (options.signed && !existsSync("/usr/sbin/opendkim"))) return null;
  const signer = options.signed ? await startOpenDkim() : null;
  const postfix = await startPostfix(() => settings(options.sink.port, signer?.port ?? null));
  const { port } = postfix;
  try {
    await options.sink.reset();
    await send(port, 200, options.body_bytes);
    await options.sink.waitFor(200, "received");
    await options.sink.reset();
    const startedAt = performance.now();
    const sending = send(port, options.count, options.body_bytes);
    const endedAt = await options.sink.waitFor(options.count, "received");
    await sending;
    await checkSigned(options);
    return options.count / ((endedAt - startedAt) / 1000);
  } finally {
    postfix.stop();
    signer?.stop();
  }
}

function settings(sinkPort: number, milterPort: number | null): string {
  const milter =
    milterPort === null ? "" : `smtpd_milters = inet:127.0.0.1:${milterPort}\nmilter_default_action = tempfail\n`;
  return `mydestination =
relayhost = [127.0.0.1]:${sinkPort}
smtp_dns_support_level = disabled
always_add_missing_headers = yes
${milter}`;
}

async function checkSigned({ sink, signed }: { sink: BenchSink; signed: boolean }): Promise<void> {
  const [sample] = await sink.samples();
  const hasSignature = /^dkim-signature:/im.test(sample?.toString("latin1") ?? "");
  if (hasSignature !== signed)
    throw new Error(`the peer's mail is ${signed ? "not " : ""}signed: nothing was compared`);
}

function send(port: number, count: number, bytes: number): Promise<void> {
  const args = ["-s", "20", "-m", String(count), "-l", String(bytes), "-f", "orders@shop.example", "-t"];
  const child = spawn("smtp-source", [...args, "customer@customer.example", `127.0.0.1:${port}`], { stdio: "pipe" });
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`smtp-source ended with ${code}`))));
  });
}

async function startOpenDkim(): Promise<{ port: number; stop(): void }> {
  const dir = mkdtempSync(join(tmpdir(), "postern-opendkim-"));
  const port = await freePort();
  const keys = join(dir, "dkim");
  mkdirSync(keys);
  execFileSync("openssl", ["genrsa", "-out", join(keys, "key.pem"), "2048"], { stdio: "pipe" });
  chmodSync(join(keys, "key.pem"), 0o600);
  writeFileSync(
    join(dir, "opendkim.conf"),
    `Domain shop.example
Selector bench
KeyFile ${join(keys, "key.pem")}
Canonicalization relaxed/relaxed
Mode s
Socket inet:${port}@127.0.0.1
InternalHosts 127.0.0.1
RequireSafeKeys no
Syslog no
OversignHeaders From
`,
  );
  const child = spawn("opendkim", ["-f", "-x", join(dir, "opendkim.conf")], { stdio: "pipe" });
  await new Promise((resolve) => setTimeout(resolve, 500));
  if (child.exitCode !== null) throw new Error(`opendkim did not start (exit code ${child.exitCode})`);
  return {
    port,
    stop() {
      child.kill("SIGTERM");
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
