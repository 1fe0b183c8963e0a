// A transport for Nodemailer: `nodemailer.createTransport(posternTransport())`, and an application that sends with Nodemailer
// sends with Postern. Not here: messages that are given whole (`raw`); they go to Postern's SMTP submission.
import { PosternError } from "./errors.ts";
import type { SendAnswer, SendAttachment, SendRequest } from "./generated/models.ts";
import { Postern } from "./postern.ts";
import { type ClientOptions, VERSION } from "./transport.ts";

/** What a message may carry beside Nodemailer's own fields: `sendMail({ …, postern: { tags: ["receipt"] } })`. */
export type PosternFields = Partial<
  Pick<
    SendRequest,
    | "auto_text"
    | "expires_at"
    | "ip_pool"
    | "metadata"
    | "require_tls"
    | "scheduled_at"
    | "tags"
    | "template"
    | "template_id"
    | "unsubscribe"
    | "variables"
  >
> & { idempotencyKey?: string };

/** What `sendMail` resolves with. `rejected` are the recipients that are suppressed. */
export type SentInfo = {
  envelope: { from: string | false; to: string[] };
  /** In angle brackets, as other transports give it. */
  messageId: string;
  accepted: string[];
  rejected: string[];
  response: string;
} & Pick<SendAnswer, "id" | "status" | "environment" | "suppressed">;

/** Nodemailer's MailMessage, as far as it is read here. */
type Mail = { data: object; normalize(done: (error: Error | null, data: object) => void): void };

export type NodemailerTransport = {
  name: string;
  version: string;
  send(mail: Mail, done: (error: Error | null, info: SentInfo) => void): void;
};

type Address = { name?: string; address: string };
type Content = { content?: string; encoding?: string };
type File = Content & {
  filename?: string | false;
  contentType?: string;
  cid?: string;
  contentDisposition?: string;
};
type Normalized = {
  envelope: { from: string | false; to: string[] };
  from?: Address;
  to?: Address[];
  cc?: Address[];
  bcc?: Address[];
  replyTo?: Address[];
  subject?: string;
  text?: string;
  html?: string;
  attachments?: File[];
  icalEvent?: Content & { method?: string; filename?: string };
  headers?: unknown;
  normalizedHeaders?: { [name: string]: string };
  priority?: string;
  xMailer?: string | false;
  postern?: PosternFields;
  signal?: AbortSignal;
  [name: string]: unknown;
};

/** Takes a client, a key or a client's settings; without them `POSTERN_API_KEY` and `POSTERN_BASE_URL` count. */
export function posternTransport(given: Postern | string | ClientOptions = {}): NodemailerTransport {
  const client = given instanceof Postern ? given : new Postern(given);
  return {
    name: "postern",
    version: VERSION,
    send(mail, done) {
      sendMail(client, mail).then(
        (info) => done(null, info),
        (error) => done(error, undefined as never),
      );
    },
  };
}

async function sendMail(client: Postern, mail: Mail): Promise<SentInfo> {
  const data = await new Promise<Normalized>((take, fail) => {
    mail.normalize((error, normalized) => (error ? fail(error) : take(normalized as Normalized)));
  });
  const { idempotencyKey, ...fields } = data.postern ?? {};
  const sent = await client.emails.send({ ...requestOf(data), ...fields } as SendRequest, {
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(data.signal ? { signal: data.signal } : {}),
  });
  const left = new Set(sent.suppressed.map(({ email }) => email.toLowerCase()));
  return {
    envelope: data.envelope,
    messageId: `<${sent.message_id}>`,
    accepted: data.envelope.to.filter((address) => !left.has(address.toLowerCase())),
    rejected: data.envelope.to.filter((address) => left.has(address.toLowerCase())),
    response: `${sent.status} ${sent.id}`,
    id: sent.id,
    status: sent.status,
    environment: sent.environment,
    suppressed: sent.suppressed,
  };
}

function requestOf(data: Normalized): Partial<SendRequest> {
  for (const name of ["raw", "alternatives", "amp", "watchHtml"]) {
    if (data[name] && [data[name]].flat().length > 0) {
      throw new PosternError(`Postern's API takes no '${name}'; use html, text and attachments, or SMTP submission`);
    }
  }
  const headers = headersOf(data);
  const attachments = [...(data.attachments ?? []).map(attachmentOf), ...calendarOf(data)];
  return {
    from: data.from ? textOf(data.from) : "",
    ...recipientsOf(data),
    ...(data.replyTo?.length ? { reply_to: data.replyTo.map(textOf) } : {}),
    ...(data.subject === undefined ? {} : { subject: data.subject }),
    ...(data.html === undefined ? {} : { html_body: data.html }),
    ...(data.text === undefined ? {} : { text_body: data.text }),
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
    ...(attachments.length > 0 ? { attachments } : {}),
  };
}

/** Who gets it is the envelope's word; the header fields say how they are shown. */
function recipientsOf(data: Normalized): Pick<SendRequest, "to" | "cc" | "bcc"> {
  const wanted = new Map(data.envelope.to.map((address) => [address.toLowerCase(), address]));
  const take = (list: Address[] | undefined): string[] =>
    (list ?? []).filter(({ address }) => wanted.delete(address.toLowerCase())).map(textOf);
  let [to, cc, bcc] = [take(data.to), take(data.cc), take(data.bcc)];
  bcc = [...bcc, ...wanted.values()];
  if (to.length === 0) [to, cc] = [cc, []];
  if (to.length === 0 && bcc.length === 1) [to, bcc] = [bcc, []];
  if (to.length === 0 && bcc.length > 1) {
    throw new PosternError("Postern needs a recipient in 'to'; send one mail to each who must not see the others");
  }
  return { to, ...(cc.length > 0 ? { cc } : {}), ...(bcc.length > 0 ? { bcc } : {}) };
}

function textOf({ name, address }: Address): string {
  return name ? `"${name.replace(/["\\]/g, "\\$&")}" <${address}>` : address;
}

function attachmentOf(file: File): SendAttachment {
  return {
    filename: file.filename || "attachment",
    content: base64Of(file),
    ...(file.contentType ? { content_type: file.contentType } : {}),
    ...(file.cid ? { content_id: file.cid } : {}),
    ...(file.contentDisposition ? { disposition: file.contentDisposition } : {}),
  };
}

function calendarOf({ icalEvent }: Normalized): SendAttachment[] {
  if (!icalEvent) return [];
  const { method = "PUBLISH", filename = "invite.ics" } = icalEvent;
  return [{ filename, content: base64Of(icalEvent), content_type: `text/calendar; method=${method.toUpperCase()}` }];
}

/** Nodemailer's own `encoding` says how a text is meant. */
function base64Of({ content = "", encoding }: Content): string {
  return encoding === "base64"
    ? content
    : Buffer.from(content, encoding as BufferEncoding | undefined).toString("base64");
}

/** Postern writes Date, Message-ID and the MIME fields itself. */
const OWN = /^(date|message-id|mime-version|content-.*)$/i;
const PRIORITIES: { [word: string]: { [name: string]: string } } = {
  high: { "X-Priority": "1 (Highest)", "X-MSMail-Priority": "High", Importance: "High" },
  low: { "X-Priority": "5 (Lowest)", "X-MSMail-Priority": "Low", Importance: "Low" },
};

/** `headers` is an object of values or lists of values, or a list of { key, value }. */
function headersOf({ headers = {}, normalizedHeaders = {}, priority = "", xMailer }: Normalized): {
  [name: string]: string;
} {
  const given = Array.isArray(headers)
    ? headers.map(({ key, value }) => [key, value] as [string, unknown])
    : Object.entries(headers as object);
  const found: { [name: string]: string } = { ...PRIORITIES[priority.toLowerCase()] };
  if (xMailer) found["X-Mailer"] = xMailer;
  for (const [name, value] of Object.entries(normalizedHeaders)) {
    if (/^(list-.*|references|in-reply-to)$/i.test(name)) found[name] = value;
  }
  for (const [name, value] of given) {
    const values = [value].flat().map((one) => String((one as { value?: unknown } | null)?.value ?? one));
    if (values.length > 1)
      throw new PosternError(`the header '${name}' is given ${values.length} times; once is allowed`);
    const same = Object.keys(found).find((known) => known.toLowerCase() === name.toLowerCase());
    if (same) delete found[same];
    if (!OWN.test(name) && values[0] !== undefined) found[name] = values[0];
  }
  return found;
}
