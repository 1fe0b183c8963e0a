// /v1/imports/suppressions. The preview alone takes multipart bodies and JSON up to 40 MiB, so it has a scope of its own.
import multipart from "@fastify/multipart";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { AnswerOf, type Api, answers, Closed, Id, IdParams, Named, Nullable, OneOf, Time } from "../http/http.ts";
import { limitUploads } from "../http/limit-uploads.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { PROVIDERS } from "./import/formats.ts";
import * as imports from "./imports.ts";
import { createPreviews } from "./previews.ts";
import { FILE_BYTES_MAX, PROVIDER_WORDS, type ReadUpload, readJson, readMultipart } from "./upload.ts";

/** Uploads that come in at once, each up to 40 MiB of the disk, and those of an organization that wait. */
const UPLOADS = { places: 12, waiting_max: 100 };

const Count = Type.Integer({ minimum: 0 });
const ReasonCounts = Named(
  "SuppressionReasonCounts",
  Type.Object({ hard_bounce: Count, complaint: Count, manual: Count, unsubscribe: Count }),
);
const Sample = Named(
  "SuppressionImportSample",
  Type.Object({
    row: Type.Integer(),
    email: Type.String(),
    reason: OneOf(["hard_bounce", "complaint", "manual", "unsubscribe"]),
    scope_type: OneOf(["org", "domain", "stream", "template", "list"]),
    scope_id: Nullable(Type.String()),
    bounce_code: Nullable(Type.String()),
    diag_code: Nullable(Type.String()),
    note: Nullable(Type.String()),
  }),
);
const RowError = Named(
  "SuppressionImportError",
  Type.Object({
    row: Nullable(Type.Integer({ description: "From 1, without the heading" })),
    column: Nullable(Type.String({ description: "The heading of the column; its number in a list without headings" })),
    value: Nullable(Type.String({ description: "At most 200 characters" })),
    message: Type.String(),
  }),
);
const Question = Named(
  "SuppressionImportQuestion",
  Type.Object({
    column: Type.String({ description: "The heading of the column" }),
    message: Type.String(),
  }),
);
const Job = Named(
  "SuppressionImport",
  Type.Object({
    id: Id,
    status: OneOf(["reading", "previewed", "committing", "committed", "failed", "expired"]),
    provider: OneOf(PROVIDERS, { description: "Detected from the file when not given" }),
    total_rows: Count,
    valid_rows: Type.Integer({ minimum: 0, description: "What a commit adds" }),
    invalid_rows: Type.Integer({
      minimum: 0,
      description: "Bad addresses, scopes that are not there, and rows that do not suppress (soft bounces)",
    }),
    duplicate_rows: Type.Integer({
      minimum: 0,
      description:
        "An earlier row has the same address and scope; the stronger reason and the longer time of both are kept",
    }),
    already_suppressed_rows: Type.Integer({ minimum: 0, description: "Valid rows that are on the list already" }),
    by_reason: ReasonCounts,
    sample: Type.Array(Sample, { description: "The first 20 valid rows" }),
    errors: Type.Array(RowError, { description: "The first 100 invalid rows" }),
    questions: Type.Array(Question, {
      description:
        "Columns of yes and no whose meaning is not known, the first 20: look at them before you commit. Rows with a no there are not suppressed",
    }),
    committed_rows: Type.Integer({ minimum: 0, description: "Progress of the commit" }),
    created_at: Time,
    expires_at: Type.Unsafe<Date | string>({ ...Time, description: "Until when a preview can be committed" }),
  }),
);
const Provider = OneOf(PROVIDER_WORDS, { description: "Detected when absent" });
const tags = ["Suppressions"];

/** Mounts the endpoints of suppression imports. */
export function mountImports(api: Api, world: World): void {
  api.register(async (scope) => mountPreview(scope as unknown as Api, world));
  mountJob(api, world);
  mountCommit(api, world);
}

async function mountPreview(api: Api, world: World): Promise<void> {
  await api.register(multipart, {
    throwFileSizeLimit: false,
    limits: { fileSize: FILE_BYTES_MAX, files: 2, fields: 10, fieldSize: 1_024, fieldNameSize: 100, headerPairs: 50 },
  });
  // The scope's own JSON: the text of `csv` is never made a JavaScript string in one piece.
  api.removeContentTypeParser("application/json");
  api.addContentTypeParser("application/json", (request, stream, done) => {
    const announced = Number(request.headers["content-length"] ?? 0);
    readJson(world, stream, announced).then((upload) => done(null, upload), done);
  });
  api.addHook("onRequest", limitUploads(UPLOADS, "too many of your lists are being read; try again shortly", 5));
  const { preview, stop } = createPreviews(world);
  api.addHook("onClose", stop);
  api.post(
    "/v1/imports/suppressions/preview",
    {
      bodyLimit: 64 * 1024 * 1024,
      // Every row costs: a list of 1 MiB would take a seventh of a second of the thread that everybody shares.
      config: { heavy: true },
      // Bodies are checked by upload.ts; the schema describes them.
      validatorCompiler: () => () => true,
      schema: {
        operationId: "previewSuppressionImport",
        tags,
        summary: "Read a list exported by another provider and show what a commit would add",
        description:
          "CSV in any usual encoding and separator, JSON (also an array of addresses) or NDJSON, also gzipped. At most " +
          "2,000,000 rows. Nothing is suppressed before the commit; the job expires after 24 hours. More than 100,000 rows are " +
          "answered 202 at once: the job is `reading`, its counts grow, until it is `previewed` or `failed`. Postern's " +
          "own export keeps all but `id`, `source`.",
        body: {
          content: {
            "multipart/form-data": {
              schema: Closed({
                file: Type.Unsafe<unknown>({ type: "string", format: "binary", description: "At most 25 MiB" }),
                provider: Type.Optional(Provider),
              }),
            },
            "application/json": {
              schema: Closed({
                csv: Type.String({ description: "The file's text; the whole body at most 40 MiB" }),
                provider: Type.Optional(Nullable(Provider)),
                filename: Type.Optional(
                  Type.String({ description: "Tells lists with the same columns apart, such as SendGrid's blocks" }),
                ),
              }),
            },
          },
        },
        response: answers({ 201: AnswerOf("job", Job), 202: AnswerOf("job", Job) }),
      },
    },
    async (request, reply) => {
      const upload = request.isMultipart() ? await readMultipart(world, request) : bodyOf(request);
      if (await isRepeated(request, reply, upload)) return reply;
      const job = await preview(request.account.org_id, upload);
      return reply.code(job.status === "reading" ? 202 : 201).send({ job });
    },
  );
}

/** What is not previewed takes no room. */
async function isRepeated(request: FastifyRequest, reply: FastifyReply, upload: ReadUpload): Promise<boolean> {
  let goesOn = false;
  try {
    goesOn = !(await request.isRepeated(reply, upload.digest));
  } finally {
    if (!goesOn) await upload.discard();
  }
  return !goesOn;
}

function bodyOf(request: FastifyRequest): ReadUpload {
  const body = request.body as ReadUpload | undefined | null;
  if (body) return body;
  throw new Refusal("validation_error", "send the list as multipart field 'file', or as JSON with the field 'csv'", {
    field: "file",
  });
}

function mountJob(api: Api, world: World): void {
  api.get(
    "/v1/imports/suppressions/jobs/:id",
    {
      schema: {
        operationId: "getSuppressionImport",
        tags,
        summary: "Get an import job, with the progress of its reading and its commit",
        description: "Ask again while the status is `reading` or `committing`.",
        params: IdParams,
        response: answers({ 200: AnswerOf("job", Job) }, [404]),
      },
    },
    async (request) => ({ job: await imports.getImport(world, request.account.org_id, request.params.id) }),
  );
}

function mountCommit(api: Api, world: World): void {
  api.post(
    "/v1/imports/suppressions/jobs/:id/commit",
    {
      schema: {
        operationId: "commitSuppressionImport",
        tags,
        summary: "Add the valid rows of a previewed job, in the background",
        description:
          "Answers at once; the job counts up `committed_rows` until it is `committed`. A job is committed once.",
        params: IdParams,
        response: answers({ 202: AnswerOf("job", Job) }, [404, 409]),
      },
    },
    async (request, reply) => {
      const job = await imports.commitImport(world, request.account.org_id, request.params.id);
      return reply.code(202).send({ job });
    },
  );
}
