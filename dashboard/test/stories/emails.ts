// Stories of the e-mails: finding one, reading why it did not arrive, acting on it; by mouse and by keyboard alone.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { until } from "../../../test/support/until.ts";
import type { Story } from "../story.ts";

/** A mail of 5 MB on a busy machine. */
const SLOW_MS = 90_000;

export const EMAIL_STORIES: readonly Story[] = [
  {
    name: "a search, a filter and the next page are links that lead to the same rows",
    async play(_stage, page) {
      await page.goto("/emails");
      await page.getByRole("searchbox").fill("parcel");
      await page.getByRole("searchbox").press("Enter");
      await page.getByText("60 e-mails").waitFor();
      await page.getByRole("link", { name: "Older" }).click();
      await page.waitForURL(/after=/);
      await page.getByRole("link", { name: "Newest" }).waitFor();
      await until("the second page has ten rows", async () => (await rows(page)) === 10);
      const address = page.url();
      await page.goto("/emails");
      await page.goto(address);
      await page.getByRole("link", { name: "Newest" }).waitFor();
      await until("the link leads to the same ten rows", async () => (await rows(page)) === 10);
      await page.getByLabel("Status").selectOption("bounced");
      await page.getByText("No e-mail fits these filters").waitFor();
    },
  },
  {
    name: "an id in the search leads to the e-mail, with its server's own words",
    async play({ mails }, page) {
      await page.goto("/emails");
      await page.getByRole("searchbox").fill(mails.bounced);
      await page.getByRole("searchbox").press("Enter");
      await page.getByRole("heading", { name: "Welcome to Nordkiosk" }).waitFor();
      await page.getByText("Bounced: this address takes no mail").waitFor();
      assert.ok(await page.getByText("550 5.1.1 No such user here").first().isVisible());
    },
  },
  {
    name: "by keyboard alone: to the list, into the search, to an e-mail, its tabs, and the keys",
    async play(_stage, page) {
      await page.goto("/nowhere");
      await page.getByText("There is no page").waitFor();
      await page.keyboard.type("ge");
      await page.getByText("read at").waitFor();
      await page.keyboard.press("/");
      await page.keyboard.type("invoice 2026-1184");
      await page.keyboard.press("Enter");
      await page.getByText("1 e-mail ·").waitFor();
      await page.getByRole("link", { name: "maja.lind@posteo.example" }).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("tab", { name: "HTML" }).focus();
      await page.keyboard.press("ArrowRight");
      await page.getByText("here is your invoice.").waitFor();
      await page.keyboard.press("?");
      await page.getByRole("dialog", { name: "Keys" }).waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    },
  },
  {
    name: "an e-mail that was refused as spam is retried once the server takes it, and the page follows by itself",
    async play({ scene, mails }, page) {
      await page.goto(`/emails/${mails.refused}`);
      await page.getByText("The server took the message for spam.").waitFor();
      scene.sink.onMessage(() => null);
      await page.getByRole("button", { name: "Retry now" }).click();
      await page.getByText("It is tried again now.").waitFor();
      await page.getByText("has accepted the message").waitFor();
    },
  },
  {
    name: "a scheduled e-mail is canceled after a question",
    async play({ scene, mails }, page) {
      await page.goto(`/emails/${mails.scheduled}`);
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("button", { name: "Keep it" }).click();
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("button", { name: "Cancel the e-mail" }).click();
      await page.getByText("Somebody canceled it").first().waitFor();
      const { body } = await scene.ask("GET", `/v1/emails/${mails.scheduled}`);
      assert.match(JSON.stringify(body), /"status":"canceled"/);
    },
  },
  {
    name: "an e-mail is sent again to somebody else, as a test; its source is kept as it was built",
    async play({ scene, mails }, page) {
      await page.goto(`/emails/${mails.delivered}`);
      await page.getByRole("button", { name: "Send again to…" }).click();
      const form = page.getByRole("dialog", { name: "Send “Your invoice 2026-1184” again" });
      await form.getByText("Its file is not sent along.").waitFor();
      await form.getByRole("textbox", { name: "To" }).fill("colleague@posteo.example");
      await form.getByRole("button", { name: "Send the test" }).click();
      await page.getByRole("link", { name: "Open the e-mail" }).click();
      await page.getByText("a test key sent it").waitFor();
      await page.frameLocator("iframe.mail").getByText("Thank you.").waitFor();
      await page.getByText("colleague@posteo.example").first().waitFor();
      assert.ok(scene.sink.messages.every(({ to }) => !to.includes("colleague@posteo.example")));
      const saved = page.waitForEvent("download");
      await page.getByRole("button", { name: "Download the source" }).click();
      assert.match(await readFile(await (await saved).path(), "utf8"), /^Subject: Your invoice 2026-1184\r$/m);
    },
  },
  {
    name: "a hostile mail with a table of 5 MB stays in its frame: no script, no request, no complaint, no turned name",
    async play({ mails }, page) {
      await page.goto(`/emails/${mails.hostile}`);
      await page.frameLocator("iframe.mail").getByText("The visible end").waitFor({ timeout: SLOW_MS });
      assert.equal(await page.title(), "You have <b>won</b> · Postern");
      assert.equal(await page.locator("iframe.mail").getAttribute("sandbox"), "");
      await page.getByRole("tab", { name: "1 attachment" }).click();
      await page.getByText("prize-fdp.zip").waitFor();
    },
  },
  {
    name: "what a frame of mail may do is its document's own policy: nothing in it runs or fetches, whatever the page left in",
    async play({ mails }, page) {
      await page.goto(`/emails/${mails.delivered}`);
      await page.frameLocator("iframe.mail").getByText("Thank you.").waitFor();
      const asked: string[] = [];
      page.on("response", (response) => asked.push(response.url()));
      const answer = page.waitForResponse(/mail-frame/);
      await page.evaluate(sendUnstripped, UNSTRIPPED);
      await page.frameLocator("iframe[name=bare]").getByText("unstripped").waitFor();
      const policy = (await (await answer).allHeaders())["content-security-policy"] ?? "";
      assert.match(policy, /^sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:;/);
      const frame = page.frames().find((one) => one.name() === "bare");
      assert.equal(await page.title(), "Your invoice 2026-1184 · Postern");
      assert.equal(frame?.url(), new URL("/dashboard/api/mail-frame", page.url()).href);
      assert.deepEqual(
        asked.filter((url) => !url.endsWith("/mail-frame") && !url.includes("/v1/")),
        [],
      );
    },
    expected: /Content Security Policy|sandboxed|(?:evil|track)\.example/,
  },
  {
    name: "an e-mail is delivered while one looks: its page and its timeline say so by an event, without being loaded again",
    async play({ scene }, page) {
      scene.sink.onMessage(({ to }) =>
        to.includes("later@posteo.example") ? { code: 554, text: "5.7.1 Not before noon" } : null,
      );
      const { body } = await scene.ask("POST", "/v1/send", {
        from: "billing@nordkiosk.example",
        to: ["later@posteo.example"],
        subject: "Delivered while you look",
        text_body: "x",
      });
      const id = String(body.id);
      await page.goto(`/emails/${id}`);
      await page.locator(".live[data-state=live]").waitFor();
      await page.getByText("Not before noon").first().waitFor();
      await page.evaluate("window.stays = true");
      const answers: string[] = [];
      page.on("response", async (answer) => {
        if (answer.url().includes("/v1/events")) answers.push(await answer.text().catch(() => ""));
      });
      scene.sink.onMessage(() => null);
      assert.equal((await scene.ask("POST", `/v1/emails/${id}/retry`)).status, 200);
      await page.getByText("has accepted the message").waitFor();
      await page.getByRole("region", { name: "Timeline" }).getByText("Delivered").waitFor();
      assert.ok(answers.some((text) => text.includes("email.delivered") && text.includes(id)));
      assert.equal(await page.evaluate("window.stays"), true);
    },
  },
  {
    name: "a live list rests while it is hidden, says when it is cut off, and catches up with what it missed",
    async play({ scene }, page) {
      const send = (subject: string) =>
        scene.ask("POST", "/v1/send", {
          ...{ from: "billing@nordkiosk.example", to: ["late@posteo.example"], subject, text_body: "x" },
        });
      const asked = { events: 0 };
      page.on("request", (request) => {
        if (request.url().includes("/v1/events") || request.url().includes("/v1/emails")) asked.events += 1;
      });
      await page.goto("/emails?live=true");
      await page.locator(".live[data-state=live]").waitFor();
      await page.getByText(/read \d+ s ago/).waitFor();
      await page.evaluate(hide, true);
      await page.locator(".live[data-state=paused]").waitFor();
      const before = asked.events;
      assert.equal((await send("Sent while hidden")).status, 202);
      assert.equal(asked.events, before);
      await page.evaluate(hide, false);
      await page.getByRole("cell", { name: "Sent while hidden" }).last().waitFor();
      await page.context().setOffline(true);
      await page.getByRole("button", { name: "Connecting again" }).waitFor();
      await page.getByText(/was read at \d\d:\d\d:\d\d and may have changed/).waitFor();
      assert.equal((await send("Sent while cut off")).status, 202);
      await page.context().setOffline(false);
      await page.locator(".live[data-state=live]").waitFor();
      await page.getByRole("cell", { name: "Sent while cut off" }).last().waitFor();
      await page.getByText("The connection is cut.").waitFor({ state: "hidden" });
    },
    expected: /INTERNET_DISCONNECTED/,
  },
  {
    name: "a live list shows an e-mail that is sent while one looks",
    async play({ scene }, page) {
      await page.goto("/emails");
      await page.getByRole("button", { name: "Live is off" }).click();
      await page.waitForURL(/live=true/);
      const sent = await scene.ask("POST", "/v1/send", {
        from: "billing@nordkiosk.example",
        to: ["late@posteo.example"],
        subject: "Sent while you look",
        text_body: "x",
      });
      assert.equal(sent.status, 202);
      await page.getByRole("cell", { name: "Sent while you look" }).last().waitFor({ timeout: 15_000 });
    },
  },
];

function rows(page: Page): Promise<number> {
  return page.locator("tbody tr").count();
}

/** In the page: the tab is hidden, or shown again. */
function hide(isHidden: boolean): void {
  const page = (globalThis as unknown as { document: EventTarget }).document;
  Object.defineProperty(page, "hidden", { configurable: true, get: () => isHidden });
  Object.defineProperty(page, "visibilityState", { configurable: true, get: () => (isHidden ? "hidden" : "visible") });
  page.dispatchEvent(new Event("visibilitychange"));
}

const UNSTRIPPED =
  "<script>parent.document.title='owned'</script><img src=https://track.example/p.gif onerror=alert(1)>" +
  "<link rel=stylesheet href=https://evil.example/a.css><style>body{background:url(https://evil.example/b)}</style>" +
  "<meta http-equiv=refresh content='0;url=https://evil.example'><iframe src=https://evil.example></iframe><p>unstripped</p>";

/** In the page: the form that mail/html-frame.tsx sends, with what that would have taken out, into a frame that is allowed more. */
function sendUnstripped(html: string): void {
  const page = (globalThis as unknown as { document: PageDocument }).document;
  const frame = page.createElement("iframe");
  Object.assign(frame, { name: "bare" });
  const form = page.createElement("form");
  Object.assign(form, { method: "post", enctype: "text/plain", action: "/dashboard/api/mail-frame", target: "bare" });
  for (const [name, value] of [
    ["pictures", "no"],
    ["html", html],
  ]) {
    const field = page.createElement("textarea");
    Object.assign(field, { name, value });
    form.append(field);
  }
  page.body.append(frame, form);
  form.submit();
}
type PageElement = { append(...nodes: PageElement[]): void; submit(): void };
type PageDocument = { createElement(name: string): PageElement; body: PageElement };
