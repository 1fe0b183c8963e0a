// The MTA-STS policy of the service's own receiving domains, where senders ask for it (RFC 8461 §3.3).
import type { Api } from "../http/http.ts";
import type { World } from "../platform/world.ts";
import { policyHosts, policyText } from "./policy.ts";

/** Only at the names of the policy: a policy counts for the domain that was asked. */
export function mountPolicy(api: Api, { config }: Pick<World, "config">): void {
  const hosts = policyHosts(config);
  if (hosts.length === 0) return;
  api.get("/.well-known/mta-sts.txt", { schema: { hide: true } }, async (request, reply) => {
    const host = request.host.replace(/:\d+$/, "").toLowerCase();
    if (!hosts.includes(host)) return reply.code(404).type("text/plain").send("no policy at this name\n");
    return reply.type("text/plain").send(policyText(config));
  });
}
