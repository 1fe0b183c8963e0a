// POST /v1/send from shape to 202: sender domain → template → recipients → suppressions → quota and warming → message →
// one durable statement. Face of the feature; the API, batches and SMTP submission all come through `prepare` and
// `accept`, so the same rules hold everywhere.
import { createHash } from "node:crypto";
import { requireLiveSending } from "../accounts/accounts.ts";
import { buildMessage } from "../mail/mime/build-message.ts";
import { stripHtml } from "../mail/mime/strip-html.ts";
import {
  CLASS_TRANSACTIONAL,
  DEFAULT_SOURCE_ID,
  type FindLane,
  type MessageAbout,
  type Outbound,
} from "../outbound/outbound.ts";
import type { Account } from "../platform/http.ts";
import { invalid, Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { type Accepted, type Acceptor, createAcceptor, type IdempotencyRow } from "./accept.ts";
import { monthlyQuota, overAllowance, type UsedReader, usedReader } from "./allowances.ts";
import * as content from "./content.ts";
import { type Fit, fit } from "./fit.ts";
import { MESSAGE_BYTES_MAX } from "./shape.ts";
import type { Allowance, Prepared, PreparedRecipient, SendAnswer, SendRequest, Suppressed } from "./types.ts";

export {
  enqueueRaw,
  findHead,
  findMessageOwner,
  findSentByMessageId,
  isBlobOfMessage,
  type SentMatch,
} from "./raw.ts";

export type Rendered = {
  template_id: string;
  version: number;
  subject: string;
  html_body: string | null;
  text_body: string | null;
};

export type Sender = {
  id: string;
  domain: string;
  ready: boolean;
  not_ready_reason: string | null;
  return_path_host: string;
  tls_policy: "opportunistic" | "require";
  ip_pool: string | null;
};

export type FindSender = (orgId: string, domain: string) => Promise<Sender | undefined>;

/** What other features lend to sending, wired in app.ts. */
export type SendingDeps = {
  findSender: FindSender;
  render(
    orgId: string,
    request: { template?: string; template_id?: string; variables: Record<string, unknown> },
  ): Promise<Rendered>;
  findSuppressed(
    orgId: string,
    about: { emails: string[]; domain_id: string; template_id: string | null; list: string | null },
  ): Promise<Map<string, { reason: string }>>;
  /** Counts recipients of mail that is refused because all of them are suppressed. */
  countSuppressed(count: { org_id: string; domain_id: string; at: Date; recipients: number }): Promise<void>;
  /** The windows that a domain's warming sets; none once it is warm. */
  warmingAllowances(orgId: string, domainId: string, nowMs: number): Promise<Allowance[]>;
  findLane: FindLane;
  outbound: () => Outbound | null;
  notify: () => void;
};

export type Sending = {
  prepare(account: Account, request: SendRequest, options?: { origin?: string }): Promise<Prepared>;
  /** Which of the items of one call still fit into their windows, in order. */
  fit(items: readonly Prepared[]): Promise<Fit>;
  /** Commits the items of one call together; `over_allowance` means that others took the rest of a window. */
  commit(items: Prepared[], idempotency: IdempotencyRow | null): Promise<Accepted>;
  /** Commits the items of one call together; a refusal means that nothing was written. */
  accept(items: Prepared[], idempotency: IdempotencyRow | null): Promise<"accepted" | "duplicate_key">;
  answerOf(prepared: Prepared): SendAnswer;
};

type Context = { world: World; deps: SendingDeps; acceptor: Acceptor; used: UsedReader };

/** The sending pipeline of this process. */
export function createSending(world: World, deps: SendingDeps): Sending {
  const context: Context = {
    world,
    deps,
    acceptor: createAcceptor(world, deps.outbound, deps.notify),
    used: usedReader(world),
  };
  return {
    prepare: (account, request, options = {}) => prepare(context, account, request, options.origin ?? "api"),
    fit: (items) => fit(context.used, items),
    commit: (items, idempotency) => commit(context, items, idempotency),
    accept: (items, idempotency) => accept(context, items, idempotency),
    answerOf,
  };
}

async function prepare(context: Context, account: Account, request: SendRequest, origin: string): Promise<Prepared> {
  const { world, deps } = context;
  requireLiveSending(account);
  checkBodySource(request);
  const nowMs = world.clock.now();
  const parts = readParts(request, nowMs);
  const { from, times } = parts;
  const sender = await readySender(deps, account.org_id, from.address.domain);
  const rendered = await renderTemplate(deps, account, request);
  const recipients = content.readRecipients(request);
  const id = world.random.uuid();
  const built = compose(world, { request, parts, rendered, recipients, id, nowMs, domain: sender.domain });
  const blocked = await suppressedAmong(deps, account, { recipients, sender, rendered, nowMs });
  const about = describe(account, request, { from, sender, built, rendered, recipients, id });
  if (built.length > world.config.body_inline_bytes_max) about.blob_key = await world.blobs.put(built);
  const windows = await openAllowances(context, account, sender, recipients.length - blocked.length, nowMs);
  return {
    org_id: account.org_id,
    id,
    environment: account.environment,
    api_key_id: account.key_id || null,
    from_header: request.from,
    reply_to: parts.reply_to.map(({ email }) => email),
    template_id: rendered?.template_id ?? null,
    template_version: rendered?.version ?? null,
    message_class: CLASS_TRANSACTIONAL,
    status: account.environment === "test" ? "simulated" : times.scheduled_at ? "scheduled" : "queued",
    ip_pool: null,
    unsubscribe_list: null,
    origin,
    created_at: new Date(nowMs),
    ...times,
    return_path_host: sender.return_path_host,
    about,
    mime: built,
    recipients: await placeRecipients(deps, account, recipients, blocked, times.scheduled_at !== null),
    suppressed: blocked,
    ...windows,
  } as Prepared;
}

/** Everything that is decided by the request alone. */
function readParts(request: SendRequest, nowMs: number) {
  content.checkLabels(request);
  if (request.subject !== undefined) content.checkSubject(request.subject);
  return {
    from: content.readFrom(request.from),
    reply_to: content.readReplyTo(request),
    headers: content.readHeaders(request),
    attachments: content.readAttachments(request),
    times: content.readTimes(request, nowMs),
  };
}

function checkBodySource(request: SendRequest): void {
  const byTemplate = request.template !== undefined || request.template_id !== undefined;
  if (request.template !== undefined && request.template_id !== undefined) {
    throw invalid("template_id", "give either 'template' or 'template_id', not both");
  }
  for (const field of ["subject", "html_body", "text_body"] as const) {
    if (byTemplate && request[field] !== undefined) {
      throw invalid(field, `the '${field}' field cannot stand beside a template`);
    }
  }
  if (byTemplate) return;
  if (request.variables !== undefined) throw invalid("variables", "the 'variables' field needs a template");
  if (request.subject === undefined) throw invalid("subject", "the 'subject' field is required");
  if (request.html_body === undefined && request.text_body === undefined) {
    throw invalid("html_body", "the 'html_body' field is required (or 'text_body', or a template)");
  }
}

/** The sender's domain if it may send now; 403 `domain_not_owned` or `domain_not_ready` naming `from`. */
export async function readySender(
  deps: Pick<SendingDeps, "findSender">,
  orgId: string,
  domain: string,
): Promise<Sender> {
  const sender = await deps.findSender(orgId, domain);
  if (!sender) {
    throw new Refusal("domain_not_owned", `the sender's domain ${domain} is not one of your domains`, {
      field: "from",
    });
  }
  if (!sender.ready) {
    const why = sender.not_ready_reason ?? "it is not verified";
    throw new Refusal("domain_not_ready", `the sender's domain ${domain} cannot send yet: ${why}`, { field: "from" });
  }
  return sender;
}

async function renderTemplate(deps: SendingDeps, account: Account, request: SendRequest): Promise<Rendered | null> {
  const { template, template_id, variables } = request;
  if (template === undefined && template_id === undefined) return null;
  return deps.render(account.org_id, {
    ...(template === undefined ? {} : { template }),
    ...(template_id === undefined ? {} : { template_id }),
    variables: (variables ?? {}) as Record<string, unknown>,
  });
}

type Composition = {
  request: SendRequest;
  parts: ReturnType<typeof readParts>;
  rendered: Rendered | null;
  recipients: content.Recipient[];
  id: string;
  nowMs: number;
  domain: string;
};

/** The finished bytes, without signature. 400 `payload_too_large` above 25 MiB. */
function compose(world: World, { request, parts, rendered, recipients, id, nowMs, domain }: Composition): Buffer {
  const html = rendered ? rendered.html_body : (request.html_body ?? null);
  const given = rendered ? rendered.text_body : (request.text_body ?? null);
  const text = given ?? (html !== null && request.auto_text !== false ? stripHtml(html) : null);
  const { bytes } = buildMessage({
    from: parts.from.mailbox,
    to: recipients.filter(({ kind }) => kind === "to"),
    cc: recipients.filter(({ kind }) => kind === "cc"),
    reply_to: parts.reply_to,
    subject: rendered ? content.checkSubject(rendered.subject) : (request.subject ?? ""),
    date: nowMs,
    message_id: `${id}@${domain}`,
    headers: parts.headers,
    html,
    text,
    attachments: parts.attachments,
    boundary_seed: world.random.token(24),
  });
  if (bytes.length > MESSAGE_BYTES_MAX) throw content.tooLarge();
  return bytes;
}

async function suppressedAmong(
  deps: SendingDeps,
  account: Account,
  { recipients, sender, rendered, nowMs }: Pick<Composition, "recipients" | "rendered" | "nowMs"> & { sender: Sender },
): Promise<Suppressed[]> {
  const found = await deps.findSuppressed(account.org_id, {
    emails: recipients.map(({ email }) => email.toLowerCase()),
    domain_id: sender.id,
    template_id: rendered?.template_id ?? null,
    list: null,
  });
  const blocked = recipients.flatMap(({ email }) => {
    const entry = found.get(email.toLowerCase());
    return entry ? [{ email, reason: entry.reason }] : [];
  });
  if (blocked.length === recipients.length) {
    const count = { org_id: account.org_id, domain_id: sender.id, at: new Date(nowMs), recipients: blocked.length };
    if (account.environment === "live") await deps.countSuppressed(count);
    throw new Refusal("all_recipients_suppressed", "all recipients are suppressed; nothing was sent", {
      body: { suppressed: blocked },
    });
  }
  return blocked;
}

type Described = {
  from: { address: { email: string } };
  sender: Sender;
  built: Buffer;
  rendered: Rendered | null;
  recipients: content.Recipient[];
  id: string;
};

function describe(account: Account, request: SendRequest, described: Described): MessageAbout {
  const { from, sender, built, rendered, recipients, id } = described;
  return {
    domain_id: sender.id,
    rfc_message_id: `${id}@${sender.domain}`,
    from_address: from.address.email,
    subject: rendered ? rendered.subject : (request.subject ?? ""),
    tags: request.tags ?? [],
    metadata: (request.metadata ?? {}) as Record<string, unknown>,
    size: built.length,
    recipient_count: recipients.length,
    require_tls: request.require_tls === true || sender.tls_policy === "require",
    has_expiry: request.expires_at !== undefined,
    environment: account.environment,
    blob_key: null,
  };
}

async function placeRecipients(
  deps: SendingDeps,
  account: Account,
  recipients: content.Recipient[],
  blocked: Suppressed[],
  isScheduled: boolean,
): Promise<PreparedRecipient[]> {
  const suppressed = new Set(blocked.map(({ email }) => email));
  return Promise.all(
    recipients.map(async ({ email, kind, domain }, position) => {
      if (suppressed.has(email)) return { position, email, kind, status: "suppressed" as const, lane: null };
      if (account.environment === "test") return { position, email, kind, status: "simulated" as const, lane: null };
      const lane = await deps.findLane({
        org_id: account.org_id,
        source_id: DEFAULT_SOURCE_ID,
        domain,
        class: CLASS_TRANSACTIONAL,
      });
      return { position, email, kind, status: isScheduled ? ("scheduled" as const) : ("queued" as const), lane };
    }),
  );
}

/** The windows this e-mail counts in, refused early when one is full. Test keys count nowhere. */
async function openAllowances(
  context: Context,
  account: Account,
  sender: Sender,
  count: number,
  nowMs: number,
): Promise<{ allowances: Allowance[]; quota_used: number }> {
  if (account.environment === "test") return { allowances: [], quota_used: 0 };
  const warming = await context.deps.warmingAllowances(account.org_id, sender.id, nowMs);
  const allowances = [...warming, monthlyQuota(account, nowMs)];
  const used = await Promise.all(allowances.map((allowance) => context.used(account.org_id, allowance)));
  for (const [index, allowance] of allowances.entries()) {
    const already = used[index] as number;
    if (already + count > allowance.ceiling) throw overAllowance(allowance, already, count);
  }
  return { allowances, quota_used: (used.at(-1) as number) + count };
}

async function commit(context: Context, items: Prepared[], idempotency: IdempotencyRow | null): Promise<Accepted> {
  if (context.acceptor.isFull()) {
    throw new Refusal("unavailable", "too many requests are waiting to be stored; try again shortly");
  }
  return context.acceptor.accept({ items, idempotency });
}

async function accept(context: Context, items: Prepared[], idempotency: IdempotencyRow | null) {
  const result = await commit(context, items, idempotency);
  if (result !== "over_allowance") return result;
  // Another process or a neighbour in the batch took the rest: say which window it was.
  const { refusals } = await fit(context.used, items);
  const exceeded = refusals.find((refusal) => refusal !== null);
  throw exceeded ?? new Refusal("unavailable", "a sending limit was reached at this moment; try again shortly");
}

function answerOf(prepared: Prepared): SendAnswer {
  const quota = prepared.allowances.find(({ kind }) => kind === "monthly_quota");
  return {
    id: prepared.id,
    message_id: prepared.about.rfc_message_id,
    status: prepared.status,
    environment: prepared.environment,
    suppressed: prepared.suppressed,
    quota_limit: quota?.ceiling ?? 0,
    quota_used: quota ? prepared.quota_used : 0,
    quota_remaining: quota ? Math.max(0, quota.ceiling - prepared.quota_used) : 0,
  };
}

/** What an Idempotency-Key remembers of the request. */
export function requestHash(body: Buffer): Buffer {
  return createHash("sha256").update(body).digest();
}
