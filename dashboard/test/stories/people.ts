// Stories of people: signing in and out, second factors, invitations, organizations, sessions that end.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { Secret, TOTP } from "otpauth";
import type { Locator, Page } from "playwright-core";
import type { Scene } from "../../../test/support/scene.ts";
import { linkIn, mailTo, readyToMail } from "../own-mail.ts";
import { addMember, askAs, invite, PASSWORD } from "../persons.ts";
import { type Story, unexpected } from "../story.ts";

const TABS_MAX = 80;
const MAIN = resolve(import.meta.dirname, "../../../src/main.ts");

/** Pages with buttons that change something, and what stands there once they are whole. */
const VIEWED = [
  ...["/emails", "/domains", "/keys", "/webhooks", "/suppressions", "/inbound/aliases", "/templates"],
  ...["/masked", "/masked/destinations"],
].map((path) => [path, "read at"] as const);
const CHANGING = /^(Add|Make|New|Change|Remove|Revoke|Compose|Delete|Ask again|Invite|Save)/;

export const PEOPLE_STORIES: readonly Story[] = [
  {
    name: "who is not signed in is asked to, and comes back to the page they wanted; signed out, the cookie is worth nothing",
    async play({ scene, owner, open }) {
      const { email } = await addMember(scene, owner, { email: "maja@nordkiosk.example", name: "Maja", role: "admin" });
      const { page, close } = await open({ as: null });
      await page.goto("/emails?status=bounced");
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      await signIn(page, email, "wrong password");
      await page.getByText("The address or the password is not right").waitFor();
      await signIn(page, "nobody@nordkiosk.example", "wrong password");
      await page.getByText("The address or the password is not right").waitFor();
      await signIn(page, email, PASSWORD);
      await page.getByRole("heading", { name: "E-mails" }).waitFor();
      assert.match(page.url(), /\/emails\?status=bounced$/);
      const [cookie] = await page.context().cookies();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      assert.equal((await askAs(scene, cookie?.value ?? "", ["GET", "session"])).status, 401);
      await page.goto("/sign-in?to=//evil.example/");
      await signIn(page, email, PASSWORD);
      await page.getByRole("heading", { name: "Start" }).waitFor();
      await close();
    },
  },
  {
    name: "a session that ends meanwhile: the page asks for the password, and the act goes on",
    async play({ scene, owner, open }) {
      const who = await addMember(scene, owner, { email: "tom@nordkiosk.example", name: "Tom", role: "developer" });
      const { page, close } = await open({ as: who });
      await page.goto("/suppressions");
      await page.getByRole("button", { name: "Add an address" }).click();
      await page.getByRole("textbox", { name: "Address" }).fill("ended@posteo.example");
      await askAs(scene, who.token, ["POST", "sign-out-everywhere"]);
      await page.getByRole("button", { name: "Add", exact: true }).click();
      const again = page.getByRole("dialog", { name: "Your session has ended" });
      await again.getByLabel("Password").fill(PASSWORD);
      await again.getByRole("button", { name: "Sign in", exact: true }).click();
      await page.getByRole("cell", { name: "ended@posteo.example", exact: true }).waitFor();
      await close();
    },
  },
  {
    name: "with a second factor the password is not enough: a code or a recovery code lets in, once",
    async play({ scene, owner, open }) {
      const who = await addMember(scene, owner, { email: "aino@nordkiosk.example", name: "Aino", role: "viewer" });
      const offered = await askAs(scene, who.token, ["POST", "person/totp"]);
      const app = new TOTP({ secret: Secret.fromBase32(String(offered.body.secret)) });
      const before = app.generate({ timestamp: Date.now() - 30_000 });
      const confirmed = await askAs(scene, who.token, ["POST", "person/totp/confirm"], { code: before });
      const [recovery = ""] = confirmed.body.recovery_codes as string[];
      const { page, close } = await open({ as: null });
      await page.goto("/");
      await signIn(page, who.email, PASSWORD);
      await page.getByRole("textbox", { name: "Code of your authenticator app" }).fill("000000");
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      await page.getByText("The code is not right").waitFor();
      await page.getByRole("textbox", { name: "Code of your authenticator app" }).fill(app.generate());
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      await page.getByRole("heading", { name: "Start" }).waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      await signIn(page, who.email, PASSWORD);
      await page.getByRole("button", { name: "Use a recovery code" }).click();
      await page.getByRole("textbox", { name: "Recovery code" }).fill(recovery);
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      await page.getByRole("heading", { name: "Start" }).waitFor();
      await close();
    },
  },
  {
    name: "an invitation lets somebody new in, once; who has an account signs in with it, and then chooses the organization",
    async play({ scene, owner, open }) {
      const link = await invite(scene, owner, { email: "noor@nordkiosk.example", role: "developer" });
      const { page, close } = await open({ as: null });
      await page.goto(link);
      await page.getByText("noor@nordkiosk.example is invited with the role “developer”").waitFor();
      await page.getByRole("textbox", { name: "Your name" }).fill("Noor");
      await page.getByLabel("New password").fill(PASSWORD);
      await page.getByRole("button", { name: "Join" }).click();
      await page.getByRole("heading", { name: "Start" }).waitFor();
      await page.goto("/nowhere");
      await page.goto(link);
      await page.getByRole("heading", { name: "This link no longer works" }).waitFor();
      await page.goto("/");
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      const { organization } = command(scene, ["organizations", "create", "--name", "Atelier Brun"]) as {
        organization: { id: string };
      };
      const other = command(scene, ["people", "invite", "--organization", organization.id]) as { link: string };
      await page.goto(other.link);
      await page.getByRole("button", { name: "I have an account already" }).click();
      await signIn(page, "noor@nordkiosk.example", PASSWORD);
      await page.getByText("You are signed in as noor@nordkiosk.example").waitFor();
      await page.getByRole("button", { name: "Join" }).click();
      await page.getByRole("combobox", { name: "Organization" }).waitFor();
      await page.getByText("Add a domain to send from (to do)").waitFor();
      await page.getByRole("combobox", { name: "Organization" }).selectOption("My organization");
      await page.getByText("Add a domain to send from (done)").waitFor();
      await close();
    },
  },
  {
    name: "a lost password: the link of `postern people reset` sets a new one, and other sessions end",
    async play({ scene, owner, open }) {
      const who = await addMember(scene, owner, { email: "per@nordkiosk.example", name: "Per", role: "viewer" });
      const { link } = command(scene, ["people", "reset", who.email]) as { link: string };
      const { page, close } = await open({ as: null });
      await page.goto(link);
      await page.getByRole("button", { name: "Show" }).click();
      await page.getByLabel("New password").fill("another long password");
      await page.getByRole("button", { name: "Set the password" }).click();
      await page.getByRole("heading", { name: "Start" }).waitFor();
      assert.equal((await askAs(scene, who.token, ["GET", "session"])).status, 401);
      await close();
    },
  },
  {
    name: "who may not do something reads so in a sentence, without a dead end",
    async play({ scene, owner, mails, inbound, records, open }) {
      const who = await addMember(scene, owner, { email: "lea@nordkiosk.example", name: "Lea", role: "viewer" });
      const { page, close } = await open({ as: who });
      await page.goto(`/emails/${mails.delivered}`);
      await page.getByText("Your role does not include this").waitFor();
      for (const [path, ready] of VIEWED) {
        await page.goto(path);
        await page.getByText(ready).first().waitFor();
        const acts = await page.locator("main").getByRole("button", { name: CHANGING }).allInnerTexts();
        assert.deepEqual(acts, [], path);
      }
      await page.goto(`/inbound/spam?domain_id=${inbound.domain}`);
      await page.getByText("Viewers cannot change this.").waitFor();
      await page.goto(`/domains/${records.pending}`);
      await page.getByText("Viewers cannot change this.").waitFor();
      assert.equal(await page.getByLabel("What it is for").isDisabled(), true);
      await close();
    },
  },
  {
    name: "a developer makes test keys alone, and reads so where the role was taken while a form was open",
    async play({ scene, owner, open }) {
      const who = await addMember(scene, owner, { email: "noa@nordkiosk.example", name: "Noa", role: "developer" });
      await scene.ask("POST", "/v1/api-keys", { name: "Shop live", environment: "live" });
      await scene.ask("POST", "/v1/api-keys", { name: "Shop test", environment: "test" });
      const { page, close } = await open({ as: who });
      await page.goto("/keys");
      await page.getByText("read at").waitFor();
      assert.equal(await page.getByRole("button", { name: "Revoke Shop live" }).count(), 0);
      await page.getByRole("button", { name: "Revoke Shop test" }).waitFor();
      await page.getByRole("button", { name: "Make a key" }).click();
      assert.deepEqual(await page.getByLabel("Kind").locator("option").allInnerTexts(), ["Test"]);
      await page.goto("/suppressions");
      await page.getByRole("button", { name: "Add an address" }).click();
      const { body } = await askAs(scene, who.token, ["GET", "session"]);
      const [{ id: organization }] = body.organizations as [{ id: string }];
      const { id } = body.person as { id: string };
      const path = `organizations/${organization}/people/${id}`;
      const changed = await askAs(scene, owner.token, ["PUT", path], { role: "viewer", sees_bodies: false });
      assert.equal(changed.status, 200, JSON.stringify(changed.body));
      await page.getByRole("textbox", { name: "Address" }).fill("x@posteo.example");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.getByText("Your role does not include this").waitFor();
      await close();
    },
  },
  {
    name: "settings: somebody is invited, joins, gets another role and is removed, and the audit log shows who did it",
    async play({ scene, open }, page) {
      await page.goto("/settings/people");
      await page.getByRole("button", { name: "Invite somebody" }).click();
      await page.getByRole("textbox", { name: "E-mail address" }).fill("no address");
      await page.getByRole("button", { name: "Invite", exact: true }).click();
      await page.locator(".field .problem").waitFor();
      await page.getByRole("textbox", { name: "E-mail address" }).fill("ivo@nordkiosk.example");
      await page.getByLabel("Role").selectOption("viewer");
      await page.getByRole("button", { name: "Invite", exact: true }).click();
      const link = await page.locator("dialog .said").innerText();
      await page.getByRole("button", { name: "I have it" }).click();
      await page.getByRole("cell", { name: "ivo@nordkiosk.example", exact: true }).waitFor();
      const theirs = await open({ as: null });
      await theirs.page.goto(link);
      await theirs.page.getByLabel("New password").fill(PASSWORD);
      await theirs.page.getByRole("button", { name: "Join" }).click();
      await theirs.page.getByRole("heading", { name: "Start" }).waitFor();
      await page.reload();
      await page.getByRole("button", { name: "Change ivo@nordkiosk.example" }).click();
      await page.getByRole("dialog").getByLabel("Role").selectOption("admin");
      await page.getByRole("dialog").getByRole("button", { name: "Change" }).click();
      await page.getByText("ivo@nordkiosk.example is admin now.").waitFor();
      await page.getByRole("button", { name: "Remove ivo@nordkiosk.example" }).click();
      await page.getByRole("button", { name: "Remove the person" }).click();
      await page.getByText("ivo@nordkiosk.example belongs to My organization no longer.").waitFor();
      await theirs.page.reload();
      await theirs.page.getByText("belong to no organization").waitFor();
      await theirs.close();
      await page.goto("/settings/audit-log?operation=removeMember");
      await page.getByRole("cell", { name: "ines@nordkiosk.example" }).waitFor();
      await page.getByRole("cell", { name: /^Remove member/ }).waitFor();
      assert.equal((await askAs(scene, null, ["GET", "session"])).status, 401);
    },
  },
  {
    name: "settings: a second factor is set up by its picture, shown as on, and turned off; other sessions are ended",
    async play({ scene, owner, open }) {
      const who = await addMember(scene, owner, { email: "kim@nordkiosk.example", name: "Kim", role: "developer" });
      const other = await askAs(scene, null, ["POST", "sign-in"], { email: who.email, password: PASSWORD });
      const { page, close } = await open({ as: who });
      await page.goto("/settings/security");
      await page.getByRole("button", { name: "Set up an authenticator app" }).click();
      await page.getByRole("img", { name: "The secret as a QR code" }).waitFor();
      const app = new TOTP({ secret: Secret.fromBase32(await page.locator("dialog .copy code").innerText()) });
      await page.getByRole("textbox", { name: "Code of your authenticator app" }).fill(app.generate());
      await page.getByRole("button", { name: "Turn it on" }).click();
      await page.getByRole("dialog", { name: "Your recovery codes" }).waitFor();
      assert.equal(await page.locator("dialog .said li").count(), 10);
      await page.getByRole("button", { name: "I have them" }).click();
      await page.getByText("10 of 10 recovery codes left").waitFor();
      await page.getByRole("button", { name: "Turn it off" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Turn it off" }).click();
      await page.getByText("The second factor is off").waitFor();
      await page.getByRole("button", { name: /^End the session/ }).click();
      await page.getByText("That session has ended.").waitFor();
      assert.equal((await askAs(scene, other.token, ["GET", "session"])).status, 401);
      await page.getByLabel("New password").fill("a brand new password");
      await page.getByRole("button", { name: "Set the password" }).click();
      await page.getByText("Your new password is set.").waitFor();
      await page.getByRole("button", { name: "Sign out everywhere" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Sign out everywhere" }).click();
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      await close();
    },
  },
  {
    name: "a passkey: made at set-up in place of a password, lets in alone, and is removed once there is another way in",
    async play({ scene, owner, open }) {
      const link = await invite(scene, owner, { email: "key@nordkiosk.example", role: "admin" });
      const at = scene.base_url.replace("127.0.0.1", "localhost");
      const { page, complaints, close } = await open({ as: null, at });
      await addAuthenticator(page);
      await page.goto(link.replace("127.0.0.1", "localhost"));
      await page.getByRole("textbox", { name: "Your name" }).fill("Key");
      await page.getByRole("button", { name: "Use a passkey instead" }).click();
      await page.getByRole("heading", { name: "Start" }).waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("button", { name: "Use a passkey" }).click();
      await page.getByRole("heading", { name: "Start" }).waitFor();
      await page.goto("/settings/security");
      await page.getByText("First passkey").waitFor();
      await page.getByRole("button", { name: "Remove the passkey First passkey" }).click();
      await page.getByRole("button", { name: "Remove the passkey", exact: true }).click();
      await page.getByText("This is the only way to sign in").waitFor();
      await page.getByLabel("New password").fill("a brand new password");
      await page.getByRole("button", { name: "Set the password" }).click();
      await page.getByText("Your new password is set.").waitFor();
      await page.getByRole("button", { name: "Remove the passkey First passkey" }).click();
      await page.getByRole("button", { name: "Remove the passkey", exact: true }).click();
      await page.getByText("“First passkey” lets nobody in any more.").waitFor();
      await close();
      assert.deepEqual(unexpected(complaints), []);
    },
  },
  {
    name: "by keyboard alone: signed in, a domain added, a key made, signed out",
    async play({ scene, owner, open }) {
      const who = await addMember(scene, owner, { email: "keys@nordkiosk.example", name: "Keys", role: "admin" });
      const { page, close } = await open({ as: null });
      await page.goto("/");
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      await tabTo(page, page.getByRole("textbox", { name: "E-mail address" }));
      await page.keyboard.type(who.email);
      await page.keyboard.press("Tab");
      await page.keyboard.type(PASSWORD);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Start" }).waitFor();
      await page.keyboard.type("gd");
      await page.getByRole("heading", { name: "Domains" }).waitFor();
      await tabTo(page, page.getByRole("button", { name: "Add a domain" }));
      await page.keyboard.press("Enter");
      await tabTo(page, page.getByRole("textbox", { name: "Domain" }));
      await page.keyboard.type("keys.nordkiosk.example");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "keys.nordkiosk.example" }).waitFor();
      await page.keyboard.type("gk");
      await page.getByRole("heading", { name: "API keys" }).waitFor();
      await tabTo(page, page.getByRole("button", { name: "Make a key" }));
      await page.keyboard.press("Enter");
      await tabTo(page, page.getByRole("textbox", { name: "Name" }));
      await page.keyboard.type("by keyboard");
      await page.keyboard.press("Enter");
      await tabTo(page, page.getByRole("button", { name: "I have it" }));
      await page.keyboard.press("Enter");
      await page.getByRole("cell", { name: "by keyboard", exact: true }).waitFor();
      await tabTo(page, page.getByRole("button", { name: "Sign out" }));
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      await close();
    },
  },
  // The last: from now on invitations are mailed, and their links shown nowhere.
  {
    name: "where the service's own domain is ready, invitations, resets and new sign-ins are mailed, and no list of e-mails shows them",
    async play({ scene, open }, page) {
      await readyToMail(scene);
      await page.goto("/settings/people");
      await page.getByRole("button", { name: "Invite somebody" }).click();
      await page.getByRole("textbox", { name: "E-mail address" }).fill("mailed@posteo.example");
      await page.getByRole("button", { name: "Invite", exact: true }).click();
      await page.getByText("A link is on its way to mailed@posteo.example").waitFor();
      await page.getByRole("button", { name: "Done" }).click();
      const theirs = await open({ as: null });
      await theirs.page.goto(linkIn(await mailTo(scene, "mailed@posteo.example", /Subject: Join My organization/)));
      await theirs.page.getByLabel("New password").fill(PASSWORD);
      await theirs.page.getByRole("button", { name: "Join" }).click();
      await theirs.page.getByRole("heading", { name: "Start" }).waitFor();
      await theirs.page.getByRole("button", { name: "Sign out" }).click();
      await theirs.page.getByRole("link", { name: "I do not know my password" }).click();
      await theirs.page.getByRole("textbox", { name: "E-mail address" }).fill("mailed@posteo.example");
      await theirs.page.getByRole("button", { name: "Mail me a link" }).click();
      await theirs.page.getByText("a link is on its way there").waitFor();
      await theirs.page.goto(linkIn(await mailTo(scene, "mailed@posteo.example", /Subject: A new password/)));
      await theirs.page.getByLabel("New password").fill("another long password");
      await theirs.page.getByRole("button", { name: "Set the password" }).click();
      await theirs.page.getByRole("heading", { name: "Start" }).waitFor();
      await theirs.page.getByRole("button", { name: "Sign out" }).click();
      await theirs.page.getByRole("heading", { name: "Sign in" }).waitFor();
      await signIn(theirs.page, "mailed@posteo.example", "another long password");
      assert.match(await mailTo(scene, "mailed@posteo.example", /Subject: A new sign-in/), /From: 127\.0\.0\.1/);
      await theirs.close();
      const listed = await scene.ask("GET", "/v1/emails?to=mailed@posteo.example");
      assert.deepEqual(listed.body.emails, []);
    },
  },
];

/** In the page. */
function hasFocus(element: unknown): boolean {
  return (element as { ownerDocument: { activeElement: unknown } }).ownerDocument.activeElement === element;
}

/** Presses Tab until the focus is there, once around the page at most. */
async function tabTo(page: Page, goal: Locator): Promise<void> {
  await goal.waitFor();
  for (let steps = 0; steps < TABS_MAX; steps += 1) {
    if (await goal.evaluate(hasFocus)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab never comes to ${goal}`);
}

/** A device with a finger print, as Chromium plays it. */
async function addAuthenticator(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("WebAuthn.enable");
  await session.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      ...{ protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true },
      ...{ isUserVerified: true, automaticPresenceSimulation: true },
    },
  });
}

async function signIn(page: Page, email: string, password: string): Promise<void> {
  await page.getByRole("textbox", { name: "E-mail address" }).fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** What `postern … --json` prints, run beside the server as its operator does. */
function command({ env }: Scene, words: string[]): unknown {
  const ended = spawnSync(process.execPath, [MAIN, ...words, "--json"], {
    env: { ...process.env, ...env },
    encoding: "utf8",
  });
  assert.equal(ended.status, 0, ended.stderr);
  return JSON.parse(ended.stdout.slice(ended.stdout.indexOf("{")));
}
