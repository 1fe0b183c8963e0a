// The pages and their addresses. Search parameters hold every filter, so that a view is a link; each page is loaded when opened.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { readEmailFilters } from "../lib/email-filters.ts";
import { NotHere, PageFault } from "./not-here.tsx";
import { Shell } from "./shell.tsx";

const root = createRootRoute({ component: Shell, notFoundComponent: NotHere, errorComponent: PageFault });

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

export const router = createRouter({
  routeTree: root.addChildren([emails, email]),
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
