// /v1/domains/{id}/dmarc/… and /v1/dmarc/reports. The upload takes files, so it has a scope of its own.
import { createHash } from "node:crypto";
import multipart from "@fastify/multipart";
import { Type } from "typebox";
import { AnswerOf, type Api, answers, Closed, IdParams, OffsetQuery, PageOf, PageQuery, pageOf } from "../http/http.ts";
import { limitUploads } from "../http/limit-uploads.ts";
import { PACKED_BYTES_MAX } from "../mail/dmarc-report/unpack.ts";
import type { World } from "../platform/world.ts";
import * as dmarc from "./dmarc.ts";
import * as schemas from "./schemas.ts";
import type { DmarcPorts } from "./types.ts";
import { readBytes, readUpload } from "./upload.ts";

/** Uploads that this process takes at once, and of an organization waiting; they are read one after the other. */
const UPLOADS = { places: 8, waiting_max: 20 };
const DAYS_DEFAULT = 30;
const SOURCES_DEFAULT = 20;
const tags = ["DMARC"];

const Params = {
  ...IdParams,
  properties: { id: Type.String({ maxLength: 1024, description: "The domain's id or its name" }) },
} as typeof IdParams;
const ReportParams = Type.Object({
  id: Type.String({ maxLength: 1024, description: "The domain's id or its name" }),
  reportId: Type.String({ maxLength: 1024, description: "Our id, or the reporter's (the newest of it)" }),
});

/** Mounts the DMARC endpoints. `ports`: what DMARC needs of other features. */
export function mountDmarc(api: Api, world: World, ports: DmarcPorts): void {
  mountFigures(api, world, ports);
  mountReports(api, world);
  api.register(async (scope) => mountUpload(scope as unknown as Api, world));
}

function mountFigures(api: Api, world: World, ports: DmarcPorts): void {
  api.get(
    "/v1/domains/:id/dmarc/summary",
    {
      schema: {
        operationId: "getDmarcSummary",
        tags,
        summary: "What the counted reports of the last days say together, and the next step of the policy",
        description:
          "Counts reports whose sender is authenticated. `recommendation` says which policy could be published next and what stands in the way.",
        params: Params,
        querystring: Closed(schemas.DaysQuery),
        response: answers({ 200: schemas.Summary }, [404]),
      },
    },
    async (request) => {
      const ask = { id: request.params.id, days: request.query.days ?? DAYS_DEFAULT };
      return dmarc.summarize(world, ports, request.account.org_id, ask);
    },
  );

  api.get(
    "/v1/domains/:id/dmarc/sources",
    {
      schema: {
        operationId: "listDmarcSources",
        tags,
        summary: "The addresses that send mail in the domain's name, most messages first",
        description:
          "Each with how much of its mail passed, and whether it is known: ours, authorised, a forwarder, or unknown.",
        params: Params,
        querystring: Closed({
          ...schemas.DaysQuery,
          ...OffsetQuery,
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: SOURCES_DEFAULT })),
        }),
        response: answers({ 200: PageOf("sources", schemas.Source, { days: Type.Integer() }) }, [404]),
      },
    },
    async (request) => {
      const { days = DAYS_DEFAULT, limit = SOURCES_DEFAULT, offset = 0 } = request.query;
      const ask = { id: request.params.id, days, limit, offset };
      return dmarc.listSources(world, ports, request.account.org_id, ask);
    },
  );

  api.get(
    "/v1/domains/:id/dmarc/daily",
    {
      schema: {
        operationId: "listDmarcDaily",
        tags,
        summary: "Every day of the last days, oldest first; reports of more than 24 hours are split over their days",
        description: "A day without reports is there with zeros.",
        params: Params,
        querystring: Closed(schemas.DaysQuery),
        response: answers({ 200: Type.Object({ daily: Type.Array(schemas.Daily), days: Type.Integer() }) }, [404]),
      },
    },
    async (request) => {
      const ask = { id: request.params.id, days: request.query.days ?? DAYS_DEFAULT };
      return dmarc.listDaily(world, request.account.org_id, ask);
    },
  );
}

function mountReports(api: Api, world: World): void {
  api.get(
    "/v1/domains/:id/dmarc/reports",
    {
      schema: {
        operationId: "listDmarcReports",
        tags,
        summary: "List aggregate reports, newest first, those that do not count too",
        description: "Those that do not count have a status that says why.",
        params: Params,
        querystring: Closed(PageQuery),
        response: answers({ 200: PageOf("reports", schemas.Report) }, [404]),
      },
    },
    async (request) =>
      dmarc.listReports(world, request.account.org_id, { id: request.params.id, ...pageOf(request.query) }),
  );

  api.get(
    "/v1/domains/:id/dmarc/reports/:reportId",
    {
      schema: {
        operationId: "getDmarcReport",
        tags,
        summary: "One report with its records, at most 10,000 of them at once",
        description: "With `records_limit` and `records_offset` a large report is read in parts.",
        params: ReportParams,
        querystring: schemas.RecordsQuery,
        response: answers({ 200: AnswerOf("report", schemas.WholeReport) }, [404]),
      },
    },
    async (request) => {
      const { records_limit = 10_000, records_offset = 0 } = request.query;
      const { id, reportId } = request.params;
      const ask = { id, report_id: reportId, limit: records_limit, offset: records_offset };
      return { report: await dmarc.getReport(world, request.account.org_id, ask) };
    },
  );

  api.get(
    "/v1/domains/:id/dmarc/address",
    {
      schema: {
        operationId: "getDmarcAddress",
        tags,
        summary: "The address that receives reports on the domain, and the DNS records that it takes",
        description:
          "Put the address into `rua=` of the DMARC record. `external_authorization` is what the operator of the service publishes for it.",
        params: Params,
        response: answers({ 200: schemas.Address }, [404]),
      },
    },
    async (request) => dmarc.getReportAddress(world, request.account.org_id, request.params.id),
  );
}

async function mountUpload(api: Api, world: World): Promise<void> {
  api.removeAllContentTypeParsers();
  await api.register(multipart, {
    throwFileSizeLimit: false,
    limits: {
      fileSize: PACKED_BYTES_MAX + 1,
      files: 2,
      fields: 5,
      fieldSize: 1_024,
      fieldNameSize: 100,
      headerPairs: 50,
    },
  });
  api.addContentTypeParser("*", (_request, stream, done) => {
    readBytes(stream).then((bytes) => done(null, bytes), done);
  });
  api.addHook("onRequest", limitUploads(UPLOADS, "too many of your reports are being read; try again shortly", 2));
  api.post(
    "/v1/dmarc/reports",
    {
      bodyLimit: 2 * PACKED_BYTES_MAX,
      config: { heavy: true },
      // Bodies are read by upload.ts; the schema describes them.
      validatorCompiler: () => () => true,
      schema: {
        operationId: "uploadDmarcReport",
        tags,
        summary: "Upload an aggregate report as XML, gzip or ZIP of one file; the domain follows from it",
        description:
          "At most 25 MiB, 100 MiB unpacked; both RFC 7489 and RFC 9990. A report " +
          "that is there already (organization, report id, domain and range) answers 200 and is not counted again.",
        body: {
          content: {
            "application/octet-stream": { schema: Type.Unsafe<unknown>({ type: "string", format: "binary" }) },
            "multipart/form-data": {
              schema: Closed({ file: Type.Unsafe<unknown>({ type: "string", format: "binary" }) }),
            },
          },
        },
        response: answers({
          200: AnswerOf("report", schemas.Report, { description: "It was there already" }),
          201: AnswerOf("report", schemas.Report),
        }),
      },
    },
    async (request, reply) => {
      const file = await readUpload(request);
      if (await request.isRepeated(reply, createHash("sha256").update(file).digest())) return reply;
      const { report, duplicate } = await dmarc.uploadReport(world, request.account, file);
      return reply.code(duplicate ? 200 : 201).send({ report });
    },
  );
}
