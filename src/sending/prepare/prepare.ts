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
import type { HoldBytes, Prepared, Preparing, Rendered, SendingDeps, SendRequest } from "../types.ts";
import { assemble } from "./assemble.ts";
import * as content from "./content.ts";
import { readySender } from "./sender.ts";

/** Validates the request in the contract's order and builds the message; throws the Refusal to answer with. */
export async function prepare(
  context: Preparing,
  { account, request, hold }: { account: Account; request: SendRequest; hold: HoldBytes },
): Promise<Prepared> {
  const { world, deps, inTurn } = context;
  requireLiveSending(account);
  checkBodySource(request);
  // One moment for both, so that a filter by time, which is one by id, agrees with what is shown.
  const id = world.random.uuid();
  const now_ms = uuidTime(id);
  const parts = readParts(request, now_ms);
  const sender = await readySender(deps, account.org_id, parts.from.address.domain);
  const rendered = await renderTemplate(deps, account, request);
  if (rendered) hold(bytesOf(rendered));
  const recipients = content.readRecipients(request);
  const composition = { request, parts, rendered, recipients, id, now_ms, domain: sender.domain };
  const mime = await inTurn(account.org_id, () => compose(world, composition));
  return assemble(context, account, {
    id,
    now_ms,
    origin: "api",
    sender,
    rfc_message_id: `${id}@${sender.domain}`,
    from_address: parts.from.address.email,
    from_header: request.from,
    reply_to: parts.reply_to.map(({ email }) => email),
    subject: rendered ? rendered.subject : (request.subject ?? ""),
    recipients,
    mime,
    template: rendered ? { id: rendered.template_id, version: rendered.version } : null,
    tags: request.tags ?? [],
    metadata: (request.metadata ?? {}) as Record<string, unknown>,
    require_tls: request.require_tls === true,
    ip_pool: request.ip_pool ?? null,
    unsubscribe: request.unsubscribe ? { list: request.unsubscribe.list ?? "" } : null,
    ...parts.times,
  });
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
  parts: ReturnType<typeof readParts>;
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
