// The vocabulary of routes: the schema pieces every feature's routes.ts is written with. The same schemas validate
// requests, shape answers and make /openapi.yaml, so what is described is what is served.
import { type Static, type TLiteral, type TOptional, type TSchema, Type } from "@sinclair/typebox";
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyTypeProvider,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from "fastify";

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
  state: "pending_review" | "active" | "suspended";
  monthly_quota: number;
  /** A live key's, or a test key's of an organization that trusts its test keys with everything (setting `test_keys`). */
  acts_on_live: boolean;
};

declare module "fastify" {
  interface FastifyRequest {
    account: Account;
    /** The exact bytes of a JSON body. */
    rawBody: Buffer | null;
    /** Counts bytes of a body that its route reads by itself, in parts; throws the 503 when they are too many. */
    holdBytes(bytes: number): void;
    /** There is more in the JSON body than is read on this thread (api/heavy.ts). */
    isHeavy: boolean;
    /** Of the processor, what this thread had taken when the JSON body began to be read; 0 where there is none. */
    readAtMs: number;
    /** The body holds text that cannot be stored (storable.ts), and the route judges it item by item. */
    unstorable: boolean;
  }
  interface FastifyContextConfig {
    /** A body with text that cannot be stored comes through to the handler, which looks at each item. */
    judges_items?: boolean;
    /** Takes the processor for long whatever its body is: done on the thread for heavy requests (api/heavy.ts). */
    heavy?: boolean;
    /** What a test key is refused here, as the end of "a test key cannot …": the operation is about live mail only. */
    live_keys_only?: string;
    /** The same, where the path names a domain that a live key made. */
    live_domain_only?: string;
  }
}

/** A value that may be null: OpenAPI 3.0 writes it `nullable`, and null is then a word of an enum as well. */
export function Nullable<S extends TSchema>(schema: S) {
  const words = Array.isArray(schema.enum) ? { enum: [...schema.enum, null] } : {};
  return Type.Unsafe<Static<S> | null>({ ...schema, ...words, nullable: true });
}

/** A closed object: an unknown field is a 400 that names it. */
export function Closed<P extends Record<string, TSchema>>(properties: P, options: object = {}) {
  return Type.Object(properties, { additionalProperties: false, ...options });
}

export const Id = Type.String({ format: "uuid", description: "UUIDv7" });
export const Time = Type.Unsafe<Date | string>({ type: "string", format: "date-time", description: "RFC 3339, UTC" });
export const Day = Type.String({ format: "date" });
export const Rate = Type.Number({ minimum: 0, maximum: 1 });

/** A set of words as an enum. */
export function OneOf<const T extends readonly string[]>(words: T, options: object = {}) {
  return Type.Unsafe<T[number]>({ type: "string", enum: [...words], ...options });
}

export const PageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0 })),
};

/** A list answer: the rows under their plural name, beside `total` (platform/totals.ts), `limit`, `offset`. */
export function PageOf<N extends string, S extends TSchema>(name: N, row: S) {
  return Type.Object({
    [name]: Type.Array(row),
    total: Type.Integer({ description: "Exact up to 100,000; above it total_is_at_least stands beside it" }),
    total_is_at_least: Type.Optional(Type.Literal(true, { description: "There are this many or more" })),
    limit: Type.Integer(),
    offset: Type.Integer(),
  } as { [K in N]: ReturnType<typeof Type.Array<S>> } & {
    total: ReturnType<typeof Type.Integer>;
    total_is_at_least: TOptional<TLiteral<true>>;
    limit: ReturnType<typeof Type.Integer>;
    offset: ReturnType<typeof Type.Integer>;
  });
}

/** limit and offset with their defaults. */
export function pageOf(query: { limit?: number; offset?: number }): { limit: number; offset: number } {
  return { limit: query.limit ?? 50, offset: query.offset ?? 0 };
}

export const Deleted = Type.Object({ deleted: Type.Boolean(), id: Type.String() });

export const IdParams = Type.Object({ id: Type.String({ maxLength: 1024 }) });

export const ErrorBody = Type.Object(
  {
    error: Type.String({ description: "A sentence for people" }),
    code: Type.Optional(Type.String({ description: "Stable, snake_case" })),
    field: Type.Optional(Type.String({ description: "Path of the field at fault" })),
    request_id: Type.Optional(Type.String()),
  },
  { additionalProperties: true, $id: "Error" },
);

export const RateLimitBody = Type.Object(
  {
    error: Type.Literal("rate_limit_exceeded"),
    code: Type.Optional(Type.Literal("rate_limit_exceeded")),
    message: Type.String(),
    limit_type: Type.String({
      description: "daily, hourly, per_minute, monthly_quota, requests_per_second or processor_time (milliseconds)",
    }),
    limit: Type.Integer(),
    used: Type.Integer(),
    retry_after_seconds: Type.Integer(),
    warming_phase: Type.String(),
    request_id: Type.Optional(Type.String()),
  },
  { additionalProperties: true, $id: "RateLimit" },
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

/** The answers of an operation: its own, the errors named in `errors`, and those every operation can give. */
export function answers<A extends Record<number, TSchema>>(own: A, errors: number[] = []) {
  const all: Record<number, TSchema> = { ...own };
  for (const status of [400, 401, 403, ...errors, 429, 500, 503]) {
    const schema = status === 429 ? RateLimitBody : ErrorBody;
    all[status] ??= Type.Unsafe({ ...Type.Ref(schema), description: SENTENCES[status] ?? "Error" });
  }
  return all as A & Record<number, TSchema>;
}
