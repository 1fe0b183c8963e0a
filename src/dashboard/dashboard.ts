// What stands beside the API for people: the built pages at `/`, and /dashboard/api with its own description. The latter is a scope of its own: nothing of it
// is in /openapi.yaml, and no API key counts here.
import swagger from "@fastify/swagger";
import { describeDashboard } from "../api/openapi.ts";
import type { Api } from "../http/http.ts";
import type { World } from "../platform/world.ts";
import { mountMailFrame } from "./mail-frame.ts";
import { isBuilt, mountPages } from "./pages.ts";

/** Mounts it, with what `mount` mounts below /dashboard/api. */
export function mountDashboard(api: Api, world: Pick<World, "config">, mount: (scope: Api) => void): void {
  mountPages(api);
  api.register(async (scope) => {
    const dashboard = scope as unknown as Api;
    await scope.register(swagger, describeDashboard(world.config.base_url));
    mount(dashboard);
    mountMailFrame(dashboard);
    const hidden = { config: { needs: "nobody" as const }, schema: { hide: true } };
    dashboard.get("/dashboard/api/openapi.json", hidden, async (_request, reply) =>
      reply
        .type("application/json; charset=utf-8")
        .send(JSON.stringify((scope as unknown as Described).describeDashboard())),
    );
  });
}

/** The sentence for a start without the pages, or null. */
export function missingPages(): string | null {
  return isBuilt()
    ? null
    : "The dashboard is not built, so that only the API is served; npm run dashboard -- build makes it.";
}

type Described = { describeDashboard(): object };
