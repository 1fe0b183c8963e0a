// swaks, a client of SMTP from Debian's packages, as a peer.
import { spawnSync } from "node:child_process";

/** Why swaks cannot be a client over TLS here, in a sentence; null when it can. */
export function swaksMissing(): string | null {
  const { status, stdout } = spawnSync("swaks", ["--support"], { encoding: "utf8" });
  if (status !== 0) return "swaks is not installed (apt-get install swaks libnet-ssleay-perl)";
  return /=== TLS supported/.test(stdout) ? null : "swaks has no TLS (apt-get install libnet-ssleay-perl)";
}
