// Stories of templates: made, written with what is found in them, shown as it is written, sent as a test, saved.
import assert from "node:assert/strict";
import type { Story } from "../story.ts";

export const TEMPLATE_STORIES: readonly Story[] = [
  {
    name: "a template is made, written in the editor, shown as it is written, sent as a test, and saved as a version",
    async play({ scene }, page) {
      await page.goto("/templates");
      await page.getByRole("button", { name: "New template" }).click();
      await page.getByRole("textbox", { name: "Name" }).fill("Parcel news");
      await page.getByRole("textbox", { name: "Subject" }).fill("News of {{parcel}}");
      await page.getByRole("textbox", { name: "Slug" }).fill("Not A Slug");
      await page.getByRole("button", { name: "Make it" }).click();
      await page.locator("dialog .problem").waitFor();
      await page.getByRole("textbox", { name: "Slug" }).fill("parcel-news");
      await page.getByRole("button", { name: "Make it" }).click();
      await page.getByRole("heading", { name: "Parcel news" }).waitFor();
      const source = page.locator(".cm-content");
      await source.fill("<p>Dear {{name}}</p>\n<p>{{#if late}}late</p>");
      await page.getByRole("alert").first().waitFor();
      await page.locator(".cm-line.mistake").waitFor();
      await source.fill("<p>Dear {{name}}</p>\n<p>{{#if late}}It comes late.{{/if}}</p>");
      await page.getByRole("textbox", { name: "name", exact: true }).fill("Maja <3");
      await page.frameLocator("iframe.mail").getByText("Dear Maja <3").waitFor();
      await page.getByRole("textbox", { name: "parcel", exact: true }).fill("1042");
      await page.getByText("News of 1042").waitFor();
      await page.getByRole("tab", { name: "Phone" }).click();
      await page.waitForURL(/view=phone/);
      await page.frameLocator("iframe.mail").getByText("Dear Maja <3").waitFor();
      await page.getByRole("tab", { name: "Difference" }).click();
      await page.locator(".difference .came").getByText("It comes late.").waitFor();
      await page.getByRole("button", { name: "Send a test" }).click();
      await page.getByRole("button", { name: "Send the test" }).click();
      await page.getByText("Nothing was sent.").waitFor();
      await page.getByRole("button", { name: "Close" }).click();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved as version 2.").waitFor();
      await page.getByText("not saved").waitFor({ state: "detached" });
      const { body } = await scene.ask("GET", "/v1/templates/parcel-news");
      const saved = body.template as unknown as { html_body: string; version: number };
      assert.deepEqual(
        [saved.version, saved.html_body],
        [2, "<p>Dear {{name}}</p>\n<p>{{#if late}}It comes late.{{/if}}</p>"],
      );
      const sent = await scene.ask("GET", "/v1/emails?environment=test&limit=1");
      const [mail] = sent.body.emails as unknown as { subject: string; status: string }[];
      assert.deepEqual([mail?.subject, mail?.status], ["News of 1042", "simulated"]);
    },
  },
  {
    name: "what somebody else saved meanwhile is not replaced unseen",
    async play({ scene }, page) {
      const body = { name: "Shared", slug: "shared", subject: "First", text_body: "Hello" };
      await scene.ask("POST", "/v1/templates", body);
      await page.goto("/templates?query=shared");
      await page.getByRole("link", { name: "Shared" }).click();
      await page.getByRole("heading", { name: "Shared" }).waitFor();
      await page.getByLabel("Subject", { exact: true }).fill("Mine");
      await scene.ask("PUT", "/v1/templates/shared", { name: "Shared by all" });
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved as version 3.").waitFor();
      assert.doesNotMatch(
        await page
          .getByText(/changed/)
          .first()
          .innerText(),
        /in \d+ seconds?/,
      );
      await page.getByLabel("Subject", { exact: true }).fill("Mine again");
      await scene.ask("PUT", "/v1/templates/shared", { subject: "Theirs" });
      const subject = async () => {
        const { body: answer } = await scene.ask("GET", "/v1/templates/shared");
        return (answer.template as unknown as { subject: string }).subject;
      };
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("heading", { name: "Save over version 4?" }).waitFor();
      await page.getByRole("button", { name: "Keep it" }).click();
      assert.equal(await subject(), "Theirs");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: "Save mine" }).click();
      await page.getByText("Saved as version 5.").waitFor();
      assert.equal(await subject(), "Mine again");
    },
  },
  {
    name: "versions of a template are listed, two are compared, and the first becomes the current one again",
    async play({ scene }, page) {
      const body = { name: "Reminder", slug: "reminder", subject: "Do not forget", text_body: "Hello\n\nYours" };
      await scene.ask("POST", "/v1/templates", body);
      await scene.ask("PUT", "/v1/templates/reminder", { text_body: "Hello {{name}}\n\nYours" });
      await page.goto("/templates?query=reminder");
      await page.getByRole("link", { name: "Reminder" }).click();
      await page.getByRole("link", { name: "version 2" }).click();
      await page.getByText("2 versions ·").waitFor();
      await page.locator(".difference .came").getByText("Hello {{name}}").waitFor();
      await page.getByRole("link", { name: "Compare version 2" }).click();
      await page.waitForURL(/version=2/);
      await page.getByText("No difference").first().waitFor();
      await page.getByRole("link", { name: "Compare version 1" }).click();
      await page.getByRole("button", { name: "Make version 1 current" }).click();
      await page.getByRole("button", { name: "Make it current" }).click();
      await page.getByText("Version 1 is the current one again, as version 3.").waitFor();
      const { body: now } = await scene.ask("GET", "/v1/templates/reminder");
      const saved = now.template as unknown as { text_body: string; version: number };
      assert.deepEqual([saved.version, saved.text_body], [3, "Hello\n\nYours"]);
    },
  },
  {
    name: "a template is found, switched off, and deleted after a question",
    async play({ scene }, page) {
      await page.goto("/templates");
      await page.getByText("read at").waitFor();
      await page.keyboard.press("/");
      await page.keyboard.type("reset");
      await page.keyboard.press("Enter");
      await page.getByText("1 template ·").waitFor();
      await page.getByRole("link", { name: "Password reset" }).click();
      await page.getByRole("button", { name: "Settings" }).click();
      await page.getByRole("checkbox", { name: "It can be sent" }).uncheck();
      await page.locator("dialog").getByRole("button", { name: "Save" }).click();
      await page.locator(".top").getByText("Off").waitFor();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("button", { name: "Delete the template" }).click();
      await page.getByText("Password reset is deleted.").waitFor();
      assert.equal((await scene.ask("GET", "/v1/templates/reset")).status, 404);
    },
  },
];
