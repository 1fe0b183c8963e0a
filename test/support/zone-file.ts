// A zone file as `postern setup` writes it, published on the test's name server.
import type { DnsServer } from "./dns-server.ts";

/** Publishes what it holds, as an operator does. */
export function publishZone(dns: DnsServer, file: string): void {
  for (const line of file.split("\n")) {
    const [, name = "", type = "", value = ""] = /^(\S+)\. \d+ IN (A|AAAA|MX|TXT) (.+)$/.exec(line) ?? [];
    if (type === "") continue;
    const text = value.replace(/^"|"$/g, "").replaceAll('" "', "").replaceAll("\\", "");
    const [preference, exchange = ""] = value.split(" ");
    const record = type === "MX" ? { exchange: exchange.replace(/\.$/, ""), preference: Number(preference) } : text;
    dns.set(name, type, [record]);
  }
}
