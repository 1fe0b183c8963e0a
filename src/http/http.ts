// The vocabulary of routes: the schema pieces every feature's routes.ts is written with. The same schemas validate
// requests, shape answers and make /openapi.yaml, so what is described is what is served.

import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyReply,
  FastifyTypeProvider,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from "fastify";
import { type Static, type TObject, type TObjectOptions, type TProperties, type TSchema, Type } from "typebox";

import { LAST_ID, type Page } from "../platform/database/page.ts";

interface TypeBoxProvider extends FastifyTypeProvider {
  validator: this["schema"] extends TSchema ? Static<this["schema"]> : unknown;
  serializer: this["schema"] extends TSchema ? Static<this["schema"]> : unknown;
}

/** The part of the server that features mount their routes on. */
export type Api = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxProvider
>;

/** Who asks: set on every authenticated request. */
export type Account = {
  org_id: string;
  key_id: string;
  key_name: string;
  environment: "live" | "test";
  plan: "free" | "starter" | "growth" | "scale" | "enterprise";
  state: "pending_review" | "active" | "suspended" | "moving";
  monthly_quota: number;
  /** A live key's, or a test key's of an organization that trusts its test keys with everything (setting `test_keys`). */
  acts_on_live: boolean;
  /** Only with a mask key: the mailbox whose masked addresses it manages. */
  destination_id?: string | null;
  /** A signed-in person asks, not a key: `key_id` is empty then, and `key_name` the person's address. */
  person?: ActingPerson;
};

export type ActingPerson = {
  id: string;
  email: string;
  role: "owner" | "admin" | "developer" | "viewer";
  /** May see bodies of messages, where the role alone would not let them. */
  sees_bodies: boolean;
  /** Until then what is dangerous needs no further proof. */
  proved_until: Date;
};

declare module "fastify" {
  interface FastifyRequest {
    account: Account;
    /**
     * For a request that lasts, such as a stream: sets `account` as it is by now, and throws what the request would be answered
     * now, where the key was revoked, the session ended or the role changed.
     */
    askAgain(): Promise<void>;
    /** The exact bytes of a JSON body. */
    rawBody: Buffer | null;
    /** Counts bytes of a body that its route reads by itself, in parts; throws the 503 when they are too many. */
    holdBytes(bytes: number): void;
    /**
     * For a creating route that reads its body by itself, before it makes anything: true where the request repeats one by its
     * Idempotency-Key, whose answer is sent then. `content` stands for what the body holds, not for how it is wrapped.
     */
    isRepeated(reply: FastifyReply, content: Buffer): Promise<boolean>;
    /** There is more in the JSON body than is read on this thread (api/heavy/heavy.ts). */
    isHeavy: boolean;
    /**
     * Has the request done in the process for heavy requests, where a hook before the handler finds that it takes long
     * (api/heavy/heavy.ts). Null in that process, and in a server without it.
     */
    aside: ((reply: FastifyReply) => Promise<FastifyReply>) | null;
    /** The body holds text that cannot be stored (storable.ts), and the route judges it item by item. */
    unstorable: boolean;
  }
  interface FastifyContextConfig {
    /** A body with text that cannot be stored comes through to the handler, which looks at each item. */
    judges_items?: boolean;
    /** Takes the processor for long whatever its body is: done in the process for heavy requests (api/heavy/heavy.ts). */
    heavy?: boolean;
    /** Bytes up to which a body is read on this thread, where that is not what heavy.ts takes for all others. */
    light_bytes_max?: number;
    /** What a test key is refused here, as the end of "a test key cannot …": the operation is about live mail only. */
    live_keys_only?: string;
    /** The same, where the path names a domain that a live key made. */
    live_domain_only?: string;
  }
}

/** A value that may be null: OpenAPI 3.0 writes it `nullable`, and null is then a word of an enum as well. */
export function Nullable<S extends TSchema>(schema: S) {
  const { enum: values } = schema as JsonSchema;
  const words = values ? { enum: [...values, null] } : {};
  return Type.Unsafe<Static<S> | null>({ ...schema, ...words, nullable: true });
}

const NAME = "x-name";

/** The members of a schema that are read here and where requests are prepared; the type of a schema names none of them. */
export type JsonSchema = {
  type?: string;
  format?: string;
  description?: string;
  enum?: unknown[];
  nullable?: boolean;
  anyOf?: JsonSchema[];
  allOf?: JsonSchema[];
  items?: JsonSchema;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  minItems?: number;
  additionalProperties?: boolean | JsonSchema;
  [NAME]?: unknown;
};

/**
 * Gives a schema its name in /openapi.yaml, where it becomes a component that others refer to (api/components.ts). To the
 * validator and to the writer of answers it is the same schema as before.
 */
export function Named<S extends TSchema>(name: string, schema: S): S {
  const { description } = schema as JsonSchema;
  return { ...schema, [NAME]: { name, ...(description ? { description } : {}) } };
}

/** An object whose members are the customer's own. */
function AnyObject(options: object) {
  return Type.Unsafe<Record<string, unknown>>(Type.Object({}, { additionalProperties: true, ...options }));
}

/** The name that `Named` gave; throws where there is none. */
function nameOf(schema: TSchema): string {
  const { name } = ((schema as JsonSchema)[NAME] ?? {}) as { name?: string };
  if (name === undefined) throw new Error("a schema without a name is used where one is needed");
  return name;
}

/**
 * A record with further fields, which stand behind those of the other one, or before them where `first`. The description says
 * that it has all fields of the other one, and these.
 */
export function Extended<B extends TProperties, M extends TProperties>(
  name: string,
  base: TObject<B>,
  more: M,
  first = false,
) {
  const beyond = { name: nameOf(base), fields: Object.keys(more) };
  const { additionalProperties } = base as JsonSchema;
  const open = additionalProperties === undefined ? {} : { additionalProperties };
  const properties: B & M = first ? { ...more, ...base.properties } : { ...base.properties, ...more };
  return Named(name, Type.Object(properties, { ...open, "x-extends": beyond }));
}

/** One of several objects, which the field `by` tells apart: each has it as an enum of its own values. */
export function OneOfKinds<const T extends TSchema[]>(name: string, by: string, kinds: [...T]) {
  return Named(name, Type.Union(kinds, { "x-discriminator": by }));
}

/** A closed object: an unknown field is a 400 that names it. */
export function Closed<P extends Record<string, TSchema>>(properties: P, options: object = {}) {
  return Type.Object(properties, { additionalProperties: false, ...options });
}

export const Id = Named("RecordId", Type.String({ format: "uuid", description: "UUIDv7" }));
export const Time = Named(
  "Timestamp",
  Type.Unsafe<Date | string>({ type: "string", format: "date-time", description: "RFC 3339, UTC" }),
);
export const Day = Type.String({ format: "date" });
export const Rate = Type.Number({ minimum: 0, maximum: 1 });

/** A set of words as an enum. */
export function OneOf<const T extends readonly string[]>(words: T, options: object = {}) {
  return Type.Unsafe<T[number]>({ type: "string", enum: [...words], ...options });
}

export const Environment = Named(
  "Environment",
  OneOf(["live", "test"], { description: "live: by a live key, for real. test: by a test key" }),
);

/** For lists in another order than that of their ids. */
export const OffsetQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0 })),
};

export const PageQuery = {
  ...OffsetQuery,
  after: Type.Optional({ ...Id, description: "The last id of the page before: the list goes on behind it" }),
};

/** An answer that holds one record under its singular name. */
export function AnswerOf<N extends string, S extends TSchema>(field: N, record: S, options: TObjectOptions = {}) {
  const properties = { [field]: record } as { [K in N]: S };
  return { ...Named(`${nameOf(record)}Answer`, Type.Object(properties)), ...options };
}

const PageBounds = Named(
  "Page",
  Type.Object({
    total: Type.Integer({
      description: "Exact up to 100,000; above it total_is_at_least stands beside it",
      example: 1,
    }),
    total_is_at_least: Type.Optional(Type.Literal(true, { description: "There are this many or more" })),
    limit: Type.Integer({ description: "How many rows a page has at most", example: 50 }),
    offset: Type.Integer({ description: "How many rows were skipped", example: 0 }),
  }),
);

/** A list answer: the rows under their plural name, `more`, `total` (platform/database/totals.ts), `limit`, `offset`. */
export function PageOf<N extends string, S extends TSchema, M extends TProperties = TProperties>(
  name: N,
  row: S,
  more = {} as M,
) {
  const rows = { [name]: Type.Array(row) } as { [K in N]: ReturnType<typeof Type.Array<S>> };
  return Extended(`${nameOf(row)}List`, PageBounds, { ...rows, ...more }, true);
}

/** limit, offset and after with their defaults. */
export function pageOf(query: { limit?: number; offset?: number; after?: string }): Page {
  return { limit: query.limit ?? 50, offset: query.offset ?? 0, below: query.after ?? LAST_ID };
}

export const Deleted = Named(
  "Deleted",
  Type.Object(
    {
      deleted: Type.Boolean({ description: "Always true" }),
      id: Type.String({ description: "What was deleted" }),
    },
    { description: "That something was deleted" },
  ),
);

export const IdParams = Type.Object({ id: Type.String({ maxLength: 1024 }) });

/** Clients must take values that they do not know. */
const OPEN = { "x-open-enum": true };

const ERROR_CODES = [
  "validation_error",
  "invalid_json",
  "payload_too_large",
  "template_variable_missing",
  "template_error",
  "missing_api_key",
  "invalid_api_key",
  "domain_not_ready",
  "domain_not_owned",
  "plan_limit_reached",
  "organization_in_review",
  "organization_suspended",
  "test_key_not_allowed",
  "not_found",
  "already_exists",
  "idempotency_conflict",
  "invalid_state",
  "all_recipients_suppressed",
  "rate_limit_exceeded",
  "internal_error",
  "unavailable",
  "batch_rejected",
];

const LIMIT_TYPES = ["daily", "hourly", "per_minute", "monthly_quota", "requests_per_second", "processor_time"];

export const ErrorBody = Named(
  "Error",
  Type.Object(
    {
      error: Type.String({ description: "A sentence for people" }),
      code: Named(
        "ErrorCode",
        Type.String({ description: "What is wrong, for programs. New ones may come", enum: ERROR_CODES, ...OPEN }),
      ),
      field: Type.Optional(Type.String({ description: "Path of the field at fault, such as attachments[0].filename" })),
      request_id: Type.Optional(
        Type.String({ description: "X-Request-ID of the answer; an item of a batch has none" }),
      ),
    },
    { additionalProperties: true, $id: "Error", description: "Why a request was declined" },
  ),
);

export const RateLimitBody = Named(
  "RateLimit",
  Type.Object(
    {
      error: OneOf(["rate_limit_exceeded"], { description: "Always the same word" }),
      code: OneOf(["rate_limit_exceeded"], { description: "The same as `error`" }),
      message: Type.String({ description: "A sentence for people" }),
      limit_type: Named(
        "LimitType",
        Type.String({
          description: "Which limit. processor_time is counted in milliseconds. New ones may come",
          enum: LIMIT_TYPES,
          ...OPEN,
        }),
      ),
      limit: Type.Integer({ description: "The limit" }),
      used: Type.Integer({ description: "How much of it is used" }),
      retry_after_seconds: Type.Integer({ description: "When to try again; the same as Retry-After" }),
      warming_phase: Type.String({ description: "Of the sender's domain; empty where warming does not limit" }),
      request_id: Type.Optional(
        Type.String({ description: "X-Request-ID of the answer; an item of a batch has none" }),
      ),
    },
    { additionalProperties: true, $id: "RateLimit", description: "Which limit a request exceeded, and for how long" },
  ),
);

const SENTENCES: Record<number, string> = {
  400: "Invalid parameters",
  401: "Missing or invalid API key",
  403: "Not allowed, or a plan limit is reached",
  404: "No such resource",
  409: "Already exists, or not possible in this state",
  422: "All recipients are suppressed",
  429: "A rate or sending limit is exceeded",
  500: "Internal error",
  503: "Starting, stopping or shedding load",
};

/** The keys that a customer may put into the metadata of a record. */
export const METADATA_KEYS_MAX = 20;

export const Metadata = Named(
  "Metadata",
  AnyObject({
    maxProperties: METADATA_KEYS_MAX,
    description:
      "Your own values, which events carry back. At most 20 keys and 2 KiB as JSON; ids beyond 2^53 as strings",
  }),
);

/** Values for a template, when sending and for a preview. */
export const Variables = Named(
  "TemplateVariables",
  AnyObject({ description: "Values of a template's variables, by name" }),
);

/** A header field of a message, as received mail and sent mail show them. */
export const HeaderField = Named(
  "HeaderField",
  Type.Object(
    {
      name: Type.String({ description: "The field's name as it was written" }),
      value: Type.String({ description: "The field's value, unfolded" }),
    },
    { description: "A header field of a message" },
  ),
);

/** The answers of an operation: its own, the errors named in `errors`, and those every operation can give. */
export function answers<A extends Record<number, TSchema>>(own: A, errors: number[] = []) {
  const all: Record<number, TSchema> = { ...own };
  for (const status of [400, 401, 403, ...errors, 429, 500, 503]) {
    const name = status === 429 ? "RateLimit" : "Error";
    all[status] ??= Type.Unsafe({ ...Type.Ref(name), description: SENTENCES[status] ?? "Error" });
  }
  return all as A & Record<number, TSchema>;
}
