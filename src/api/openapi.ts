// The head of /openapi.yaml (OpenAPI 3.0); the paths come from the routes' own schemas.
import type { FastifyDynamicSwaggerOptions } from "@fastify/swagger";

/** Settings of @fastify/swagger; every operation of /v1 needs a bearer key. */
export function describeApi(baseUrl: string): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: "3.0.3",
      info: {
        title: "Postern",
        version: "1.0.0",
        description: "Self-hosted e-mail for products: sending, inbound processing and masked addresses.",
        license: { name: "MIT", url: "https://spdx.org/licenses/MIT.html" },
      },
      servers: [{ url: baseUrl }],
      components: {
        securitySchemes: {
          bearer: { type: "http", scheme: "bearer", description: "An API key: svc_live_… or svc_test_…" },
        },
      },
      security: [{ bearer: [] }],
    },
    refResolver: { buildLocalReference: (json, _base, _fragment, index) => String(json.$id ?? `schema${index}`) },
  };
}
