// What happens to mail for an organization's own addresses: verdicts and parts → spam → rules → webhook, forward, store or
// drop. The steps of spam and rules come in from app.ts; without them nothing is judged and the alias alone decides.
import type { AliasAction, ForwardMode } from "../../aliases/aliases.ts";
import { coalesceByOrg, coalesceListsByOrg } from "../../platform/fair/coalesce.ts";
import type { World } from "../../platform/world.ts";
import { findDomainWebhooks, findExisting, isRead } from "../../webhooks/webhooks.ts";
import type { Handler, Mail, Outcome, RouteOf, RuleHit, RulesStep, SpamStep } from "../types.ts";
import { type Gathered, gather, readMail } from "./findings.ts";
import { type ForwardSender, isLoop, makeForwards } from "./forward.ts";
import { receivedEvent } from "./payload.ts";
import type { FindThread } from "./threads.ts";

export type CustomerWorld = Pick<World, "db" | "blobs" | "clock" | "random" | "config" | "seal" | "log">;

export type CustomerPorts = {
  spam: SpamStep;
  rules: RulesStep;
  findThread: FindThread;
  showsAuth(orgId: string): Promise<boolean>;
  findSender(orgId: string, domain: string): Promise<ForwardSender | undefined>;
};

type CustomerMail = Mail & { route: RouteOf<"alias" | "catch_all"> };
type FindEndpoints = (order: Order, route: CustomerMail["route"]) => Promise<string[]>;

/** The handler of mail for aliases and catch-alls. */
export function customerHandler(world: CustomerWorld, ports: CustomerPorts): Handler {
  const findEndpoints = endpointFinder(world);
  return async (given) => {
    const mail = given as CustomerMail;
    const spam = await ports.spam(mail);
    const gathered = await gather(world, ports.findThread, mail, spam.report);
    if (spam.quarantine !== null && !mail.released)
      return put(gathered, { status: "quarantined", reason: spam.quarantine });
    const rule = await ports.rules(mail, spam.report);
    const order = orderOf(mail, rule);
    const outcome = await carryOut(world, ports, findEndpoints, { mail, gathered, order });
    return { ...outcome, rule_ids: rule ? [rule.rule_id] : [] };
  };
}

/** What is to be done, and who said so. */
type Order = {
  action: AliasAction;
  forward_to: string[];
  forward_mode: ForwardMode;
  /** The endpoints that the rule names, then the alias's: the first choice of which one is still there gets the event. */
  choices: string[][];
  by: string;
};

function orderOf({ route }: CustomerMail, rule: RuleHit | null): Order {
  const own: Order =
    route.kind === "alias"
      ? { ...route, choices: [route.webhook_ids], by: "alias" }
      : { action: "webhook", forward_to: [], forward_mode: "preserve_from", choices: [], by: "catch-all" };
  if (!rule) return own;
  const choices = [rule.webhook_ids, ...own.choices];
  return { ...own, action: rule.action, forward_to: rule.forward_to, choices, by: `rule ${rule.rule_id}` };
}

type Work = { mail: CustomerMail; gathered: Gathered; order: Order };

async function carryOut(
  world: CustomerWorld,
  ports: CustomerPorts,
  findEndpoints: FindEndpoints,
  work: Work,
): Promise<Outcome> {
  const { mail, gathered, order } = work;
  switch (order.action) {
    case "drop":
      return put(gathered, { status: "dropped", reason: `dropped by ${order.by}` });
    case "store":
      return announce(world, ports, work, []);
    case "forward":
      return forward(world, ports, work);
    case "webhook":
      return announce(world, ports, work, await findEndpoints(order, mail.route));
  }
}

/** Tells these endpoints of the mail, and the readers of the organization's events. */
async function announce(
  world: CustomerWorld,
  ports: CustomerPorts,
  { mail, gathered }: Work,
  endpointIds: string[],
): Promise<Outcome> {
  const outcome = put(gathered, { status: "delivered", reason: null });
  if (endpointIds.length === 0 && !(await isRead(world, mail.org_id))) return outcome;
  const described = { ...gathered, shows_auth: await ports.showsAuth(mail.org_id) };
  return { ...outcome, events: [receivedEvent(world, mail, described, endpointIds)] };
}

function put({ found, findings }: Gathered, to: Pick<Outcome, "status" | "reason">): Outcome {
  return { ...to, found: { ...found, findings }, events: [], forwards: [], rule_ids: [] };
}

async function forward(world: CustomerWorld, ports: CustomerPorts, { mail, gathered, order }: Work): Promise<Outcome> {
  const failed = (reason: string) => put(gathered, { status: "failed", reason });
  if (isLoop(world, await mail.examination.bytes(), mail.route)) return failed("loop");
  const sender = await ports.findSender(mail.org_id, mail.route.domain);
  if (!sender) return failed("the domain was removed");
  if (order.forward_to.length === 0) return failed(`${order.by} names no address to forward to`);
  const { from } = await readMail(mail, await mail.examination.parsed());
  const { forward_to, forward_mode: mode } = order;
  const forwards = await makeForwards(world, mail, {
    ...{ forward_to, mode, sender, from },
    found: gathered.found,
    spam: gathered.findings.spam,
  });
  return { ...put(gathered, { status: "delivered", reason: null }), forwards };
}

/**
 * Finds the endpoints of a mail: those that were chosen and still exist; if none is left, the endpoints of the domain.
 */
function endpointFinder(world: Pick<World, "db">): FindEndpoints {
  const ofDomain = domainEndpoints(world);
  const exists = coalesceByOrg<true>({
    keys_max: 500,
    lanes: 2,
    load: async (keys) => {
      const rows = await findExisting(world.db, { org_ids: keys.map((k) => k.org_id), ids: keys.map((k) => k.key) });
      return rows.map(({ org_id, id }) => [org_id, id, true]);
    },
  });
  return async ({ choices }, route) => {
    for (const ids of choices) {
      const there = await Promise.all(ids.map((id) => exists(route.org_id, id)));
      if (there.includes(true)) return ids.filter((_, index) => there[index]);
    }
    return ofDomain(route);
  };
}

/** The endpoints of a domain's catch-all: those bound to the domain, and those it names. */
function domainEndpoints(world: Pick<World, "db">): (route: CustomerMail["route"]) => Promise<string[]> {
  const find = coalesceListsByOrg<string>({
    keys_max: 100,
    lanes: 2,
    load: async (keys) => {
      const domains = keys.map(({ org_id, key }) => ({ org_id, domain_id: key }));
      const rows = await findDomainWebhooks(world.db, domains);
      return rows.map(({ org_id, domain_id, id }) => [org_id, domain_id, id]);
    },
  });
  return async ({ org_id, domain_id, domain_webhook_ids }) => {
    const bound = domain_id === null ? [] : await find(org_id, domain_id);
    return [...new Set([...bound, ...domain_webhook_ids])];
  };
}
