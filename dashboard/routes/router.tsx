// The pages and their addresses. Search parameters hold every filter, so that a view is a link; each page is loaded when opened.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { readDmarcView, readStatsView } from "../lib/domain-views.ts";
import { readEmailFilters } from "../lib/email-filters.ts";
import { readAliasFilters, readInboundFilters, readOfDomain } from "../lib/inbound-filters.ts";
import {
  readAddressView,
  readAuditFilters,
  readDeliveryFilters,
  readImport,
  readLogFilters,
  readOrganizationFilters,
  readPageView,
  readSuppressionFilters,
  readTemplateFilters,
  readTemplateView,
  readVersionsView,
} from "../lib/list-filters.ts";
import {
  readDestinationFilters,
  readFailedFilters,
  readMailboxView,
  readMaskedAliasView,
  readMaskedFilters,
} from "../lib/masked-filters.ts";
import { readOwnMailFilters, readQueueFilters, readRelayFilters, readSourceFilters } from "../lib/operator-filters.ts";
import { LinkPage } from "./link.tsx";
import { NotHere, PageFault } from "./not-here.tsx";
import { readSignIn, SignIn } from "./sign-in.tsx";
import { SignUp } from "./sign-up.tsx";
import { Top } from "./top.tsx";

const root = createRootRoute({ component: Top, notFoundComponent: NotHere, errorComponent: PageFault });

const settings = [
  createRoute({
    getParentRoute: () => root,
    path: "/settings/organization",
    component: lazyRouteComponent(() => import("./organization.tsx"), "OrganizationPage"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/settings/people",
    component: lazyRouteComponent(() => import("./people.tsx"), "PeoplePage"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/settings/security",
    component: lazyRouteComponent(() => import("./security.tsx"), "SecurityPage"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/settings/audit-log",
    validateSearch: readAuditFilters,
    component: lazyRouteComponent(() => import("./audit-log.tsx"), "AuditLogPage"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/settings/data",
    validateSearch: readAddressView,
    component: lazyRouteComponent(() => import("./address-data.tsx"), "AddressDataPage"),
  }),
] as const;

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: readSignIn,
  component: SignIn,
});
const welcome = createRoute({ getParentRoute: () => root, path: "/welcome", component: LinkPage });
const invitation = createRoute({ getParentRoute: () => root, path: "/invitation", component: LinkPage });
const signUp = createRoute({ getParentRoute: () => root, path: "/sign-up", component: SignUp });
const join = createRoute({ getParentRoute: () => root, path: "/join", component: LinkPage });
const reset = createRoute({ getParentRoute: () => root, path: "/reset", component: LinkPage });

const start = createRoute({
  getParentRoute: () => root,
  path: "/",
  component: lazyRouteComponent(() => import("./start.tsx"), "Start"),
});
const keys = createRoute({
  getParentRoute: () => root,
  path: "/keys",
  validateSearch: readPageView,
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
  validateSearch: readPageView,
  component: lazyRouteComponent(() => import("./domains.tsx"), "Domains"),
});
const domain = createRoute({
  getParentRoute: () => root,
  path: "/domains/$id",
  component: lazyRouteComponent(() => import("./domain/records.tsx"), "OneDomain"),
});
const templates = createRoute({
  getParentRoute: () => root,
  path: "/templates",
  validateSearch: readTemplateFilters,
  component: lazyRouteComponent(() => import("./templates/templates.tsx"), "Templates"),
});
const templateVersions = createRoute({
  getParentRoute: () => root,
  path: "/templates/$id/versions",
  validateSearch: readVersionsView,
  component: lazyRouteComponent(() => import("./templates/versions.tsx"), "Versions"),
});
const template = createRoute({
  getParentRoute: () => root,
  path: "/templates/$id",
  validateSearch: readTemplateView,
  component: lazyRouteComponent(() => import("./templates/one-template.tsx"), "OneTemplate"),
});
const domainPages = [
  createRoute({
    getParentRoute: () => root,
    path: "/domains/$id/dkim",
    component: lazyRouteComponent(() => import("./domain/dkim.tsx"), "DkimPage"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/domains/$id/warming",
    component: lazyRouteComponent(() => import("./domain/warming.tsx"), "WarmingPage"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/domains/$id/statistics",
    validateSearch: readStatsView,
    component: lazyRouteComponent(() => import("./domain/statistics.tsx"), "StatisticsPage"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/domains/$id/dmarc",
    validateSearch: readDmarcView,
    component: lazyRouteComponent(() => import("./domain/dmarc.tsx"), "DmarcPage"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/domains/$id/tls",
    component: lazyRouteComponent(() => import("./domain/tls.tsx"), "TlsPage"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/domains/$id/spam",
    component: lazyRouteComponent(() => import("./domain/spam.tsx"), "DomainSpamPage"),
  }),
] as const;
const webhooks = createRoute({
  getParentRoute: () => root,
  path: "/webhooks",
  validateSearch: readPageView,
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

const inbound = createRoute({
  getParentRoute: () => root,
  path: "/inbound",
  validateSearch: readInboundFilters,
  component: lazyRouteComponent(() => import("./inbound/inbound.tsx"), "Inbound"),
});
const inboundMail = createRoute({
  getParentRoute: () => root,
  path: "/inbound/$id",
  component: lazyRouteComponent(() => import("./inbound/one-mail.tsx"), "OneInbound"),
});
const rules = createRoute({
  getParentRoute: () => root,
  path: "/inbound/rules",
  validateSearch: readOfDomain,
  component: lazyRouteComponent(() => import("./inbound/rules.tsx"), "Rules"),
});
const newRule = createRoute({
  getParentRoute: () => root,
  path: "/inbound/rules/new",
  validateSearch: readOfDomain,
  component: lazyRouteComponent(() => import("./inbound/rule.tsx"), "NewRule"),
});
const rule = createRoute({
  getParentRoute: () => root,
  path: "/inbound/rules/$id",
  component: lazyRouteComponent(() => import("./inbound/rule.tsx"), "OneRule"),
});
const aliases = createRoute({
  getParentRoute: () => root,
  path: "/inbound/aliases",
  validateSearch: readAliasFilters,
  component: lazyRouteComponent(() => import("./inbound/aliases.tsx"), "Aliases"),
});
const spam = createRoute({
  getParentRoute: () => root,
  path: "/inbound/spam",
  validateSearch: readOfDomain,
  component: lazyRouteComponent(() => import("./inbound/spam.tsx"), "Spam"),
});
const simulate = createRoute({
  getParentRoute: () => root,
  path: "/inbound/simulate",
  component: lazyRouteComponent(() => import("./inbound/simulate.tsx"), "Simulate"),
});
const operator = [
  createRoute({
    getParentRoute: () => root,
    path: "/operator/organizations",
    validateSearch: readOrganizationFilters,
    component: lazyRouteComponent(() => import("./operator/organizations.tsx"), "Organizations"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/operator/queue",
    validateSearch: readQueueFilters,
    component: lazyRouteComponent(() => import("./operator/queue.tsx"), "Queue"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/operator/queue/$domain",
    component: lazyRouteComponent(() => import("./operator/destination.tsx"), "OneDestination"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/operator/sources",
    validateSearch: readSourceFilters,
    component: lazyRouteComponent(() => import("./operator/sources.tsx"), "Sources"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/operator/relays",
    validateSearch: readRelayFilters,
    component: lazyRouteComponent(() => import("./operator/relays.tsx"), "Relays"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/operator/mail",
    validateSearch: readOwnMailFilters,
    component: lazyRouteComponent(() => import("./operator/mail.tsx"), "OwnMail"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/operator/mail/$id",
    component: lazyRouteComponent(() => import("./operator/one-mail.tsx"), "OneOwnMail"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/operator/health",
    component: lazyRouteComponent(() => import("./operator/health.tsx"), "HealthPage"),
  }),
] as const;
const inboundPages = [inbound, inboundMail, rules, newRule, rule, aliases, spam, simulate] as const;

const masked = [
  createRoute({
    getParentRoute: () => root,
    path: "/masked",
    validateSearch: readMaskedFilters,
    component: lazyRouteComponent(() => import("./masked/masked.tsx"), "Masked"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/masked/destinations",
    validateSearch: readDestinationFilters,
    component: lazyRouteComponent(() => import("./masked/destinations.tsx"), "Destinations"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/masked/destinations/$id",
    validateSearch: readMailboxView,
    component: lazyRouteComponent(() => import("./masked/mailbox.tsx"), "Mailbox"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/masked/failed",
    validateSearch: readFailedFilters,
    component: lazyRouteComponent(() => import("./masked/failed.tsx"), "FailedMail"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/masked/settings",
    component: lazyRouteComponent(() => import("./masked/settings.tsx"), "MaskedSettingsPage"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/masked/$id",
    validateSearch: readMaskedAliasView,
    component: lazyRouteComponent(() => import("./masked/one-alias.tsx"), "OneMaskedAlias"),
  }),
] as const;

const lists = [
  createRoute({
    getParentRoute: () => root,
    path: "/suppressions/import",
    validateSearch: readImport,
    component: lazyRouteComponent(() => import("./import.tsx"), "ImportPage"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/webhooks/deliveries",
    validateSearch: readLogFilters,
    component: lazyRouteComponent(() => import("./webhook-deliveries.tsx"), "WebhookDeliveries"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/webhooks/signature",
    component: lazyRouteComponent(() => import("./webhook-signature.tsx"), "WebhookSignature"),
  }),
] as const;

export const router = createRouter({
  routeTree: root.addChildren([
    ...[start, emails, email, domains, domain, suppressions, webhooks, webhook, keys],
    ...settings,
    ...[signIn, signUp, welcome, invitation, join, reset],
    ...inboundPages,
    ...operator,
    ...[templates, template, templateVersions],
    ...masked,
    ...domainPages,
    ...lists,
  ]),
  defaultPreload: "intent",
  // What a page did not read out of its address is not passed on to it.
  search: { strict: true },
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
