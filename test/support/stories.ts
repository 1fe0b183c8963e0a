// A domain that may send, and one that receives at loopback: what most sending stories begin with.
import type { DnsServer } from "./dns-server.ts";
import { until } from "./until.ts";
import type { Asking } from "./verified-domain.ts";

/** Makes `domain` receive its mail at this machine's loopback address. */
export function receiveAt(dns: DnsServer, domain: string, host = `mx.${domain}`): void {
  dns.set(domain, "MX", [{ exchange: host, preference: 10 }]);
  dns.set(host, "A", ["127.0.0.1"]);
}

/** Polls `GET /v1/emails/{id}` until its status is one of `statuses`. */
export async function emailWithStatus(api: Asking, id: string, statuses: string[], timeoutMs?: number) {
  let status: string | undefined;
  const look = async () => {
    const { body } = await api.ask("GET", `/v1/emails/${id}`);
    status = body.email?.status;
    return statuses.includes(body.email?.status) && body.email;
  };
  return until(() => `e-mail ${id} is ${status}, not ${statuses.join(" or ")}`, look, timeoutMs);
}
