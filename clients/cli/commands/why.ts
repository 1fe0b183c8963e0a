// `postern why`: why a mail did not arrive, in one sentence, and what to do next. The server's own words stand beside it.
import type { Command } from "commander";
import type { Email, EmailEvent, Recipient } from "../../node/src/postern.ts";
import { NotFoundError } from "../../node/src/postern.ts";
import { CliError, STATUS } from "../exit.ts";
import { printable } from "../output.ts";
import { acting, type Session, type Surroundings, withGlobals } from "../session.ts";

export type Reason = { recipient: string | null; state: string; cause: string; next: string };
const MAILS_MAX = 5;

export function addWhy(program: Command, around: Surroundings): void {
  withGlobals(program.command("why"))
    .description("why a mail did not arrive, and what to do")
    .argument("<what>", "an e-mail's id or Message-ID, an address, or a domain of yours")
    .action(acting(around, why));
}

async function why(session: Session, what: string): Promise<void> {
  const isId = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(what) || what.startsWith("<");
  if (isId) return explainEmail(session, what);
  if (what.includes("@")) return explainAddress(session, what);
  return explainDomain(session, what);
}

async function explainEmail(session: Session, id: string): Promise<void> {
  const client = session.client();
  const email = await client.emails.get(id).catch((error: unknown) => {
    if (!(error instanceof NotFoundError)) throw error;
    throw new CliError(
      `there is no e-mail ${id} that this key may see. Next: look for it with 'postern emails list --to <address>', or with the key of the other environment`,
      STATUS.not_found,
    );
  });
  const { events } = await client.emails.events(email.id);
  show(session, { email: headOf(email), reasons: await withSuppressions(session, reasonsOf(email, events)) });
}

async function explainAddress(session: Session, address: string): Promise<void> {
  const client = session.client();
  const { suppressed, entry } = await client.suppressions.check({ email: address });
  const reasons: Reason[] = [];
  if (suppressed && entry) reasons.push(suppressionReason(address, entry));
  const emails = (await client.emails.list({ to: address, limit: MAILS_MAX })).items;
  for (const email of emails) {
    const { events } = await client.emails.events(email.id);
    const about = reasonsOf(email, events).filter(
      ({ recipient }) => recipient === null || recipient.toLowerCase() === address.toLowerCase(),
    );
    reasons.push(...about.map((reason) => ({ ...reason, state: `${email.created_at.slice(0, 16)}Z ${reason.state}` })));
  }
  if (reasons.length === 0) {
    throw new CliError(
      `no mail to ${address} is known, and nothing holds it back. Next: send one (postern send), or ask with the key of the other environment`,
      STATUS.not_found,
    );
  }
  show(session, { address, reasons: await withSuppressions(session, reasons) });
}

/** A bounce or a complaint usually ends in the suppression list; the list is asked whether it did. */
async function withSuppressions(session: Session, reasons: readonly Reason[]): Promise<Reason[]> {
  const list = session.client().suppressions;
  return await Promise.all(
    reasons.map(async (reason) => {
      const { recipient, next } = reason;
      if (recipient === null || !/ (?:complained|bounced|failed)$/.test(` ${reason.state}`)) return reason;
      const { suppressed } = await list.check({ email: recipient });
      const remedy = `It is suppressed until you remove it: postern suppressions remove ${recipient}`;
      return suppressed ? { ...reason, next: `${next} ${remedy}` } : reason;
    }),
  );
}

type Entry = { reason: string; source: string; created_at: string; scope_type: string };

/** When it happened, and to which mail, the import does not say. */
const IMPORTED: Readonly<Record<string, string>> = {
  hard_bounce: "an address that does not exist",
  complaint: "a complaint",
  unsubscribe: "unsubscribed",
  manual: "an address not to write to",
};

function suppressionReason(address: string, { reason, source, created_at, scope_type }: Entry): Reason {
  const since = created_at.slice(0, 10);
  const causes: Record<string, string> = {
    hard_bounce: `its server said on ${since} that the address does not exist`,
    complaint: `its owner marked a mail as spam on ${since}`,
    unsubscribe: `its owner unsubscribed on ${since}`,
  };
  const imported = source.startsWith("import:") ? `it was imported on ${since} as ${IMPORTED[reason] ?? reason}` : null;
  const scope = scope_type === "org" ? "" : ` (for one ${scope_type} only)`;
  return {
    recipient: address,
    state: "suppressed",
    cause: `${address} is on the suppression list${scope}: ${imported ?? causes[reason] ?? `it was added on ${since} (${reason}, ${source})`}.`,
    next:
      reason === "complaint" || reason === "unsubscribe"
        ? "Leave it there, unless its owner asks for mail again."
        : `If the address works again: postern suppressions remove ${address} --yes`,
  };
}

async function explainDomain(session: Session, name: string): Promise<void> {
  const client = session.client();
  const domain = await client.domains.get(name).catch((error: unknown) => {
    if (error instanceof NotFoundError)
      throw new CliError(
        `'${name}' is neither an id, an address, nor a domain of yours. Next: postern emails list`,
        STATUS.not_found,
      );
    throw error;
  });
  const { records } = await client.domains.dns(domain.id);
  const reasons: Reason[] = [];
  const lacking = records.filter(({ required, status }) => required && status !== "ok");
  const names = lacking.map(({ purpose, status }) => `${purpose} ${status}`).join(", ");
  if (!domain.active)
    reasons.push(
      aboutDomain(
        "inactive",
        "The domain is switched off: it neither sends nor receives.",
        `postern domains update ${domain.domain} --active true`,
      ),
    );
  if (domain.status === "degraded")
    reasons.push(
      aboutDomain(
        "degraded",
        `A record of the domain is gone (${names || "it may be back by now"}); it sends for 72 hours more.`,
        `Publish it again, then: postern domains verify ${domain.domain}`,
      ),
    );
  else if (domain.status !== "verified")
    reasons.push(
      aboutDomain(
        domain.status,
        `The domain is not verified (${names || "not checked yet"}), so nothing may be sent from it.`,
        `postern domains dns ${domain.domain}, then: postern domains verify ${domain.domain}`,
      ),
    );
  if (domain.type === "outbound" || domain.type === "both")
    reasons.push(
      ...(await limitsOf(session, domain.id, domain.domain)),
      ...(await poolReasons(session, domain.ip_pool)),
    );
  if (reasons.length === 0)
    reasons.push(
      aboutDomain(
        "ready",
        `${domain.domain} is verified, and no limit holds its mail.`,
        "Look at one mail: postern why <id>",
      ),
    );
  show(session, { domain: domain.domain, reasons });
}

function aboutDomain(state: string, cause: string, next: string): Reason {
  return { recipient: null, state, cause, next };
}

/** New addresses send no more than some a day; what is over waits, and each mail says so in its timeline. */
async function poolReasons(session: Session, name: string | null): Promise<Reason[]> {
  if (name === null) return [];
  const { ips } = await session.client().ipPools.get(name);
  const isUsedUp = ips.every(({ warmup }) => warmup !== null && warmup.used_today >= warmup.daily_limit);
  if (!isUsedUp) return [];
  const most = ips.reduce((sum, { warmup }) => sum + (warmup?.daily_limit ?? 0), 0);
  return [
    aboutDomain(
      "pool warming",
      `The addresses of its pool ${name} are new, and have made the ${most} attempts that they may make today.`,
      `What waits goes on after midnight (UTC). An address that is warm already has warmup set to false: postern ip-pools update ${name}`,
    ),
  ];
}

async function limitsOf(session: Session, id: string, name: string): Promise<Reason[]> {
  const client = session.client();
  const [warming, usage] = await Promise.all([client.warming.get(id), client.usage.get()]);
  const reasons: Reason[] = [];
  const remedy = `If mailbox providers know the domain already: postern warming start ${name} --phase warmed`;
  if (warming.paused)
    reasons.push(
      aboutDomain(
        "warming paused",
        `Sending is paused: ${warming.paused_reason ?? "too many bounces or complaints"}.`,
        `Find out why, then: postern warming resume ${name}`,
      ),
    );
  else if (warming.remaining_this_hour === 0 || warming.remaining_today === 0) {
    const window = warming.remaining_today === 0 ? "day" : "hour";
    reasons.push(
      aboutDomain(
        "warming",
        `The domain is young (${warming.phase}) and has used what it may send this ${window}.`,
        remedy,
      ),
    );
  } else if (warming.held_reason) reasons.push(aboutDomain("warming", `${warming.held_reason}.`, remedy));
  if (usage.quota_used >= usage.quota_limit) {
    reasons.push(
      aboutDomain(
        "quota",
        `The month's quota is used up: ${usage.quota_used} of ${usage.quota_limit} recipients.`,
        `Wait until ${usage.period_ends_at.slice(0, 10)}, or ask for a larger plan.`,
      ),
    );
  }
  return reasons;
}

/** One reason for each recipient. */
function reasonsOf(email: Email, events: readonly EmailEvent[]): Reason[] {
  if (email.status === "simulated")
    return [
      aboutDomain(
        "simulated",
        "It was sent with a test key: it was checked, and never leaves.",
        "Send it with a live key.",
      ),
    ];
  if (email.status === "scheduled")
    return [
      aboutDomain(
        "scheduled",
        `It waits for ${email.scheduled_at}, as its sender asked.`,
        `postern emails cancel ${email.id} stops it.`,
      ),
    ];
  return email.recipients.map((recipient) => {
    const own = events.filter((event) => event.recipient === recipient.email || event.recipient === null);
    return { recipient: recipient.email, state: recipient.status, ...explain(email, recipient, own.at(-1)) };
  });
}

function explain(email: Email, recipient: Recipient, last: EmailEvent | undefined): Pick<Reason, "cause" | "next"> {
  const said = recipient.diag_message ?? last?.message ?? null;
  const words = said === null ? "" : ` The answer was: ${said}`;
  const retry = `postern emails retry ${email.id}`;
  switch (recipient.status) {
    case "delivered":
      return {
        cause: `The recipient's server took it${recipient.delivered_at ? ` on ${recipient.delivered_at}` : ""}.`,
        next: "If it is not in the inbox, it is in the spam folder or a rule moved it.",
      };
    case "complained":
      return {
        cause: "It arrived, and the recipient marked it as spam.",
        next: "Send this person nothing more.",
      };
    case "suppressed":
      return {
        cause: "The address is on your suppression list, so nothing was sent.",
        next: `postern why ${recipient.email}`,
      };
    case "canceled":
      return { cause: "It was canceled before it left.", next: "Send it again if that was not meant." };
    case "expired":
      return {
        cause: `It could not be delivered in time.${words}`,
        next: `Mend what the answer names, then: ${retry}`,
      };
    case "queued":
      return {
        cause: `It waits for its turn.${words}`,
        next:
          last?.event_type === "queued"
            ? `If it waits for long: postern why ${domainOf(email)}`
            : `Look again in a minute.`,
      };
    case "deferred":
      if (recipient.attempts === 0) return heldBack(recipient, said, domainOf(email));
      return {
        cause: `${temporary(recipient, said)}${words}`,
        next: recipient.next_attempt_at
          ? `Nothing to do: the next try is at ${recipient.next_attempt_at}.`
          : "Nothing to do: it is tried again.",
      };
    default:
      return { cause: `${permanent(recipient, said)}${words}`, next: remedyOf(recipient, said, retry) };
  }
}

function domainOf({ from }: Email): string {
  return from.replace(/>.*$/, "").split("@").at(-1) ?? "";
}

/** No server was asked yet: the limits of a young domain, a pause, or a domain that is switched off hold it. */
function heldBack({ next_attempt_at }: Recipient, said: string | null, domain: string): Pick<Reason, "cause" | "next"> {
  const again = next_attempt_at === null ? "It is looked at again" : `It is looked at again at ${next_attempt_at}`;
  return {
    cause: `It has not left yet${said === null ? "." : `: ${said.replace(/\.$/, "")}.`}`,
    next: `${again}; what holds the domain's mail: postern why ${domain}`,
  };
}

function temporary({ bounce_code, attempts }: Recipient, said: string | null): string {
  const tries = `after ${attempts} ${attempts === 1 ? "try" : "tries"}`;
  if (/TLS|certificate|DANE|MTA-STS/i.test(said ?? ""))
    return `No connection on the terms for TLS that its sender or the domain demands, ${tries}.`;
  if (NO_SERVER.test(said ?? ""))
    return `The recipient's domain has no mail server, ${tries}; it is asked again for a while.`;
  return bounce_code
    ? `The recipient's server said "later" (${bounce_code}), ${tries}.`
    : `No server of the recipient's domain could be reached, ${tries}.`;
}

const NO_SERVER = /no MX|no mail server|NXDOMAIN|does not exist.*domain|domain.*does not exist|no address/i;

/** In the order in which they are looked for: what the mail's own answer says goes before the class. */
const CAUSES: [RegExp, string, string][] = [
  [
    /null MX|does not accept mail|MX 0 \./i,
    "The recipient's domain says that it takes no mail at all (null MX).",
    "Correct the address.",
  ],
  [NO_SERVER, "The recipient's domain has no mail server.", "Correct the address: it is often a slip of the keyboard."],
  [
    /TLS|certificate|DANE|MTA-STS/i,
    "The recipient's domain demands a secure connection, and its server does not offer one that can be trusted.",
    "Tell the recipient's postmaster, or ask for less with the domain's tls_policy.",
  ],
];
const CLASSES: Record<string, [string, string]> = {
  invalid_recipient: ["The recipient's server says that the address does not exist.", "Correct the address."],
  mailbox_full: ["The recipient's mailbox is full.", "Try again in some days."],
  spam: [
    "The recipient's server took the mail for spam.",
    "Look at SPF, DKIM and DMARC (postern dmarc summary) and at the content.",
  ],
  policy: ["The recipient's server refuses the mail by a rule of its own.", "Read its answer; it often names a page."],
};

function known(recipient: Recipient, said: string | null): [string, string] | null {
  const cause = CAUSES.find(([pattern]) => pattern.test(said ?? ""));
  if (cause) return [cause[1], cause[2]];
  return CLASSES[recipient.bounce_class ?? ""] ?? null;
}

function permanent(recipient: Recipient, said: string | null): string {
  const found = known(recipient, said);
  if (found) return found[0];
  return recipient.bounce_code
    ? `The recipient's server refused it for good (${recipient.bounce_code}).`
    : "It could not be delivered.";
}

function remedyOf(recipient: Recipient, said: string | null, retry: string): string {
  return known(recipient, said)?.[1] ?? `Mend what the answer names, then: ${retry}`;
}

function headOf({ id, subject, status, from, created_at }: Email) {
  return { id, subject, status, from, created_at };
}

type Shown = { reasons: Reason[]; email?: ReturnType<typeof headOf>; address?: string; domain?: string };

function show({ out }: Session, shown: Shown): void {
  if (out.isJson) return void out.data(shown);
  const { email, reasons } = shown;
  if (email)
    out.line(
      `${out.paint("bold", printable(email.subject || "(no subject)"))}  ${out.paint("dim", `${email.id}, ${email.created_at.slice(0, 19)}Z`)}`,
    );
  for (const { recipient, state, cause, next } of reasons) {
    const style = /delivered|ready/.test(state)
      ? "green"
      : /deferred|queued|scheduled|warming/.test(state)
        ? "yellow"
        : "red";
    out.line(
      `\n${out.paint(style, state)}${recipient ? `  ${printable(recipient)}` : ""}\n  ${printable(cause)}\n  ${out.paint("bold", "Next:")} ${printable(next)}`,
    );
  }
}
