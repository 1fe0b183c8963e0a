// Stories of an import, of mail that is written by hand, and of webhooks' deliveries.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import type { Story } from "../story.ts";

const CSV = [
  "status,reason,email,created",
  ...Array.from({ length: 30 }, (_, row) => `5.1.1,550 no such user,gone${row}@import.example,1700000000`),
  "5.1.1,550 no such user,not an address,1700000000",
].join("\n");

export const LIST_STORIES: readonly Story[] = [
  {
    name: "a list of another provider is dropped, looked at with its wrong rows, added, and found",
    async play({ scene }, page) {
      await page.goto("/suppressions");
      await page.getByRole("link", { name: "Import" }).click();
      await page
        .getByLabel(/Drop a CSV file here/)
        .setInputFiles({ name: "bounces.csv", mimeType: "text/csv", buffer: Buffer.from(CSV) });
      await page.waitForURL(/job=/);
      await page.getByText("Nothing is added yet.").waitFor();
      await page.getByText("31 rows").waitFor();
      await page.getByRole("region", { name: "Rows that cannot be read" }).getByText("not an address").waitFor();
      const before = await scene.ask("GET", "/v1/suppressions/check?email=gone3@import.example");
      assert.equal(before.body.suppressed, false);
      await page.reload();
      await page.getByRole("button", { name: "Add 30 addresses" }).click();
      await page.getByText("30 of 30 added").waitFor();
      await page.getByRole("heading", { name: "Done" }).waitFor();
      const after = await scene.ask("GET", "/v1/suppressions/check?email=gone3@import.example");
      assert.equal(after.body.suppressed, true);
      await page.getByRole("button", { name: "Another file" }).click();
      const one = { name: "one.csv", mimeType: "text/csv", buffer: Buffer.from("email\none@import.example\n") };
      await page.getByLabel(/Drop a CSV file here/).setInputFiles(one);
      await page.getByText("1 row, Another list. Nothing is added yet.").waitFor();
      await page.getByRole("button", { name: "Add 1 address", exact: true }).waitFor();
      await page.getByRole("button", { name: "Another file" }).click();
      await page.getByText("Drop a CSV file here").waitFor();
    },
  },
  {
    name: "a test is written by hand on the list of e-mails, refused where a field is wrong, and opened",
    async play(_stage, page) {
      await page.goto("/emails");
      await page.getByRole("button", { name: "Compose" }).click();
      await page.getByRole("textbox", { name: "To" }).fill("no-address");
      await page.getByRole("textbox", { name: "Subject" }).fill("Written by hand");
      await page.getByRole("textbox", { name: "Message" }).fill("Hello");
      await page.getByRole("button", { name: "Send the test" }).click();
      await page.getByText("“no-address” is not an e-mail address: has no @.").waitFor();
      await page.getByRole("textbox", { name: "To" }).fill("a@x.example, b@x.example, c@x.example, fourth");
      await page.getByRole("button", { name: "Send the test" }).click();
      await page.getByText("“fourth” is not an e-mail address: has no @.").waitFor();
      const over = {
        limit_type: "hourly",
        warming_phase: "phase_1",
        retry_after_seconds: 1_500,
        message: "5 an hour. API.",
      };
      const full = { status: 429, json: { error: "rate_limit_exceeded", code: "rate_limit_exceeded", ...over } };
      await page.route("**/v1/send", (route) => route.fulfill(full), { times: 1 });
      await page.getByRole("textbox", { name: "To" }).fill("Maja Lind <maja.lind@posteo.example>");
      await page.getByRole("button", { name: "Send the test" }).click();
      await page.getByText("The domain's limit is reached. 5 an hour. Try again in 25 minutes.").waitFor();
      await page.getByRole("button", { name: "Send the test" }).click();
      await page.getByRole("link", { name: "Open the e-mail" }).click();
      await page.getByRole("heading", { name: "Written by hand" }).waitFor();
      await page.getByText("a test key sent it").waitFor();
    },
  },
  {
    name: "a double click on the button that sends, and Enter pressed twice, send one e-mail",
    async play({ scene }, page) {
      await page.goto("/emails");
      for (const [subject, send] of [
        ["Clicked twice", () => page.getByRole("button", { name: "Send the test" }).dblclick()],
        ["Entered twice", () => page.keyboard.press("Enter").then(() => page.keyboard.press("Enter"))],
      ] as const) {
        await page.getByRole("button", { name: "Compose" }).click();
        await page.getByRole("textbox", { name: "Message" }).fill("Hello");
        await page.getByRole("textbox", { name: "Subject" }).fill(subject);
        await send();
        await page.getByRole("heading", { name: "It is accepted" }).waitFor();
        await page.keyboard.press("Escape");
        const sent = await scene.ask("GET", `/v1/emails?environment=test&subject=${encodeURIComponent(subject)}`);
        assert.equal(sent.body.total, 1, subject);
      }
    },
  },
  {
    name: "Escape closes what somebody composes and loses no word of it; what was sent does not come again",
    async play(_stage, page) {
      await page.goto("/emails");
      await page.getByRole("button", { name: "Compose" }).click();
      await page.getByRole("textbox", { name: "To" }).fill("maja.lind@posteo.example");
      await page.getByRole("textbox", { name: "Subject" }).fill("Half written");
      await page.getByRole("textbox", { name: "Message" }).fill("Dear Maja,\n\nabout your");
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "hidden" });
      await page.getByRole("button", { name: "Compose" }).click();
      assert.deepEqual(
        await Promise.all(["To", "Subject", "Message"].map((name) => page.getByRole("textbox", { name }).inputValue())),
        ["maja.lind@posteo.example", "Half written", "Dear Maja,\n\nabout your"],
      );
      await page.getByRole("button", { name: "Send the test" }).click();
      await page.getByRole("heading", { name: "It is accepted" }).waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Compose" }).click();
      assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "");
    },
  },
  {
    name: "deliveries of all endpoints are filtered and replayed, a span of one is sent again, a signature is checked",
    async play({ scene, records }, page) {
      await page.goto("/webhooks");
      await page.getByRole("link", { name: "Deliveries" }).click();
      await page.getByLabel("State").selectOption("delivered");
      await page.waitForURL(/status=delivered/);
      await page.goto(`/webhooks/deliveries?status=delivered&endpoint_id=${records.webhook}`);
      await page.getByText("read at").waitFor();
      await page.getByRole("button", { name: "Replay" }).first().click();
      await page.getByText("It is delivered again.").waitFor();
      await page.goto(`/webhooks/${records.webhook}`);
      await page.getByRole("button", { name: "Replay a span" }).click();
      await page.getByLabel("Which").selectOption("delivered");
      await page.getByRole("button", { name: "Send again" }).click();
      await page.getByText(/Sent again: \d/).waitFor();
      const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
      const body = '{"event":"email.delivered"}';
      const seconds = 1_795_000_000;
      const v1 = createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex");
      await page.goto("/webhooks/signature");
      await page.getByLabel("Signing secret").fill(secret);
      await page.getByLabel("Signature", { exact: true }).fill(`t=${seconds},v1=${v1}`);
      await page.getByLabel("Body").fill(`${body} `);
      await page.getByRole("button", { name: "Check it" }).click();
      await page.getByText("Does not match").waitFor();
      await page.getByLabel("Body").fill(body);
      await page.getByRole("button", { name: "Check it" }).click();
      await page.getByText("Genuine").waitFor();
      assert.ok(scene.receiver);
    },
  },
];
