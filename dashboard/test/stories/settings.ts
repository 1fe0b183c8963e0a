// Stories of domains, suppressions and webhooks: from adding to removing, as a person does it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { publish, type ShownRecord } from "../../../test/support/verified-domain.ts";
import type { Story } from "../story.ts";

export const SETTINGS_STORIES: readonly Story[] = [
  {
    name: "a domain is added, its records are published, and the page ticks by itself or on demand",
    async play({ scene }, page) {
      await page.goto("/domains");
      await page.getByRole("button", { name: "Add a domain" }).click();
      await page.getByRole("textbox", { name: "Domain" }).fill("not a domain");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.locator(".problem").waitFor();
      await page.getByRole("textbox", { name: "Domain" }).fill("mail.nordkiosk.example");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.getByRole("heading", { name: "mail.nordkiosk.example" }).waitFor();
      await page.getByText("_postern.mail.nordkiosk.example").waitFor();
      await page.getByText(/Postern looks again by itself in \d minutes?/).waitFor();
      const id = page.url().split("/").at(-1);
      const { body } = await scene.ask("GET", `/v1/domains/${id}/dns`);
      publish(scene.dns, body.records as unknown as ShownRecord[]);
      await page.getByRole("button", { name: "Check now" }).click();
      await page.locator(".top").getByText("Verified").waitFor();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("button", { name: "Delete the domain" }).click();
      await page.getByText("mail.nordkiosk.example is deleted.").waitFor();
      await page.getByRole("link", { name: "nordkiosk.example", exact: true }).waitFor();
    },
  },
  {
    name: "an international domain is read in its own letters, its ASCII form beside; one that mixes scripts is not",
    async play({ scene }, page) {
      const made: string[] = [];
      for (const domain of ["bücher-laden.example", "pаypal-shop.example"]) {
        const { body } = await scene.ask("POST", "/v1/domains", { domain, type: "outbound" });
        made.push(String(body.id));
      }
      await page.goto("/domains");
      await page.getByRole("link", { name: "bücher-laden.example xn--bcher-laden-thb.example" }).click();
      await page.getByRole("heading", { name: "bücher-laden.example" }).waitFor();
      await page.locator(".top").getByText("xn--bcher-laden-thb.example").waitFor();
      assert.match(await page.title(), /^bücher-laden\.example/);
      await page.goto(`/domains/${made[1]}`);
      await page.getByRole("heading", { name: /^xn--.+\.example$/ }).waitFor();
      await page.goto("/suppressions");
      await page.getByRole("button", { name: "Add an address" }).click();
      const chooser = page.getByLabel("What it covers");
      await chooser.selectOption({ label: "Mail from bücher-laden.example (xn--bcher-laden-thb.example)" });
      assert.equal(await chooser.inputValue(), made[0]);
      for (const id of made) await scene.ask("DELETE", `/v1/domains/${id}`);
    },
  },
  {
    name: "of more domains and keys than one page holds the oldest are reached and chosen; the audit log finds what became of them",
    async play({ scene, records }, page) {
      const made: string[] = [];
      for (let number = 1; number <= 101; number += 1) {
        const domain = await scene.ask("POST", "/v1/domains", { domain: `d${number}.many.example`, type: "outbound" });
        made.push(`/v1/domains/${domain.body.id}`);
      }
      for (let number = 1; number <= 51; number += 1) {
        const { body } = await scene.ask("POST", "/v1/api-keys", { name: `Key ${number}`, environment: "test" });
        made.push(`/v1/api-keys/${(body.key as unknown as { id: string }).id}`);
      }
      await page.goto("/domains");
      await page.getByRole("link", { name: "Older" }).click();
      await page.getByRole("link", { name: "d51.many.example" }).waitFor();
      await page.getByRole("link", { name: "Older" }).click();
      await page.getByRole("link", { name: "nordkiosk.example", exact: true }).waitFor();
      await page.goto("/keys");
      await page.getByRole("link", { name: "Older" }).click();
      await page.getByRole("button", { name: "Revoke First live key" }).waitFor();
      await page.goto("/emails");
      await page.getByLabel("Domain").selectOption(records.verified);
      await page.waitForURL(/domain_id=/);
      await page.getByRole("button", { name: "Compose" }).click();
      assert.match(await page.getByRole("textbox", { name: "From" }).inputValue(), /^hello@/);
      for (const path of made) await scene.ask("DELETE", path);
      await page.goto("/settings/audit-log");
      await page.getByLabel("Act, such as Create API key").fill("revoke API key");
      await page.keyboard.press("Enter");
      await page.waitForURL(/operation=revokeApiKey/);
      await page.getByText("51 acts").waitFor();
    },
  },
  {
    name: "an address is suppressed by hand, found, and removed after a question",
    async play({ scene }, page) {
      await page.goto("/suppressions");
      await page.getByRole("button", { name: "Add an address" }).click();
      await page.getByRole("textbox", { name: "Address" }).fill("no-address");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.locator(".problem").waitFor();
      await page.getByRole("textbox", { name: "Address" }).fill("asked.us@posteo.example");
      await page.getByRole("textbox", { name: "Note" }).fill("By phone");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.getByRole("cell", { name: "asked.us@posteo.example · By phone" }).waitFor();
      await page.keyboard.press("/");
      await page.keyboard.type("asked.us");
      await page.keyboard.press("Enter");
      await page.getByText("1 address ·").waitFor();
      await page.getByRole("button", { name: "Remove asked.us@posteo.example" }).click();
      await page.getByRole("button", { name: "Remove the entry" }).click();
      await page.getByText("No entry fits").waitFor();
      await page.goto("/suppressions?query=asked@freemail.example&reason=complaint");
      await page.getByText("Entries with other reasons than “Complaint” are not shown.").waitFor();
      await page.goto("/suppressions?query=@nowhere");
      await page.getByText("Try a part of the address.").waitFor();
      const expires_at = new Date(Date.now() + 40 * 86_400_000).toISOString();
      await scene.ask("POST", "/v1/suppressions", { email: "away@posteo.example", expires_at });
      await page.goto("/suppressions?query=away@posteo.example");
      await page.getByText(/Every mail · until \d/).waitFor();
      const { body } = await scene.ask("GET", "/v1/suppressions/check?email=asked.us@posteo.example");
      assert.equal(body.suppressed, false);
    },
  },
  {
    name: "an endpoint is added, its secret is shown once, a test arrives, and the rotated secret is a new one",
    async play({ scene }, page) {
      await page.goto("/webhooks");
      await page.getByRole("button", { name: "Add an endpoint" }).click();
      await page.getByRole("textbox", { name: "Address" }).fill(`${scene.receiver.url}/from-the-dashboard`);
      await page.getByRole("button", { name: "Add", exact: true }).click();
      const first = await page.locator("dialog .said").innerText();
      assert.match(first, /^whsec_/);
      await page.getByRole("button", { name: "I have it" }).click();
      assert.doesNotMatch(await page.content(), new RegExp(first));
      await page.getByRole("link", { name: /from-the-dashboard/ }).click();
      await page.getByRole("button", { name: "Send a test" }).click();
      await page.getByText("200").first().waitFor();
      await page.getByRole("button", { name: "Replay", exact: true }).first().click();
      await page.getByText("It is delivered again.").waitFor();
      await page.getByRole("button", { name: "Rotate secret" }).click();
      await page.getByRole("button", { name: "Rotate now" }).click();
      const second = await page.locator("dialog .said").innerText();
      assert.notEqual(second, first);
      await page.getByRole("button", { name: "I have it" }).click();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("button", { name: "Delete the endpoint" }).click();
      await page.getByText("The endpoint is deleted.").waitFor();
    },
  },
  {
    name: "what an endpoint gets is changed: events, recipients, address, off and on; a change that is declined says so",
    async play({ scene }, page) {
      const url = `${scene.receiver.url}/to-change`;
      const made = await scene.ask("POST", "/v1/webhooks", { url, events: ["email.delivered"] });
      const { id } = made.body.webhook as unknown as { id: string };
      const shown = async () => {
        const { webhook_url, event_types, match_pattern, enabled } = (await scene.ask("GET", `/v1/webhooks/${id}`)).body
          .webhook as unknown as Record<string, unknown>;
        return [webhook_url, event_types, match_pattern, enabled];
      };
      await page.goto(`/webhooks/${id}`);
      await page.getByRole("button", { name: "Change" }).click();
      assert.equal(await page.getByRole("checkbox", { name: "email.delivered" }).isChecked(), true);
      assert.equal(await page.getByRole("checkbox", { name: "email.bounced" }).isChecked(), false);
      await page.getByRole("checkbox", { name: "email.delivered" }).uncheck();
      await page.getByRole("button", { name: "Save" }).click();
      await page.locator("dialog fieldset .text-bad").waitFor();
      await page.getByRole("checkbox", { name: "email.bounced" }).check();
      await page.getByRole("checkbox", { name: "email.received" }).check();
      await page.getByRole("textbox", { name: "Recipients" }).fill("*@posteo.example");
      await page.getByRole("textbox", { name: "Address" }).fill(`${url}-d`);
      await page.getByRole("checkbox", { name: "On: it gets events" }).uncheck();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("The endpoint is changed.").waitFor();
      await page
        .getByText("email.received, email.bounced")
        .or(page.getByText("email.bounced, email.received"))
        .waitFor();
      await page.getByText("Off", { exact: true }).waitFor();
      const [address, events, pattern, enabled] = await shown();
      assert.deepEqual([address, pattern, enabled], [`${url}-d`, "*@posteo.example", false]);
      assert.deepEqual((events as string[]).toSorted(), ["email.bounced", "email.received"]);
      await page.getByRole("button", { name: "Change" }).click();
      await page.getByRole("textbox", { name: "Recipients" }).fill("");
      await page.getByRole("checkbox", { name: "On: it gets events" }).check();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Off", { exact: true }).waitFor({ state: "detached" });
      assert.deepEqual((await shown()).slice(2), [null, true]);
    },
  },
  {
    name: "an endpoint is added for one domain and a pattern of recipients; a wrong pattern is declined at its field",
    async play({ scene, records }, page) {
      await page.goto("/webhooks");
      await page.getByRole("button", { name: "Add an endpoint" }).click();
      await page.getByRole("textbox", { name: "Address" }).fill(`${scene.receiver.url}/for-some`);
      await page.getByText("Only for some mail").click();
      await page.getByLabel("Domain", { exact: true }).selectOption(records.verified);
      await page.getByRole("textbox", { name: "Recipients" }).fill("re:(");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.locator("details .problem").waitFor();
      await page.getByRole("textbox", { name: "Recipients" }).fill("*@posteo.example");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.getByRole("button", { name: "I have it" }).click();
      await page.getByRole("link", { name: /for-some/ }).click();
      await page.getByRole("link", { name: "nordkiosk.example", exact: true }).waitFor();
      await page.getByText("*@posteo.example").waitFor();
      const { body } = await scene.ask("GET", `/v1/webhooks/${page.url().split("/").at(-1)}`);
      const { domain_id, match_pattern } = body.webhook as unknown as Record<string, unknown>;
      assert.deepEqual(
        { domain_id, match_pattern },
        { domain_id: records.verified, match_pattern: "*@posteo.example" },
      );
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("button", { name: "Delete the endpoint" }).click();
      await page.getByText("The endpoint is deleted.").waitFor();
    },
  },
  {
    name: "the first steps tick themselves; a key is made, shown once, used, and revoked",
    async play({ scene }, page) {
      await page.goto("/");
      await page.getByText("Make an API key (done)").waitFor();
      await page.getByText("Receive events by webhook (done)").waitFor();
      await page.keyboard.type("gk");
      await page.getByRole("button", { name: "Make a key" }).click();
      await page.getByRole("textbox", { name: "Name" }).fill("shop backend");
      await page.getByRole("button", { name: "Make it" }).click();
      const key = await page.locator("dialog .said").innerText();
      const asked = () => fetch(`${scene.base_url}/v1/me`, { headers: { authorization: `Bearer ${key}` } });
      assert.equal((await asked()).status, 200);
      await page.getByRole("button", { name: "I have it" }).click();
      await page.getByRole("button", { name: "Revoke shop backend" }).click();
      await page.getByRole("button", { name: "Revoke the key" }).click();
      await page.getByText("works no longer").waitFor();
      assert.equal((await asked()).status, 401);
    },
  },
  {
    name: "what is stored of an address is shown, kept as a file, and erased once the address is typed",
    async play({ scene }, page) {
      const email = "asks.for.it@posteo.example";
      const scheduled_at = new Date(Date.now() + 86_400_000).toISOString();
      const mail = {
        from: "billing@nordkiosk.example",
        to: [email],
        subject: "Your parcel",
        text_body: "x",
        scheduled_at,
      };
      const sent = await scene.ask("POST", "/v1/send", mail);
      await page.goto("/settings/security");
      await page.getByRole("link", { name: "Data", exact: true }).click();
      await page.getByText("Whose data is asked for?").waitFor();
      await page.getByRole("searchbox").fill("no-address");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").waitFor();
      await page.getByRole("searchbox").fill(email);
      await page.keyboard.press("Enter");
      await page.getByRole("link", { name: "Your parcel" }).waitFor();
      assert.equal(new URL(page.url()).searchParams.get("email"), email);
      const download = page.waitForEvent("download");
      await page.getByRole("button", { name: "Download JSON" }).click();
      assert.equal((await download).suggestedFilename(), "address-data.json");
      const text = await readFile(await (await download).path(), "utf8");
      assert.equal(JSON.parse(text).sent[0].id, sent.body.id);
      await page.getByRole("button", { name: "Erase" }).click();
      const erase = page.getByRole("button", { name: "Erase the address" });
      assert.equal(await erase.isDisabled(), true);
      await page.getByRole("textbox", { name: "Type the address" }).fill(email);
      await erase.click();
      await page.getByText(`${email} is erased.`).waitFor();
      await page.getByText("No mail of this address").waitFor();
      assert.equal((await scene.ask("GET", `/v1/emails/${sent.body.id}`)).status, 404);
    },
  },
];
