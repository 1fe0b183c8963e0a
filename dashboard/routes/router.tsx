// The pages and their addresses. Search parameters hold every filter, so that a view is a link; each page is loaded when opened.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { readEmailFilters } from "../lib/email-filters.ts";
import { readDeliveryFilters, readSuppressionFilters } from "../lib/list-filters.ts";
import { NotHere, PageFault } from "./not-here.tsx";
import { Shell } from "./shell.tsx";

const root = createRootRoute({ component: Shell, notFoundComponent: NotHere, errorComponent: PageFault });

const start = createRoute({
  getParentRoute: () => root,
  path: "/",
  component: lazyRouteComponent(() => import("./start.tsx"), "Start"),
});
const keys = createRoute({
  getParentRoute: () => root,
  path: "/keys",
  component: lazyRouteComponent(() => import("./keys.tsx"), "Keys"),
});
const emails = createRoute({
  getParentRoute: () => root,
  path: "/emails",
  validateSearch: readEmailFilters,
  component: lazyRouteComponent(() => import("./emails.tsx"), "Emails"),
});
const email = createRoute({
  getParentRoute: () => root,
  path: "/emails/$id",
  component: lazyRouteComponent(() => import("./email.tsx"), "OneEmail"),
});

const domains = createRoute({
  getParentRoute: () => root,
  path: "/domains",
  component: lazyRouteComponent(() => import("./domains.tsx"), "Domains"),
});
const domain = createRoute({
  getParentRoute: () => root,
  path: "/domains/$id",
  component: lazyRouteComponent(() => import("./domain.tsx"), "OneDomain"),
});
const webhooks = createRoute({
  getParentRoute: () => root,
  path: "/webhooks",
  component: lazyRouteComponent(() => import("./webhooks.tsx"), "Webhooks"),
});
const webhook = createRoute({
  getParentRoute: () => root,
  path: "/webhooks/$id",
  validateSearch: readDeliveryFilters,
  component: lazyRouteComponent(() => import("./webhook.tsx"), "OneWebhook"),
});
const suppressions = createRoute({
  getParentRoute: () => root,
  path: "/suppressions",
  validateSearch: readSuppressionFilters,
  component: lazyRouteComponent(() => import("./suppressions.tsx"), "Suppressions"),
});

export const router = createRouter({
  routeTree: root.addChildren([start, emails, email, domains, domain, suppressions, webhooks, webhook, keys]),
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
