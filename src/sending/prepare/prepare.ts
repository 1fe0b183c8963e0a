// From the body of a send request to everything its e-mail puts into the database: sender domain → template → recipients →
// message; then what all mail has in common (assemble.ts).
import { requireLiveSending } from "../../accounts/accounts.ts";
import type { Account } from "../../http/http.ts";
import { stripHtml } from "../../mail/mime/strip-html.ts";
import { buildMessage } from "../../mail/mime/write/build-message.ts";
import { uuidTime } from "../../platform/random.ts";
import { invalid } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { MESSAGE_BYTES_MAX } from "../shape.ts";
import type { HoldBytes, Prepared, Preparing, Rendered, Sender, SendingDeps, SendRequest } from "../types.ts";
import { assemble } from "./assemble.ts";
import * as content from "./content.ts";
import { type Asked, beginLookUps, type LookUps } from "./look-ups.ts";
import { readySender } from "./sender.ts";

type Given = {
  account: Account;
  request: SendRequest;
  hold: HoldBytes;
  /** Fails where the request was answered before: nothing is composed or written then. */
  isNew?: Promise<void> | undefined;
};

/** Validates the request in the contract's order and builds the message; throws the Refusal to answer with. */
export async function prepare(context: Preparing, { account, request, hold, isNew }: Given): Promise<Prepared> {
  const { world, deps, inTurn } = context;
  requireLiveSending(account);
  checkBodySource(request);
  // One moment for both, so that a filter by time, which is one by id, agrees with what is shown.
  const id = world.random.uuid();
  const now_ms = uuidTime(id);
  const parts = readParts(request, now_ms);
  const guess = lookAhead(context, account, { request, parts, now_ms });
  const sender = await findDomain(context, account, parts.from.address.domain);
  await isNew;
  const rendered = await renderTemplate(deps, account, request);
  if (rendered) hold(bytesOf(rendered));
  const recipients = guess?.recipients ?? content.readRecipients(request);
  const labels = labelsOf(request);
  const template = rendered ? { id: rendered.template_id, version: rendered.version } : null;
  const asked = { domain_id: sender.id, now_ms, recipients, template, ...labels, ...parts.times };
  const lookUps = guess?.domain_id === sender.id ? guess : beginLookUps(context, account, asked);
  const composition = { request, parts, rendered, recipients, id, now_ms, domain: sender.domain };
  const mime = await inTurn(account.org_id, () => compose(world, composition));
  const draft = {
    ...{ id, now_ms, sender, recipients, mime, template, ...labels, ...parts.times },
    origin: "api" as const,
    rfc_message_id: `${id}@${sender.domain}`,
    from_address: parts.from.address.email,
    from_header: request.from,
    reply_to: parts.reply_to.map(({ email }) => email),
    subject: rendered ? rendered.subject : (request.subject ?? ""),
    metadata: (request.metadata ?? {}) as Record<string, unknown>,
    require_tls: request.require_tls === true,
    ip_pool: request.ip_pool ?? null,
  };
  return assemble(context, account, draft, lookUps);
}

function labelsOf({ tags, unsubscribe }: SendRequest): Pick<Asked, "tags" | "unsubscribe"> {
  return { tags: tags ?? [], unsubscribe: unsubscribe ? { list: unsubscribe.list ?? "" } : null };
}

type Parts = ReturnType<typeof readParts>;

type Guess = LookUps & { recipients: content.Recipient[] };

/** Begins the look-ups under the id that the domain had before. Null where that or the template is not known yet. */
function lookAhead(
  context: Preparing,
  account: Account,
  { request, parts, now_ms }: { request: SendRequest; parts: Parts; now_ms: number },
): Guess | null {
  const domain_id = context.domains.get(nameOf(account, parts.from.address.domain));
  if (domain_id === undefined || request.template !== undefined || request.template_id !== undefined) return null;
  const recipients = soundRecipients(request);
  if (recipients === null) return null;
  const asked = { domain_id, now_ms, recipients, template: null, ...labelsOf(request), ...parts.times };
  return { ...beginLookUps(context, account, asked), recipients };
}

/** Null: they are refused in their turn, after the sender is. */
function soundRecipients(request: SendRequest): content.Recipient[] | null {
  try {
    return content.readRecipients(request);
  } catch {
    return null;
  }
}

async function findDomain({ deps, domains }: Preparing, account: Account, name: string): Promise<Sender> {
  const sender = await readySender(deps, account.org_id, name);
  domains.set(nameOf(account, name), sender.id);
  return sender;
}

function nameOf({ org_id }: Account, domain: string): string {
  return `${org_id}/${domain}`;
}

/** Everything that is decided by the request alone. */
function readParts(request: SendRequest, nowMs: number) {
  content.checkLabels(request);
  if (request.subject !== undefined) content.checkSubject(request.subject);
  return {
    from: content.readFrom(request.from),
    reply_to: content.readReplyTo(request),
    headers: [...content.readHeaders(request), ...content.readUnsubscribe(request)],
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

async function renderTemplate(deps: SendingDeps, account: Account, request: SendRequest): Promise<Rendered | null> {
  const { template, template_id, variables } = request;
  if (template === undefined && template_id === undefined) return null;
  return deps.render(account.org_id, {
    ...(template === undefined ? {} : { template }),
    ...(template_id === undefined ? {} : { template_id }),
    variables: (variables ?? {}) as Record<string, unknown>,
  });
}

function bytesOf({ subject, html_body, text_body }: Rendered): number {
  return Buffer.byteLength(`${subject}${html_body ?? ""}${text_body ?? ""}`);
}

type Composition = {
  request: SendRequest;
  parts: Parts;
  rendered: Rendered | null;
  recipients: content.Recipient[];
  id: string;
  now_ms: number;
  domain: string;
};

/** The finished bytes, without signature. 400 `payload_too_large` above 25 MiB. */
function compose(world: World, { request, parts, rendered, recipients, id, now_ms, domain }: Composition): Buffer {
  const html = rendered ? rendered.html_body : (request.html_body ?? null);
  const given = rendered ? rendered.text_body : (request.text_body ?? null);
  const text = given ?? (html !== null && request.auto_text !== false ? stripHtml(html) : null);
  const { bytes } = buildMessage({
    from: parts.from.mailbox,
    to: recipients.filter(({ kind }) => kind === "to"),
    cc: recipients.filter(({ kind }) => kind === "cc"),
    reply_to: parts.reply_to,
    subject: rendered ? content.checkSubject(rendered.subject) : (request.subject ?? ""),
    // A mail that lay here for a week is not a week old for its reader.
    date: parts.times.scheduled_at?.getTime() ?? now_ms,
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
