// Stories of operators: what they settle of other people's organizations.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { inheritedEnv } from "../../../test/support/inherited-env.ts";
import { until } from "../../../test/support/until.ts";
import { ADDRESSES, deferredTo, RELAY } from "../fill-operator.ts";
import { askAs, PASSWORD } from "../persons.ts";
import type { Story } from "../story.ts";

const PROGRAM = resolve(import.meta.dirname, "../../../src/main.ts");

export const OPERATOR_STORIES: readonly Story[] = [
  {
    name: "an operator reads what a new organization will send, approves it, gives it limits, suspends it; its own log says so",
    async play({ scene, owner, newcomer, open }, page) {
      const stateOf = async () => {
        const { body } = await askAs(scene, newcomer.token, ["GET", "session"]);
        return (body.organizations as { state: string; plan: string }[])[0];
      };
      await page.goto("/");
      await page.getByRole("link", { name: "Operator" }).click();
      const review = page.getByRole("region", { name: "Review of Atelier Brun" });
      await review.getByText("Order confirmations and invoices").waitFor();
      await review.getByRole("button", { name: "Approve Atelier Brun" }).click();
      await page.getByText("Atelier Brun is active: its live mail leaves.").waitFor();
      assert.equal((await stateOf())?.state, "active");
      await page.getByRole("button", { name: "Change Atelier Brun" }).click();
      const form = page.getByRole("dialog");
      await form.getByLabel("Plan").selectOption("growth");
      await form.getByLabel("Mails a month").fill("1234");
      await form.getByRole("button", { name: "Change" }).click();
      await page.getByText("Atelier Brun is changed.").waitFor();
      await page.getByRole("cell", { name: "1,234 own" }).waitFor();
      assert.equal((await stateOf())?.plan, "growth");
      await page.getByRole("button", { name: "Suspend Atelier Brun" }).click();
      await page.getByRole("button", { name: "Suspend it" }).click();
      await page.getByText("Atelier Brun is suspended: its sends are refused.").waitFor();
      await page.getByLabel("State").selectOption("suspended");
      await page.getByText("1 organization ·").waitFor();
      assert.match(page.url(), /state=suspended/);
      const theirs = await open({ as: newcomer });
      await theirs.page.goto("/settings/audit-log?operation=changeOrganization");
      await theirs.page.getByRole("cell", { name: owner.email }).first().waitFor();
      assert.equal(await theirs.page.getByRole("link", { name: "Operator" }).count(), 0);
      await theirs.page.goto("/operator/organizations");
      await theirs.page.getByText("Your role does not include this").waitFor();
      await theirs.close();
    },
  },
  {
    name: "an organization that is being moved to another server says so, and changes nothing",
    expected: /status of 503/,
    async play({ scene, newcomer, open }, page) {
      const { body } = await askAs(scene, newcomer.token, ["GET", "session"]);
      const [{ id }] = body.organizations as [{ id: string }];
      const env = { ...inheritedEnv(), ...scene.env, POSTERN_BACKUP_PASSPHRASE: "a passphrase for a trial" };
      const organizations = (...words: string[]) =>
        promisify(execFile)(process.execPath, [PROGRAM, "organizations", ...words], { env });
      await organizations("export", id, join(scene.dir, "moving"));
      const theirs = await open({ as: newcomer });
      await theirs.page.goto("/settings/organization");
      await theirs.page.getByRole("heading", { name: "This organization is being moved to another server" }).waitFor();
      await theirs.close();
      await page.goto("/operator/organizations?state=moving");
      await page.getByText("1 organization ·").waitFor();
      await organizations("keep", id);
    },
  },
  {
    name: "an operator invites an organization by a link that is shown once, and sees it wait for the review",
    async play({ open }, page) {
      await page.goto("/operator/organizations");
      await page.getByRole("button", { name: "Invite an organization" }).click();
      await page.getByRole("textbox", { name: "E-mail address" }).fill("no address");
      await page.getByRole("button", { name: "Make the link" }).click();
      await page.locator(".field .problem").waitFor();
      await page.getByRole("textbox", { name: "E-mail address" }).fill("mia@velo.example");
      await page.getByRole("button", { name: "Make the link" }).click();
      const link = await page.locator("dialog .said").innerText();
      await page.getByRole("button", { name: "I have it" }).click();
      const theirs = await open({ as: null });
      await theirs.page.goto(link);
      await theirs.page.getByText("For mia@velo.example").waitFor();
      await theirs.page.getByRole("textbox", { name: "Organization" }).fill("Velo");
      await theirs.page.getByRole("textbox", { name: "What will you send" }).fill("News of our rides, to members");
      await theirs.page.getByLabel("New password").fill(PASSWORD);
      await theirs.page.getByRole("button", { name: "Make the account" }).click();
      await theirs.page.getByRole("heading", { name: "Live sending waits for the review" }).waitFor();
      await theirs.close();
      await page.reload();
      await page.getByRole("region", { name: "Review of Velo" }).getByText("News of our rides").waitFor();
    },
  },
  {
    name: "an operator suspends a destination, drops what waits by its number, and resumes it; later mail is tried",
    async play({ scene, open, newcomer }, page) {
      const dropped = await deferredTo(scene, "anna@closing.kontor.example", "One");
      await deferredTo(scene, "bert@closing.kontor.example", "Two");
      await page.goto("/operator/queue/closing.kontor.example");
      await page.getByText("2 deliveries").waitFor();
      await page.getByRole("button", { name: "Suspend" }).click();
      await page.getByRole("textbox", { name: "Why" }).fill("They close on Friday");
      await page.getByRole("button", { name: "Suspend it" }).click();
      await page.getByText("“They close on Friday”").waitFor();
      await page.goto("/operator/queue?state=suspended");
      await page.getByRole("link", { name: "closing.kontor.example" }).click();
      await page.getByRole("button", { name: "Drop" }).click();
      await page.getByRole("heading", { name: "Give up 2 deliveries to closing.kontor.example?" }).waitFor();
      await page.getByRole("button", { name: "Drop 2 deliveries" }).click();
      await page.getByText("Dropped: 2 deliveries.").waitFor({ timeout: 30_000 });
      const { body } = await scene.ask("GET", `/v1/emails/${dropped}`);
      assert.match(JSON.stringify(body), /"status":"failed"/);
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByText("Mail to closing.kontor.example leaves again.").waitFor();
      await deferredTo(scene, "carl@closing.kontor.example", "Three");
      const theirs = await open({ as: newcomer });
      await theirs.page.goto("/operator/queue");
      await theirs.page.getByText("Your role does not include this").waitFor();
      await theirs.close();
    },
  },
  {
    name: "an operator finds a destination whose server defers, and has its mail tried at once",
    async play({ scene, mails }, page) {
      const attempts = async () => {
        const { body } = await scene.ask("GET", `/v1/emails/${mails.deferred}`);
        return Number(/"attempts":(\d+)/.exec(JSON.stringify(body))?.[1]);
      };
      const before = await attempts();
      await page.goto("/operator/queue");
      await page.getByRole("searchbox", { name: "Search destinations" }).fill("kontor");
      await page.keyboard.press("Enter");
      await page.getByText("temporarily rate limited").first().waitFor();
      await page.getByRole("link", { name: "kontor.example", exact: true }).click();
      await page.getByRole("button", { name: "Retry now" }).click();
      await page.getByText("became due").waitFor();
      await until("it is tried again", async () => (await attempts()) > before, 30_000);
    },
  },
  {
    name: "an operator sees whose a sending address is and how it is called, takes it out of use with a reason, gives it back",
    async play({ scene, owner, newcomer, open }, page) {
      const stateOf = async () => {
        const { body } = await scene.ask("GET", "/v1/ip-pools/letters");
        const { ips } = body.ip_pool as unknown as { ips: { ip: string; state: string }[] };
        return ips.find(({ ip }) => ip === ADDRESSES.named)?.state;
      };
      await until("the engine has the address", async () => (await stateOf()) === "ready", 30_000);
      await page.goto("/operator/queue");
      await page.getByRole("link", { name: "Sources" }).click();
      const row = (ip: string) => page.getByRole("row").filter({ hasText: ip });
      await row(ADDRESSES.warming).getByText("Reverse name differs").waitFor();
      await row(ADDRESSES.elsewhere)
        .getByRole("cell", { name: /^Unavailable/ })
        .waitFor();
      assert.equal(await row("Shared address").getByRole("button").count(), 0);
      await row(ADDRESSES.named).getByRole("button", { name: "Take" }).click();
      await page.getByRole("textbox", { name: "Why" }).fill("On a list of blocked addresses");
      await page.getByRole("button", { name: "Take it out" }).click();
      await page.getByText(`Nothing leaves from ${ADDRESSES.named} any more.`).waitFor();
      await page.getByLabel("State").selectOption("out_of_use");
      await page.waitForURL(/state=out_of_use/);
      await page.getByText("1 address ·").waitFor();
      await row(ADDRESSES.named).getByText("“On a list of blocked addresses”").waitFor();
      await until("the engine leaves it", async () => (await stateOf()) === "unavailable", 30_000);
      await row(ADDRESSES.named).getByRole("button", { name: "Give" }).click();
      await page.getByText("No address fits").waitFor();
      await until("the engine uses it again", async () => (await stateOf()) === "ready", 30_000);
      await page.goto("/settings/audit-log?operation=holdSource");
      await page.getByRole("cell", { name: owner.email }).first().waitFor();
      const theirs = await open({ as: newcomer });
      await theirs.page.goto("/operator/sources");
      await theirs.page.getByText("Your role does not include this").waitFor();
      await theirs.close();
    },
  },
  {
    name: "an operator finds the relay that holds mail back, and reads why",
    async play(_stage, page) {
      await page.goto("/operator/sources");
      await page.getByRole("link", { name: "Relays" }).click();
      // The page before has a box for searching, too.
      await page.getByRole("heading", { name: "Relays" }).waitFor();
      await page.getByRole("searchbox").fill("BRANDT");
      await page.keyboard.press("Enter");
      await page.waitForURL(/query=BRANDT/);
      await page.getByText("1 relay ·").waitFor();
      const row = page.getByRole("row").filter({ hasText: RELAY.domain });
      await row.getByRole("cell", { name: `${RELAY.host}:587` }).waitFor();
      await row.getByRole("cell", { name: /no address on the public internet/ }).waitFor();
      await row.getByRole("cell", { name: "1", exact: true }).waitFor();
    },
  },
  {
    name: "an operator finds a complaint to abuse@ by keyboard, reads it in its frame, keeps its source and its file; others do not",
    async play({ own_mail, newcomer, open }, page) {
      await page.goto("/operator/relays");
      await page.getByRole("link", { name: "Mail", exact: true }).click();
      await page.getByRole("link", { name: "Greta Falk" }).waitFor();
      await page.getByLabel("Mailbox").selectOption("security");
      await page.waitForURL(/mailbox=security/);
      await page.getByText("1 mail ·").waitFor();
      await page.getByLabel("Mailbox").selectOption("");
      await page.getByText("5 mails ·").waitFor();
      await page.keyboard.press("Tab");
      await page.keyboard.press("/");
      await page.keyboard.type("did not ask");
      await page.keyboard.press("Enter");
      await page.waitForURL(/query=did\+?(?:%20)?not/);
      await page.getByText("1 mail ·").waitFor();
      await page.getByRole("link", { name: "Greta Falk" }).focus();
      await page.keyboard.press("Enter");
      await page.frameLocator("iframe.mail").getByText("which I gave nobody").waitFor();
      assert.equal(await page.title(), "Mail that I did not ask for · Postern");
      assert.equal(await page.locator("iframe.mail").getAttribute("sandbox"), "");
      await page.getByText("Nobody signed the message.").waitFor();
      const saved = page.waitForEvent("download");
      await page.getByRole("button", { name: "Download the source" }).click();
      assert.equal((await saved).suggestedFilename(), `${own_mail.letter}.eml`);
      await page.getByRole("tab", { name: "1 attachment" }).click();
      const file = page.waitForEvent("download");
      await page.getByRole("button", { name: /^Download evidence/ }).click();
      assert.doesNotMatch((await file).suggestedFilename(), /\u202e/);
      const theirs = await open({ as: newcomer });
      await theirs.page.goto(`/operator/mail/${own_mail.letter}`);
      await theirs.page.getByText("Your role does not include this").waitFor();
      await theirs.close();
    },
  },
  {
    name: "an operator has the doctor look, reads what it found, and which process sends",
    async play(_stage, page) {
      await page.goto("/operator/organizations");
      await page.getByRole("link", { name: "Health" }).click();
      await page.getByRole("button", { name: "Check now" }).click();
      await page.getByText("The check is done.").waitFor({ timeout: 60_000 });
      const checks = page.getByRole("region", { name: /^Checks of / });
      await checks.getByText("runs this.").waitFor();
      await checks.getByText("asked by ines@nordkiosk.example").waitFor();
      await page.getByRole("region", { name: "Sending processes" }).getByText("mta").waitFor();
    },
  },
];
