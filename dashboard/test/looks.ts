// Every page, whose window is pulled to three widths, light and dark: a picture kept by the run, no violation that axe knows,
// nothing wider than the window, no button, figure or line of a timeline cut off, nothing that the browser complains of.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "playwright-core";
import { type Stage, windowOf } from "./stage.ts";

const THEMES = ["light", "dark"] as const;
type Theme = (typeof THEMES)[number];
const WIDEST = 2560;
/** axe looks at the first two: what it knows does not change beyond. */
const WIDTHS = [360, 1280, WIDEST];
/** A frame without content is a picture of one. */
const FRAME_MS = 5_000;

/**
 * `as`: who looks, when it is not the owner. `cut`: once the page is there, the connection is not. `unanswered`: requests
 * that get no answer, so that the page goes on loading.
 */
export type Look = {
  name: string;
  path: string;
  ready: string;
  as?: "nobody" | "newcomer";
  cut?: true;
  unanswered?: string;
};
export type Seen = { pages: number; violations: string[]; faults: string[] };

/** The pages of a stage; `ready` is a text that stands there once it is whole. */
function pagesOf({ mails, records, links, inbound, templates, masked, own_mail }: Stage): Look[] {
  return [
    { name: "start", path: "/", ready: "Make an API key" },
    { name: "keys", path: "/keys", ready: "read at" },
    { name: "emails", path: "/emails", ready: "read at" },
    { name: "emails-filtered", path: "/emails?status=bounced&from=nordkiosk", ready: "read at" },
    { name: "emails-empty", path: "/emails?tag=nothing", ready: "No e-mail fits these filters" },
    { name: "emails-live", path: "/emails?live=true", ready: " s ago" },
    { name: "emails-cut", path: "/emails?live=true", ready: " s ago", cut: true },
    { name: "inbound-live", path: "/inbound?live=true", ready: " s ago" },
    { name: "inbound-cut", path: "/inbound?live=true", ready: " s ago", cut: true },
    { name: "email-cut", path: `/emails/${mails.delivered}`, ready: "Accepted by the API", cut: true },
    { name: "email-delivered", path: `/emails/${mails.delivered}`, ready: "Accepted by the API" },
    { name: "email-deferred", path: `/emails/${mails.deferred}`, ready: "asks us to slow down" },
    { name: "email-bounced", path: `/emails/${mails.bounced}`, ready: "this address takes no mail" },
    { name: "email-several", path: `/emails/${mails.several}`, ready: "3 recipients" },
    { name: "email-scheduled", path: `/emails/${mails.scheduled}`, ready: "Waits for its time" },
    { name: "email-simulated", path: `/emails/${mails.simulated}`, ready: "a test key sent it" },
    { name: "email-missing", path: "/emails/01a20955-f37d-7779-8000-000000000000", ready: "Not here" },
    { name: "domains", path: "/domains", ready: "read at" },
    { name: "domain-verified", path: `/domains/${records.verified}`, ready: "Copy all" },
    { name: "domain-pending", path: `/domains/${records.pending}`, ready: "Copy all" },
    { name: "suppressions", path: "/suppressions", ready: "read at" },
    { name: "suppressions-none", path: "/suppressions?query=nobody@nowhere.example", ready: "is not suppressed" },
    { name: "webhooks", path: "/webhooks", ready: "read at" },
    { name: "webhook", path: `/webhooks/${records.webhook}`, ready: "read at" },
    { name: "settings-organization", path: "/settings/organization", ready: "left until" },
    { name: "settings-people", path: "/settings/people", ready: "Take back" },
    { name: "settings-security", path: "/settings/security", ready: "Last used" },
    { name: "settings-audit-log", path: "/settings/audit-log", ready: "read at" },
    { name: "settings-data", path: "/settings/data", ready: "Whose data is asked for?" },
    { name: "settings-data-found", path: "/settings/data?email=maja.lind@posteo.example", ready: "Download JSON" },
    { name: "sign-in", path: "/sign-in", ready: "Password", as: "nobody" },
    { name: "invitation", path: links.invitation, ready: "is invited with the role", as: "nobody" },
    { name: "sign-up", path: "/sign-up", ready: "I have an account already", as: "nobody" },
    { name: "join", path: links.signUp, ready: "What will you send", as: "nobody" },
    { name: "link-over", path: "/welcome#used", ready: "It was used already", as: "nobody" },
    { name: "inbound", path: "/inbound", ready: "read at" },
    { name: "inbound-none", path: "/inbound?q=nothing-of-this", ready: "No mail fits these filters" },
    { name: "inbound-mail", path: `/inbound/${inbound.mail}`, ready: "Handed on" },
    { name: "inbound-quarantined", path: `/inbound/${inbound.quarantined}`, ready: "In quarantine" },
    { name: "rules", path: `/inbound/rules?domain_id=${inbound.domain}`, ready: "read at" },
    { name: "rule", path: `/inbound/rules/${inbound.rule}`, ready: "Save the rule" },
    {
      name: "rule-loading",
      path: `/inbound/rules/${inbound.rule}`,
      ready: "Rules",
      unanswered: "**/v1/inbound-rules/*",
    },
    { name: "aliases", path: "/inbound/aliases", ready: "read at" },
    { name: "spam", path: `/inbound/spam?domain_id=${inbound.domain}`, ready: "Checked by" },
    { name: "simulate", path: "/inbound/simulate", ready: "The result appears here" },
    { name: "templates", path: "/templates", ready: "read at" },
    { name: "templates-none", path: "/templates?query=nothing", ready: "No template fits" },
    { name: "template", path: `/templates/${templates.order}`, ready: "Links cannot be followed" },
    { name: "template-phone", path: `/templates/${templates.order}?view=phone`, ready: "Links cannot be followed" },
    {
      name: "template-loading",
      path: `/templates/${templates.order}`,
      ready: "As text",
      unanswered: "**/v1/templates/*/preview",
    },
    { name: "template-difference", path: `/templates/${templates.order}?part=difference`, ready: "No difference" },
    { name: "template-versions", path: `/templates/${templates.order}/versions`, ready: "read at" },
    {
      name: "template-versions-same",
      path: `/templates/${templates.order}/versions?version=2`,
      ready: "No difference",
    },
    { name: "operator-organizations", path: "/operator/organizations", ready: "read at" },
    {
      name: "operator-organizations-none",
      path: "/operator/organizations?query=nothing",
      ready: "No organization fits",
    },
    { name: "operator-queue", path: "/operator/queue", ready: "read at" },
    { name: "operator-queue-none", path: "/operator/queue?query=nothing", ready: "No destination fits" },
    {
      name: "operator-queue-suspended",
      path: "/operator/queue/moving.kontor.example",
      ready: "until somebody resumes it",
    },
    { name: "operator-queue-destination", path: "/operator/queue/kontor.example", ready: "read at" },
    { name: "operator-sources", path: "/operator/sources", ready: "read at" },
    { name: "operator-sources-none", path: "/operator/sources?query=nothing", ready: "No address fits" },
    { name: "operator-sources-denied", path: "/operator/sources", ready: "does not include this", as: "newcomer" },
    { name: "operator-relays", path: "/operator/relays", ready: "read at" },
    { name: "operator-relays-none", path: "/operator/relays?state=standby", ready: "No relay fits" },
    { name: "operator-relays-denied", path: "/operator/relays", ready: "does not include this", as: "newcomer" },
    { name: "operator-mail", path: "/operator/mail", ready: "read at" },
    { name: "operator-mail-none", path: "/operator/mail?query=nothing", ready: "No mail fits" },
    { name: "operator-mail-denied", path: "/operator/mail", ready: "does not include this", as: "newcomer" },
    { name: "operator-mail-one", path: `/operator/mail/${own_mail.letter}`, ready: "Load them" },
    { name: "operator-mail-complaint", path: `/operator/mail/${own_mail.complaint}`, ready: "Look at this one" },
    { name: "operator-mail-missing", path: `/operator/mail/${records.job}`, ready: "Not here" },
    { name: "operator-health", path: "/operator/health", ready: "asked by" },
    { name: "operator-health-denied", path: "/operator/health", ready: "does not include this", as: "newcomer" },
    { name: "operator-queue-denied", path: "/operator/queue", ready: "does not include this", as: "newcomer" },
    { name: "start-in-review", path: "/", ready: "Fill in a new test key", as: "newcomer" },
    { name: "masked", path: "/masked", ready: "read at" },
    { name: "masked-none", path: "/masked?q=nothing", ready: "No alias fits" },
    { name: "masked-alias", path: `/masked/${masked.alias}`, ready: "Nobody received it" },
    { name: "masked-contacts", path: `/masked/${masked.alias}?show=contacts`, ready: "read at" },
    { name: "masked-check", path: `/masked/${masked.alias}?show=check`, ready: "Nothing is sent, counted or kept" },
    { name: "masked-destinations", path: "/masked/destinations", ready: "read at" },
    { name: "masked-mailbox", path: `/masked/destinations/${masked.mailbox}`, ready: "2 patterns" },
    { name: "masked-mailbox-plain", path: `/masked/destinations/${masked.plain}`, ready: "No pattern yet" },
    { name: "masked-mailbox-missing", path: `/masked/destinations/${records.job}`, ready: "Not here" },
    { name: "masked-failed", path: "/masked/failed", ready: "read at" },
    { name: "masked-failed-none", path: `/masked/failed?alias_id=${masked.quiet}`, ready: "No failed mail fits" },
    { name: "masked-settings", path: "/masked/settings", ready: "Trusted mailing lists" },
    { name: "domain-dkim", path: `/domains/${records.verified}/dkim`, ready: "Signs" },
    { name: "domain-dkim-pending", path: `/domains/${records.pending}/dkim`, ready: "Publish its record" },
    { name: "domain-warming", path: `/domains/${records.verified}/warming`, ready: "Warmed" },
    { name: "domain-statistics", path: `/domains/${records.verified}/statistics`, ready: "Recipients, by UTC time" },
    { name: "domain-providers", path: `/domains/${records.verified}/statistics?by=provider`, ready: "CSV" },
    { name: "domain-dmarc", path: `/domains/${records.verified}/dmarc`, ready: "pass DMARC" },
    {
      name: "domain-dmarc-reports",
      path: `/domains/${records.verified}/dmarc?list=reports`,
      ready: "reporter.example",
    },
    { name: "domain-dmarc-upload", path: `/domains/${records.verified}/dmarc?list=upload`, ready: "Drop reports here" },
    { name: "domain-tls", path: `/domains/${records.verified}/tls`, ready: "Mail leaves over TLS" },
    { name: "domain-spam", path: `/domains/${inbound.domain}/spam`, ready: "Checked by" },
    { name: "domain-spam-none", path: `/domains/${records.verified}/spam`, ready: "does not receive" },
    { name: "suppressions-import", path: "/suppressions/import", ready: "Drop a CSV file here" },
    { name: "suppressions-import-job", path: `/suppressions/import?job=${records.job}`, ready: "Nothing is added yet" },
    { name: "webhook-deliveries", path: "/webhooks/deliveries", ready: "read at" },
    {
      name: "webhook-deliveries-none",
      path: "/webhooks/deliveries?status=failed&event=email.complained",
      ready: "No delivery here",
    },
    { name: "webhook-signature", path: "/webhooks/signature", ready: "The result appears here" },
    { name: "nowhere", path: "/nowhere", ready: "There is no page at this address" },
  ];
}

/** `only`: pages whose name fits. */
export async function lookAtPages(stage: Stage, folder: string, only: RegExp): Promise<Seen> {
  mkdirSync(folder, { recursive: true });
  const seen: Seen = { pages: 0, violations: [], faults: [] };
  const pages = pagesOf(stage).filter(({ name }) => only.test(name));
  const people = { owner: stage.owner, newcomer: stage.newcomer, nobody: null };
  for (const [name, as] of Object.entries(people)) {
    const { page, complaints, close } = await stage.open({ as });
    for (const look of pages.filter((one) => (one.as ?? "owner") === name)) {
      await resize(page, WIDTHS[0] as number);
      const isReady = await load(page, look);
      if (!isReady) seen.faults.push(`${look.name}: “${look.ready}” did not appear`);
      for (const width of WIDTHS) {
        await resize(page, width);
        for (const theme of THEMES) {
          const { violations, faults } = await lookAt(page, theme, width, join(folder, `${look.name}-${width}`));
          const where = `${look.name}-${width}-${theme}`;
          seen.violations.push(...violations.map((text) => `${where}: ${text}`));
          seen.faults.push(...faults.map((text) => `${where}: ${text}`));
        }
      }
      await page.context().setOffline(false);
      await page.unrouteAll({ behavior: "ignoreErrors" });
      const others = complaints.splice(0).filter((text) => !expectedOn(look).test(text));
      seen.faults.push(...others.map((text) => `${look.name}: ${text}`));
    }
    await close();
  }
  seen.pages = pages.length;
  return seen;
}

/** As somebody pulls at the window: what follows its width does so in a frame of its own. */
async function resize(page: Page, width: number): Promise<void> {
  await page.setViewportSize(windowOf(width));
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
}

async function load(page: Page, { path, ready, cut, unanswered }: Look): Promise<boolean> {
  await page.emulateMedia({ colorScheme: THEMES[0] });
  // Away first: another token behind # alone loads nothing.
  await page.goto("about:blank");
  if (unanswered) await page.route(unanswered, () => undefined);
  await page.goto(path);
  const shows = (text: string): Promise<boolean> =>
    page
      .getByText(text)
      .first()
      .waitFor()
      .then(
        () => true,
        () => false,
      );
  let isReady = await shows(ready);
  if (cut) {
    await page.locator(".live[data-state=live]").waitFor();
    await page.context().setOffline(true);
    isReady &&= await shows("The connection is cut");
  }
  await framesAreThere(page);
  return isReady;
}

/** The system's theme changes while the page is there, which a page must take as well as to be loaded with it. */
async function lookAt(page: Page, theme: Theme, width: number, picture: string): Promise<Omit<Seen, "pages">> {
  await page.emulateMedia({ colorScheme: theme });
  await page.locator(`html[data-theme=${theme}]`).waitFor();
  await page.screenshot({ path: `${picture}-${theme}.png` });
  return {
    violations: width === WIDEST ? [] : await violationsOn(page, theme),
    faults: [
      ...((await isTooWide(page)) ? ["wider than the window"] : []),
      ...(await cutButtons(page)).map((name) => `“${name}” is cut off`),
      ...(await cutText(page)).map((text) => `“${text}” is cut`),
    ],
  };
}

/** HTML of a mail or a template comes after the page around it. */
async function framesAreThere(page: Page): Promise<void> {
  if ((await page.locator("iframe.mail").count()) === 0) return;
  const content = page.frameLocator("iframe.mail").locator("body *").first();
  await content.waitFor({ state: "attached", timeout: FRAME_MS }).catch(() => undefined);
}

/** What the browser says of an answer that the page is about. */
function expectedOn({ name, as, cut }: Look): RegExp {
  if (cut) return /INTERNET_DISCONNECTED/;
  if (name.endsWith("-missing") || name === "link-over") return /status of 40[14]/;
  if (name.endsWith("-denied")) return /status of 403/;
  return as === "nobody" ? /status of 401/ : /^$/;
}

const COLOR_RULES = ["color-contrast", "link-in-text-block"];

/** Frames of mail are left out, as their content is not ours; without others axe needs no page of its own. The second theme changes colors alone. */
async function violationsOn(page: Page, theme: Theme): Promise<string[]> {
  const axe = new AxeBuilder({ page }).exclude("iframe.mail").setLegacyMode();
  const { violations } = await (theme === THEMES[0] ? axe : axe.withRules(COLOR_RULES)).analyze();
  return violations.map(({ id, nodes }) => `${id} (${nodes.map(({ target }) => target.join(" ")).join("; ")})`);
}

function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate("document.documentElement.scrollWidth > innerWidth");
}

/** Buttons that stand beyond the edge of their cell, where nobody sees them whole. */
function cutButtons(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll("td .btn")]
    .filter((one) => one.offsetParent && one.getBoundingClientRect().right > one.closest("td").getBoundingClientRect().right + 1)
    .map((one) => one.textContent)`);
}

/** Figures and days that are shortened, and words of a timeline that leave its box. */
function cutText(page: Page): Promise<string[]> {
  return page.evaluate(`[
    ...[...document.querySelectorAll("td.num")].filter((one) => one.scrollWidth > one.clientWidth + 1),
    ...[...document.querySelectorAll(".line li > div")].filter((one) => one.scrollWidth > one.clientWidth + 1),
  ].map((one) => one.textContent)`);
}
