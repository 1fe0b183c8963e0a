// The head of /openapi.yaml (OpenAPI 3.0.3) and what the routes' own schemas, which make its paths, cannot say: optional
// bodies, headers of the answers, the sense of each status, tags. Not here: the schemas themselves (routes.ts of the
// features).
import type { FastifyDynamicSwaggerOptions } from "@fastify/swagger";
import { describeCleared, describeNulls } from "./body/absent-nulls.ts";
import { type Described, giveExamples, nameSchemas, sayMeanings, shareParts } from "./components.ts";
import examples from "./examples.json" with { type: "json" };
import { describeWebhookCalls, WEBHOOK_CALLS, webhookHeaders } from "./webhook-calls.ts";

/** In the order of the mail's way, which is the order documentation pages show them in. */
const TAGS: Record<string, string> = {
  Sending: "Sending mail and following what becomes of it.",
  Domains: "Sender and receiver domains: ownership, DNS records, their verification.",
  DKIM: "Signing keys of a domain (RFC 6376).",
  Templates: "Stored subjects and bodies with variables.",
  Webhooks: `Where events are posted, and the log of these deliveries. ${WEBHOOK_CALLS}`,
  Suppressions: "Addresses that get no more mail, and imports of such lists.",
  Warming: "Sending limits that grow with a new domain's reputation.",
  Statistics:
    "Figures of a domain: what was sent and what became of it. Counted in recipients, by UTC time of the event. Rates are " +
    "over total_sent, 0 to 1 with four decimals, 0 when nothing was sent. Test sends never count, nor do forwards and masked " +
    "mail.",
  Inbound: "Mail received for your domains.",
  "Domain aliases": "Addresses of your domains and what happens to their mail.",
  "Inbound rules": "Rules that choose what happens to received mail.",
  Spam: "Scoring of received mail.",
  "Masked aliases": "Addresses that hide the real ones behind them.",
  "Masked destinations": "The real mailboxes, which confirm before mail goes to them.",
  "Masked contacts": "Who writes to a masked alias, and the address to answer each at.",
  "Masked people": "What is kept of one person over all masked aliases: to be shown, and to be forgotten.",
  "Address data": "What is stored of one e-mail address: to be shown, and to be erased.",
  "IP pools": "Sending addresses of an organization's own.",
  DMARC: "Aggregate reports about a domain (RFC 7489).",
  "API keys": "Keys that authenticate requests.",
  "Audit log": "Who changed what, when and from where.",
};

const BEARER =
  "An API key: svc_live_… or svc_test_…. A test key changes and deletes only what test keys made, reads no content of live " +
  "mail, and changes no relay and no IP pool: 403 `test_key_not_allowed`. Its webhooks and rules are for test mail.";

/** What holds for all operations is said once: it would be half of the description otherwise. */
const ABOUT =
  "Self-hosted e-mail for products: sending, inbound processing and masked addresses.\n\n" +
  "Every answer has the headers `X-Request-ID` and `Cache-Control` (no-store), and every answer to a key has `RateLimit-Limit`, " +
  "`RateLimit-Remaining` and `RateLimit-Reset`. Ids are UUIDv7, times are RFC 3339 in UTC. Records may get further fields, and " +
  "fields marked `x-open-enum` further values. In a create `null` means absent; in PUT and PATCH it clears. HEAD is answered " +
  "wherever GET is.";

const ANY_ERROR =
  "Any other answer is an error. 400: invalid parameters. 401: no valid API key. 403: not allowed. 404: what the path names " +
  "is not there. 500: an internal error. 503: starting, stopping or shedding load";

const SUCCESS: Record<string, string> = { 200: "OK", 201: "Created", 202: "Accepted" };

const HEADERS = {
  RequestId: { description: "Names this request in logs and questions", schema: { type: "string", format: "uuid" } },
  RetryAfter: { description: "Whole seconds to wait", schema: { type: "integer", minimum: 1 } },
  RateLimit: { description: "The organization's requests per second", schema: { type: "integer" } },
  RateRemaining: {
    description: "About how many more requests are allowed at once",
    schema: { type: "integer", minimum: 0 },
  },
  RateReset: {
    description: "Seconds until that many requests are allowed at once again",
    schema: { type: "integer", minimum: 0 },
  },
  Challenge: { description: "How to authenticate (RFC 6750 §3)", schema: { type: "string" } },
  Replayed: {
    description: "`true`: the Idempotency-Key was used before, and this is the stored answer",
    schema: { type: "string", enum: ["true"] },
  },
};

const DASHBOARD = "/dashboard/";
const REFERENCES: FastifyDynamicSwaggerOptions["refResolver"] = {
  buildLocalReference: (json, _base, _fragment, index) => String(json.$id ?? `schema${index}`),
};

/** The same for /dashboard/api, which is for the dashboard's own pages: sessions instead of keys. */
export function describeDashboard(baseUrl: string): FastifyDynamicSwaggerOptions & { decorator: never } {
  return {
    decorator: "describeDashboard" as never,
    openapi: {
      openapi: "3.0.3",
      info: {
        title: "Postern dashboard",
        version: "1.0.0",
        description:
          "What the dashboard needs beside /v1: people, sessions, the installation. Changes need the header `X-Postern-Dashboard: 1`. " +
          "A signed-in person calls /v1 with the headers `X-Postern-Organization` and `X-Postern-Environment`.",
      },
      servers: [{ url: baseUrl }],
      components: {
        securitySchemes: { session: { type: "apiKey", in: "cookie", name: "__Host-postern" } },
      },
      security: [{ session: [] }],
    },
    refResolver: REFERENCES,
    transformObject: (document) => {
      const copy = JSON.parse(JSON.stringify("openapiObject" in document ? document.openapiObject : {}));
      nameSchemas(copy);
      dropUnused(copy);
      return copy;
    },
  };
}

/** Schemas that only the other description refers to. */
function dropUnused(document: Described): void {
  const { schemas = {} } = document.components ?? {};
  const used = new Set<string>();
  const follow = (node: unknown): void => {
    for (const [, name = ""] of JSON.stringify(node ?? {}).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (used.has(name)) continue;
      used.add(name);
      follow(schemas[name]);
    }
  };
  follow(document.paths);
  for (const name of Object.keys(schemas)) if (!used.has(name)) delete schemas[name];
}

/** Settings of @fastify/swagger; every operation of /v1 needs a bearer key. */
export function describeApi(baseUrl: string): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: "3.0.3",
      info: {
        title: "Postern",
        version: "1.0.0",
        description: ABOUT,
        contact: { name: "The operator of this server" },
        license: { name: "MIT", url: "https://spdx.org/licenses/MIT.html" },
      },
      servers: [{ url: baseUrl }],
      components: {
        securitySchemes: {
          bearer: { type: "http", scheme: "bearer", description: BEARER },
        },
        headers: HEADERS as never,
      },
      security: [{ bearer: [] }],
    },
    refResolver: REFERENCES,
    transform: ({ schema, url }) => ({ schema: url.startsWith(DASHBOARD) ? { ...schema, hide: true } : schema, url }),
    transformObject: (document) => finish("openapiObject" in document ? document.openapiObject : {}) as never,
  };
}

type Media = { schema?: { nullable?: boolean } };
type Answered = { description: string; headers?: Record<string, unknown>; content?: Record<string, Media> };
type Operation = {
  tags?: string[];
  parameters?: { in: string; name: string }[];
  requestBody?: { required?: boolean; content: Record<string, Media> };
  responses: Record<string, Answered>;
};
type Document = {
  paths?: Record<string, Record<string, Operation>>;
  tags?: unknown;
  "x-webhooks"?: object;
  components?: {
    parameters?: object;
    schemas?: Record<string, { properties?: Record<string, Record<string, unknown>> }>;
  };
};

/** A copy without shared parts, which YAML would write as anchors that not every reader knows. */
function finish(described: object): Document {
  const document = JSON.parse(JSON.stringify(described)) as Document;
  const operations = Object.values(document.paths ?? {}).flatMap((methods) => Object.values(methods));
  // OpenAPI 3.0 has no meaning for a body here; that it must be empty if there is one, errors say.
  for (const operation of operations) if (isEmpty(operation.requestBody)) delete operation.requestBody;
  for (const { delete: deletion } of Object.values(document.paths ?? {})) delete deletion?.requestBody;
  for (const { post } of Object.values(document.paths ?? {})) {
    for (const { schema } of Object.values(post?.requestBody?.content ?? {})) if (schema) describeNulls(schema);
  }
  for (const { put, patch } of Object.values(document.paths ?? {})) {
    for (const body of [put?.requestBody, patch?.requestBody]) {
      for (const { schema } of Object.values(body?.content ?? {})) if (schema) describeCleared(schema);
    }
  }
  for (const operation of operations) {
    describeBody(operation);
    const replays = operation.parameters?.some(({ name }) => name === "idempotency-key") ?? false;
    joinErrors(operation.responses);
    for (const [status, answer] of Object.entries(operation.responses)) describeAnswer(status, answer, replays);
  }
  document.tags = describeTags(operations);
  nameSchemas(document as never);
  sayMeanings(document as never);
  giveExamples(document as never, examples);
  shareParts(document as never);
  document["x-webhooks"] = describeWebhookCalls(examples.events);
  sayWhatTextHolds(document);
  document.components = {
    ...document.components,
    parameters: { ...document.components?.parameters, ...webhookHeaders() },
  };
  return document;
}

/** An event is read as the text that is signed; what is in it, OpenAPI 3.0 has no word for (3.1: contentSchema). */
function sayWhatTextHolds({ components }: Document): void {
  const { body } = components?.schemas?.ReadEvent?.properties ?? {};
  if (body) body["x-contentSchema"] = { $ref: "#/components/schemas/Event" };
}

/** `{}` is taken where there is nothing to say (no-body.ts); who generates a client from that gets an argument for nothing. */
function isEmpty(body: Operation["requestBody"]): boolean {
  const schemas = Object.values(body?.content ?? {}).map(({ schema }) => schema as { properties?: object } | undefined);
  return schemas.length > 0 && schemas.every((schema) => schema?.properties && isNothing(schema.properties));
}

function isNothing(properties: object): boolean {
  return Object.keys(properties).length === 0;
}

/** A route takes a request without a body as `null`; OpenAPI has a word of its own for it. */
function describeBody({ requestBody }: Operation): void {
  if (!requestBody) return;
  const schemas = Object.values(requestBody.content).map(({ schema }) => schema);
  requestBody.required = !schemas.some((schema) => schema?.nullable === true);
  for (const schema of schemas) delete schema?.nullable;
}

/** The errors that every operation with a key can answer are said once: they would be a tenth of the description otherwise. */
function joinErrors(responses: Record<string, Answered>): void {
  const { 400: invalid, 401: unknown, 403: refused, 500: failed, 503: busy } = responses;
  if (!invalid || !unknown || !refused || !failed || !busy) return;
  for (const status of [400, 401, 403, 404, 500, 503]) delete responses[status];
  // One with a schema of its own says what is in it.
  const isUsual = invalid.description === "Invalid parameters";
  responses.default = { ...invalid, description: isUsual ? ANY_ERROR : invalid.description };
}

/** A route that answers with something else than JSON answers errors as JSON all the same. */
function describeAnswer(status: string, answer: Answered, replays: boolean): void {
  const [media] = Object.values(answer.content ?? {});
  if (status >= "400" && media) answer.content = { "application/json": media };
  if (answer.description === "Default Response") answer.description = SUCCESS[status] ?? "Answer";
  const headers: Record<string, unknown> = status < "300" ? {} : { "X-Request-ID": headerOf("RequestId") };
  if (status === "429" || status === "default") headers["Retry-After"] = headerOf("RetryAfter");
  if (status === "401" || status === "default") headers["WWW-Authenticate"] = headerOf("Challenge");
  if (status === "429") {
    headers["RateLimit-Limit"] = headerOf("RateLimit");
    headers["RateLimit-Remaining"] = headerOf("RateRemaining");
    headers["RateLimit-Reset"] = headerOf("RateReset");
  }
  if (status < "300" && replays) headers["Idempotent-Replayed"] = headerOf("Replayed");
  if (Object.keys({ ...headers, ...answer.headers }).length > 0) answer.headers = { ...headers, ...answer.headers };
}

function headerOf(name: keyof typeof HEADERS): { $ref: string } {
  return { $ref: `#/components/headers/${name}` };
}

/** Only those in use; one without a sentence in TAGS stands last, without a description (a test asks for it). */
function describeTags(operations: Operation[]): { name: string; description?: string }[] {
  const used = new Set(operations.flatMap(({ tags }) => tags ?? []));
  const known = Object.entries(TAGS).filter(([name]) => used.delete(name));
  return [...known.map(([name, description]) => ({ name, description })), ...[...used].map((name) => ({ name }))];
}
