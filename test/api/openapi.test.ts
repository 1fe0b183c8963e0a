// /openapi.yaml as a contract: valid OpenAPI 3.0, accepted by a linter that is not ours, complete in both directions
// (every mounted route is described, every described one is mounted), and true about bodies.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { createConfig, lintFromString, parseYaml } from "@redocly/openapi-core";
import { type TestApi, testApi } from "../support/api.ts";
import { type Description, operationsOf, type Placed, readDescription, routesOf, type Schema } from "./operations.ts";

/** On top of the linter's recommended rules; none of those is turned off. */
const STRICTER = {
  "operation-tag-defined": "error",
  "tag-description": "error",
  "operation-operationId": "error",
  "operation-4xx-response": "error",
  "operation-2xx-response": "error",
  "no-unused-components": "error",
  "paths-kebab-case": "error",
  "no-ambiguous-paths": "error",
} as const;

/** Answered without being part of the API that clients are made from. */
/** Not of the API: what machines look at, and the pages that people reach by a signed link. */
/** The dashboard: its pages, and its API with a description of its own. */
const isOfDashboard = (route: string): boolean => /^[A-Z]+ (\*|\/dashboard\/api\/.*)$/.test(route);

const NOT_DESCRIBED = [
  "GET /docs*",
  "HEAD /docs*",
  "GET /openapi.yaml",
  "HEAD /openapi.yaml",
  "GET /openapi.json",
  "HEAD /openapi.json",
  "GET /docs",
  "HEAD /docs",
  "GET /docs/*",
  "HEAD /docs/*",
  "GET /healthz",
  "HEAD /healthz",
  "GET /masked/confirm/{token}",
  "POST /masked/confirm/{token}",
  "GET /masked/unsubscribe/{token}",
  "POST /masked/unsubscribe/{token}",
  "GET /masked/stop/{token}",
  "POST /masked/stop/{token}",
  "GET /masked/release/{token}",
  "POST /masked/release/{token}",
  "GET /masked/held/{token}",
  "POST /masked/held/{token}",
  "GET /masked/failed/{token}",
  "POST /masked/failed/{token}",
  "GET /masked/setting/{token}",
  "POST /masked/setting/{token}",
  "GET /unsubscribe/{token}",
  "POST /unsubscribe/{token}",
  "GET /sending-witness",
];

const EVERY_OPERATION = ["429", "default"];

/** The paths that were promised, by feature: once a feature mounts one of its paths, all of them must be there. */
const CONTRACT: Record<string, string[]> = {
  "/v1/send": ["POST /v1/send", "POST /v1/send/batch", "GET /v1/emails", "GET /v1/emails/{id}"],
  "/v1/inbound-emails": [
    "GET /v1/inbound-emails",
    "GET /v1/inbound-emails/{id}",
    "GET /v1/inbound-emails/{id}/attachments/{attachment_id}/download",
  ],
  "/v1/masked/aliases": crud("/v1/masked/aliases", "PUT"),
  "/v1/aliases": crud("/v1/aliases", "PATCH"),
  "/v1/domains": [
    ...crud("/v1/domains", "PUT"),
    "POST /v1/domains/{id}/verify",
    "GET /v1/domains/{id}/dns",
    "POST /v1/domains/{id}/dkim",
    "GET /v1/domains/{id}/dkim",
    "POST /v1/domains/{id}/dkim/rotate",
    "POST /v1/domains/{id}/dkim/verify",
    "DELETE /v1/domains/{id}/dkim/{selector}",
    ...["stats", "stats/daily", "stats/hourly", "stats/isp"].map((part) => `GET /v1/domains/{id}/${part}`),
    ...["warming", "warming/history"].map((part) => `GET /v1/domains/{id}/${part}`),
    ...["start", "pause", "resume"].map((part) => `POST /v1/domains/{id}/warming/${part}`),
  ],
  "/v1/templates": [...crud("/v1/templates", "PUT"), "POST /v1/templates/{id}/preview"],
  "/v1/webhooks": [
    "POST /v1/webhooks",
    "GET /v1/webhooks",
    "POST /v1/webhooks/{id}/rotate",
    "DELETE /v1/webhooks/{id}",
  ],
  "/v1/domains/{id}/dmarc": [
    ...["summary", "sources", "daily", "reports", "reports/{reportId}", "address"].map(
      (part) => `GET /v1/domains/{id}/dmarc/${part}`,
    ),
  ],
  "/v1/suppressions": [
    "GET /v1/suppressions",
    "GET /v1/suppressions/check",
    "POST /v1/suppressions",
    "DELETE /v1/suppressions/{identifier}",
    "POST /v1/imports/suppressions/preview",
    "GET /v1/imports/suppressions/jobs/{id}",
    "POST /v1/imports/suppressions/jobs/{id}/commit",
  ],
  "/v1/api-keys": crud("/v1/api-keys", "PUT"),
};

function crud(path: string, update: "PUT" | "PATCH"): string[] {
  return [`POST ${path}`, `GET ${path}`, `GET ${path}/{id}`, `${update} ${path}/{id}`, `DELETE ${path}/{id}`];
}

let api: TestApi;
let text: string;
let operations: Placed[];
let parsed: Description;

before(async () => {
  api = await testApi();
  text = await readDescription(api);
  operations = operationsOf(text);
  parsed = parseYaml(text) as Description;
});

after(async () => {
  await api?.close();
});

/** Fails with every line of `faults`; passes when there is none. */
function none(faults: string[], what: string): void {
  assert.equal(faults.length, 0, `${what}\n  ${faults.join("\n  ")}`);
}

describe("the description", () => {
  it("passes a linter from npm", async () => {
    const config = await createConfig({ extends: ["recommended"], rules: STRICTER });
    const problems = await lintFromString({ source: text, absoluteRef: "openapi.yaml", config });
    // It does not follow x-webhooks, whose bodies the union has all of.
    const isOfCalls = ({ location }: (typeof problems)[number]) =>
      location[0]?.pointer === "#/components/schemas/Event";
    none(
      problems
        .filter((problem) => !isOfCalls(problem))
        .map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`),
      "the linter objects",
    );
  });

  it("is served as YAML without a key, and says which version it is", async () => {
    const { headers } = await api.ask("GET", "/openapi.yaml", undefined, { key: null });
    assert.match(String(headers["content-type"]), /^application\/yaml/);
    assert.equal((parseYaml(text) as Description).openapi, "3.0.3");
  });

  it("and the health of the process answer who asks for the head alone, without a body", async () => {
    for (const path of ["/openapi.yaml", "/healthz"]) {
      const { statusCode, payload } = await api.app.inject({ method: "HEAD", url: path });
      assert.deepEqual([statusCode, payload], [200, ""], path);
    }
  });

  it("names the headers of all answers at its top, and those of some answers there", async () => {
    const common = /^(content-|date$|connection$|keep-alive$)/;
    const { paths, info } = parseYaml(text) as Description;
    for (const key of [undefined, null]) {
      const { status, headers } = await api.ask("GET", "/v1/domains", undefined, key === null ? { key } : {});
      const { responses = {} } = operations.find(({ name }) => name === "GET /v1/domains") ?? {};
      const answer = responses[status] ?? responses.default;
      const described = [...Object.keys(answer?.headers ?? {}), ...info.description.matchAll(/`([\w-]+)`/g)].map(
        (name) => String(Array.isArray(name) ? name[1] : name).toLowerCase(),
      );
      const given = Object.keys(headers).filter((name) => !common.test(name));
      assert.deepEqual(
        given.filter((name) => !described.includes(name)),
        [],
        `${status}`,
      );
    }
    const sent = paths["/v1/send"]?.post?.responses["202"]?.headers ?? {};
    assert.ok("Idempotent-Replayed" in sent);
  });

  it("is no larger than 300 KiB in either form, which say the same", async () => {
    const json = await api.app.inject({ method: "GET", url: "/openapi.json" });
    assert.match(String(json.headers["content-type"]), /^application\/json/);
    assert.deepEqual(json.json(), parseYaml(text));
    assert.deepEqual(
      [Buffer.byteLength(text), json.rawPayload.length].filter((bytes) => bytes > 300 * 1024),
      [],
    );
  });

  it("is compressed for who asks so, and not sent again to who has it", async () => {
    for (const [asked, coding] of [
      ["gzip", "gzip"],
      ["gzip, br", "br"],
      ["gzip;q=0, br;q=0.0", undefined],
      ["", undefined],
    ] as const) {
      const url = "/openapi.yaml";
      const first = await api.app.inject({ method: "GET", url, headers: { "accept-encoding": asked } });
      assert.equal(first.headers["content-encoding"], coding, asked);
      const raw = first.rawPayload;
      const plain = coding === "br" ? brotliDecompressSync(raw) : coding === "gzip" ? gunzipSync(raw) : raw;
      assert.equal(plain.toString(), text);
      const headers = { "accept-encoding": asked, "if-none-match": `W/${first.headers.etag}, "x"` };
      const again = await api.app.inject({ method: "GET", url, headers });
      assert.deepEqual([again.statusCode, again.payload], [304, ""], asked);
    }
  });

  it("gives every object a name, and says of every operation, field and parameter what it means", () => {
    const { components } = parseYaml(text) as Description;
    const unnamed = (schema: Schema, at: string): string[] => [
      ...partsOf(schema).flatMap(([name, part]) => {
        const isPart = name.startsWith("allOf");
        return part.type === "object" && !part.allOf && !isPart ? [`${at}.${name}`] : unnamed(part, `${at}.${name}`);
      }),
    ];
    none(
      Object.entries(components.schemas).flatMap(([name, schema]) => unnamed(schema, name)),
      "objects without a name: wrap them into Named(…)",
    );
    none(
      operations.flatMap(({ operationId, requestBody, responses }) =>
        [requestBody, ...Object.values(responses)].flatMap((part) =>
          Object.values(part?.content ?? {}).flatMap(({ schema }) =>
            schema.type === "object" ? [operationId] : unnamed(schema, operationId),
          ),
        ),
      ),
      "bodies and answers without a name",
    );
    const isMute = (part: { description?: string; $ref?: string; allOf?: unknown[] }) =>
      !part.description && !part.$ref && !part.allOf;
    none(
      [
        ...Object.entries(components.schemas).flatMap(([owner, schema]) =>
          [schema, ...(schema.allOf ?? [])].flatMap(({ properties = {} }) =>
            Object.entries(properties).flatMap(([field, part]) => (isMute(part) ? [`${owner}.${field}`] : [])),
          ),
        ),
        ...operations.flatMap(({ operationId, description, parameters = [] }) => [
          ...(description ? [] : [operationId]),
          ...parameters.filter(isMute).map(({ name }) => `${operationId}: ${name}`),
        ]),
      ],
      "without a description: say it in the schema, or in src/api/words.ts where it means the same everywhere",
    );
  });

  it("has the codes of errors as an open list, and every union tells its forms apart or holds plain values", () => {
    const { components } = parseYaml(text) as Description;
    const { ErrorCode, Error: error, BatchResult, Event } = components.schemas as Record<string, Schema>;
    assert.equal(ErrorCode?.["x-open-enum"], true);
    assert.ok(ErrorCode?.enum?.includes("idempotency_conflict"));
    assert.deepEqual(error?.required, ["error", "code"]);
    assert.deepEqual(Object.keys(BatchResult?.discriminator?.mapping ?? {}), [
      "queued",
      "scheduled",
      "simulated",
      "rejected",
    ]);
    assert.equal(Object.keys(Event?.discriminator?.mapping ?? {}).length, 5);
  });

  it("has no anchors and nothing that OpenAPI 3.0 does not know", () => {
    const anchors = text.split("\n").filter((line) => /: [&*][a-z]\d+$/.test(line));
    none(anchors, "anchors, which not every reader resolves");
    none(leftOvers(parseYaml(text), "#"), "words of JSON Schema that OpenAPI 3.0 does not have");
  });

  it("means the same to readers of YAML 1.1, to whom a bare off is false and 1:30 is ninety", async () => {
    const { parse } = await import("yaml");
    assert.deepEqual(parse(text, { version: "1.1" }), parseYaml(text));
  });

  it("lets null stand in every enum that is nullable", () => {
    none(
      findAll(parseYaml(text), "#", (node) =>
        node.nullable === true && Array.isArray(node.enum) && !node.enum.includes(null) ? "enum without null" : null,
      ),
      "a strict reader refuses null here (OpenAPI 3.0.3, clarification of nullable)",
    );
  });
});

describe("the operations", () => {
  it("are exactly the routes that are mounted", () => {
    const all = routesOf(api).filter((route) => !NOT_DESCRIBED.includes(route) && !isOfDashboard(route));
    // Under /api are other services' forms, for password managers (masked/forwarders), which their documents describe.
    const mounted = all.filter((route) => !route.startsWith("HEAD ") && !route.includes(" /api/"));
    const described = operations.map(({ name }) => name);
    none(
      described.filter((route) => route.startsWith("GET ") && !all.includes(route.replace("GET", "HEAD"))),
      "a GET without a HEAD",
    );
    none(
      mounted.filter((route) => !described.includes(route)),
      "mounted and not described (is `schema` missing, or `hide` set?)",
    );
    none(
      described.filter((route) => !mounted.includes(route)),
      "described and not mounted",
    );
    assert.ok(mounted.length >= 50, `only ${mounted.length} routes were found: is the router's tree read rightly?`);
  });

  it("each have a name, a sentence, a tag and every answer they can give", () => {
    none(
      operations.flatMap(({ name, operationId, summary, tags, path, responses, parameters }) => {
        return [
          /^[a-z][A-Za-z0-9]+$/.test(operationId ?? "") ? [] : [`${name}: operationId is ${operationId}`],
          (summary ?? "").length >= 8 ? [] : [`${name}: no summary`],
          tags?.length === 1 ? [] : [`${name}: needs exactly one tag`],
          EVERY_OPERATION.filter((status) => !responses[status]).map(
            (status) => `${name}: does not say when it is ${status}`,
          ),
          Object.keys(responses).some((status) => status.startsWith("2")) ? [] : [`${name}: no success`],
          pathNames(path)
            .filter((word) => !parameters?.some((parameter) => parameter.in === "path" && parameter.name === word))
            .map((word) => `${name}: {${word}} is not described`),
        ].flat();
      }),
      "operations that say too little",
    );
  });

  it("answer errors with the contract's bodies", () => {
    none(
      operations.flatMap(({ name, responses }) =>
        Object.entries(responses)
          .filter(([status]) => /^([45]|default)/.test(status))
          .flatMap(([status, { content, headers }]) => {
            const wanted = status === "429" ? "RateLimit" : "Error";
            const found = content?.["application/json"]?.schema.$ref ?? "";
            const wait = status === "429" || status === "default" ? ["Retry-After"] : [];
            return [
              hasFieldsOf(found, wanted) ? [] : [`${name}: ${status} is not ${wanted}`],
              ["X-Request-ID", ...wait]
                .filter((header) => !headers?.[header])
                .map((h) => `${name}: ${status}, no ${h}`),
            ].flat();
          }),
      ),
      "errors that are described wrongly",
    );
  });

  it("that need a body refuse a request without one, and the others take it", async () => {
    const faults: string[] = [];
    for (const operation of operations.filter(({ requestBody }) => requestBody !== undefined)) {
      const { name, method, path, requestBody } = operation;
      const url = path.replace(/\{\w+\}/g, "00000000-0000-7000-8000-00000000dead");
      const { status, body } = await api.ask(method, url);
      const isRefused = status === 400;
      if (isRefused !== (requestBody?.required === true)) {
        const described = requestBody?.required ? "required" : "optional";
        faults.push(`${name}: the body is described as ${described}, without one it is ${status}: ${body.error}`);
      }
    }
    none(faults, "wrap a body that may be absent into Nullable(…), and no other");
  });

  it("refuse a field that they do not know, also where they take no body", async () => {
    const faults: string[] = [];
    for (const { name, method, path, requestBody } of operations.filter((operation) => operation.method !== "GET")) {
      const url = path.replace(/\{\w+\}/g, "00000000-0000-7000-8000-00000000dead");
      const { status, body } = await api.ask(method, url, { no_such_field: 1 });
      // Where others are missing, one of them may be named first.
      const isNamed = requestBody?.required === true || body.field === "no_such_field";
      if (status !== 400 || !isNamed) faults.push(`${name}: ${status} ${JSON.stringify(body)}`);
    }
    none(faults, "an unknown field must be a 400 that names it");
  });

  it("that take no body are content with an empty one, or with a type and nothing behind it", async () => {
    for (const body of ["{}", "null", ""]) {
      const headers = { "content-type": "application/json" };
      const path = "/v1/emails/00000000-0000-7000-8000-00000000dead/retry";
      const { status } = await api.ask("POST", path, body, { headers });
      assert.equal(status, 404, JSON.stringify(body));
    }
  });
});

describe("the contract", () => {
  for (const [feature, expected] of Object.entries(CONTRACT)) {
    it(`is complete below ${feature}`, (t) => {
      const routes = routesOf(api);
      if (!routes.some((route) => route.split(" ")[1]?.startsWith(feature))) {
        t.skip(`nothing is mounted below ${feature} yet`);
        return;
      }
      none(
        expected.filter((route) => !routes.includes(route)),
        "routes that were promised and that the server has not",
      );
    });
  }
});

function hasFieldsOf($ref: string, wanted: string): boolean {
  const { components } = parsed;
  const fields = Object.keys(components.schemas[wanted]?.properties ?? {});
  const schema = components.schemas[$ref.split("/").at(-1) ?? ""];
  if (schema?.allOf?.some((part) => part.$ref && hasFieldsOf(part.$ref, wanted))) return true;
  return fields.every((field) => field in (schema?.properties ?? {}));
}

/** The schemas right below one, with the word that each stands at. */
function partsOf(schema: Schema): [name: string, part: Schema][] {
  const lists = (["anyOf", "oneOf", "allOf"] as const).flatMap((word) =>
    (schema[word] ?? []).map((part, at) => [`${word}${at}`, part] as [string, Schema]),
  );
  const single = [schema.items, schema.additionalProperties].filter((part) => typeof part === "object");
  return [
    ...Object.entries(schema.properties ?? {}),
    ...lists,
    ...single.map((part) => ["[]", part] as [string, Schema]),
  ];
}

function pathNames(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? "");
}

type Node = Record<string, unknown>;

/** Pointers of all nodes for which `judge` says a word, with that word. */
function findAll(value: unknown, pointer: string, judge: (node: Node) => string | null): string[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => findAll(item, `${pointer}/${index}`, judge));
  if (value === null || typeof value !== "object") return [];
  const word = judge(value as Node);
  const below = Object.entries(value).flatMap(([key, item]) =>
    findAll(item, `${pointer}/${key.replaceAll("/", "~1")}`, judge),
  );
  return word === null ? below : [`${pointer}: ${word}`, ...below];
}

/** Only in schemas: a property may well be called `const` or `examples`. */
function leftOvers(document: unknown, pointer: string): string[] {
  const unknownWords = ["$id", "$schema", "$defs", "const", "if", "then", "else", "patternProperties", "examples"];
  return findAll(document, pointer, (node) => {
    const isSchema = "type" in node && !("properties" in node && typeof node.type === "object");
    if (!isSchema) return "$id" in node && typeof node.$id === "string" ? "$id" : null;
    if (Array.isArray(node.type)) return "a list of types";
    return unknownWords.find((word) => word in node) ?? null;
  });
}
