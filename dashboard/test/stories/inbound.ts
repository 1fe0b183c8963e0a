// Stories of received mail: simulating one, reading why it went where it went, rules that are tried before they are saved.
import assert from "node:assert/strict";
import type { Story } from "../story.ts";

export const INBOUND_STORIES: readonly Story[] = [
  {
    name: "a received mail is found, read in its frame, explained, and leads to its thread and its deliveries",
    async play(_stage, page) {
      await page.goto("/inbound");
      await page.getByRole("searchbox").fill("parcel");
      await page.getByRole("searchbox").press("Enter");
      await page.waitForURL(/q=parcel/);
      await page.getByText("2 mails ·").waitFor();
      await page
        .getByRole("link", { name: /maja\.lind/ })
        .last()
        .click();
      await page.frameLocator("iframe.mail").getByText("has not come").waitFor();
      await page.getByText("Pictures from elsewhere are not loaded").waitFor();
      await page.getByText("Handed on").waitFor();
      await page.getByRole("heading", { name: "Webhook deliveries" }).waitFor();
      await page.getByRole("tab", { name: "1 attachment" }).click();
      const file = page.waitForEvent("download");
      await page.getByRole("button", { name: "Download receipt.pdf" }).click();
      assert.equal((await file).suggestedFilename(), "receipt.pdf");
      await page.getByRole("heading", { name: "Thread" }).waitFor();
      await page
        .locator("aside")
        .getByRole("link", { name: /maja\.lind/ })
        .click();
      await page.getByRole("heading", { name: "Re: Where is my parcel?" }).waitFor();
      await page.getByRole("button", { name: "Process again" }).click();
      await page.getByText("It is processed again.").waitFor();
    },
  },
  {
    name: "a mail in quarantine says why, is released after a question, and can be deleted",
    async play({ scene, inbound }, page) {
      await page.goto("/inbound?status=quarantined");
      await page.getByRole("link", { name: /win@unknown/ }).click();
      await page.getByRole("heading", { name: "In quarantine" }).waitFor();
      await page.getByText("Kept in quarantine").waitFor();
      await page.getByRole("button", { name: "Release" }).click();
      await page.getByRole("button", { name: "Release it" }).click();
      await page.getByText("Released from quarantine").waitFor();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("button", { name: "Delete the mail" }).click();
      await page.getByText("The mail is deleted.").waitFor();
      assert.equal((await scene.ask("GET", `/v1/inbound-emails/${inbound.quarantined}`)).status, 404);
    },
  },
  {
    name: "a rule is made as a tree, tried before it is saved, put first by keyboard, and decides the next mail",
    async play({ scene, inbound }, page) {
      await page.goto(`/inbound/rules?domain_id=${inbound.domain}`);
      await page.getByRole("link", { name: "New rule" }).click();
      await page.getByRole("textbox", { name: "Name" }).fill("Parcels are put aside");
      await page.getByRole("textbox", { name: "Value" }).fill("(");
      await page.getByLabel("Comparison").selectOption("matches");
      await page.getByRole("button", { name: "Try it out" }).click();
      await page
        .getByText(/match\.all\[0\]/i)
        .first()
        .waitFor();
      await page.getByRole("textbox", { name: "Value" }).fill("parcel");
      await page.getByRole("button", { name: "Add group" }).click();
      await page.getByLabel("How its conditions count").last().selectOption("none");
      await page.getByRole("textbox", { name: "Value" }).last().fill("invoice");
      await page.getByRole("button", { name: "Try it out" }).click();
      await page.getByText(/It matches \d+ of \d+/).waitFor();
      await page.getByLabel("What is done with it").selectOption("drop");
      await page.getByRole("button", { name: "Save the rule" }).click();
      await page.getByText("Parcels are put aside is saved.").waitFor();
      await page.getByRole("button", { name: "Move Parcels are put aside up" }).press("Enter");
      await page.getByText("The order is saved.").waitFor();
      const { body } = await scene.ask("GET", `/v1/inbound-rules?domain_id=${inbound.domain}`);
      const rules = body.rules as unknown as { name: string; match: unknown }[];
      assert.equal(rules[0]?.name, "Parcels are put aside");
      assert.deepEqual(rules[0]?.match, {
        all: [
          { field: "subject", comparator: "matches", value: "parcel" },
          { not: { field: "subject", comparator: "contains", value: "invoice" } },
        ],
      });
      // Nobody can type before it is known where the mail goes: what was typed would be lost.
      const known = Promise.withResolvers<void>();
      await page.route(/\/v1\/domains(?:\?|$)/, async (route) => {
        await known.promise;
        await route.continue();
      });
      await page.goto("/inbound/simulate");
      await page.getByRole("status", { name: "Loading" }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Simulate" }).count(), 0);
      known.resolve();
      await page.getByRole("textbox", { name: "Subject" }).fill("My parcel again");
      await page.getByRole("button", { name: "Simulate" }).click();
      await page.getByText("Dropped", { exact: true }).waitFor();
      await page.getByRole("link", { name: "Open the mail" }).click();
      await page.getByRole("link", { name: "Parcels are put aside" }).waitFor();
      await page.getByText("Holds", { exact: true }).first().waitFor();
    },
  },
  {
    name: "an alias is made and changed; the spam settings name the field that is wrong, and are kept",
    async play({ scene, inbound }, page) {
      await page.goto("/inbound/aliases");
      await page.getByRole("button", { name: "New alias" }).click();
      await page.getByRole("textbox", { name: "Before the @" }).fill("orders");
      await page.getByLabel("What is done with it").selectOption("forward");
      await page.getByRole("button", { name: "Save" }).click();
      await page.locator("dialog .problem").waitFor();
      await page.getByRole("textbox", { name: "Forward to" }).fill("team@nordkiosk.example, team");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("“team” is not an e-mail address: has no @.").waitFor();
      await page.getByRole("textbox", { name: "Forward to" }).fill("team@nordkiosk.example");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("orders@help.nordkiosk.example is saved.").waitFor();
      await page.getByRole("button", { name: "Change orders@help.nordkiosk.example" }).click();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("button", { name: "Keep it" }).click();
      await page.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByRole("button", { name: "Delete the alias" }).click();
      await page.getByText("orders@help.nordkiosk.example is deleted.").waitFor();
      await page.getByRole("link", { name: "Spam" }).click();
      await page.getByLabel("Mark from").fill("3.5");
      await page.getByLabel("Always refused").fill("spammer.example\nwin@*");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("The spam settings are saved.").waitFor();
      const { body } = await scene.ask("GET", `/v1/domains/${inbound.domain}/spam`);
      assert.deepEqual(
        [body.thresholds, body.block],
        [{ tag: 3.5, quarantine: 4, reject: 100 }, ["spammer.example", "win@*"]],
      );
    },
  },
];
