// The main story, on an installation that nobody has used: from the link of its first start to a delivered mail and its webhook,
// without leaving the dashboard.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { type Scene, setScene } from "../../../test/support/scene.ts";
import { receiveAt } from "../../../test/support/stories.ts";
import { until } from "../../../test/support/until.ts";
import { publish, type ShownRecord } from "../../../test/support/verified-domain.ts";
import { firstLink, PASSWORD } from "../persons.ts";
import { type Story, unexpected } from "../story.ts";

const PROOF_MS = 11 * 60_000;

export const FIRST_DAY: readonly Story[] = [
  {
    name: "from the first start to a delivered mail and its webhook, in one sitting",
    async play(stage) {
      await using scene = await freshScene();
      const { page, complaints, close } = await stage.open({ at: scene.base_url, as: null });
      await setUp(page, scene);
      await addDomain(page, scene);
      await addWebhook(page, scene);
      const key = await makeKey(page);
      await sendWith(key, scene);
      await seeDelivered(page);
      await seeWebhook(page, scene);
      await seeAllDone(page);
      await deleteAfterProof(page, scene);
      await close();
      assert.deepEqual(unexpected(complaints), []);
    },
  },
];

async function freshScene(): Promise<Scene & AsyncDisposable> {
  const scene = await setScene({ embedded: true });
  await scene.start();
  receiveAt(scene.dns, "posteo.example", "mx.recipient.example");
  return { ...scene, [Symbol.asyncDispose]: () => scene.close() };
}

async function setUp(page: Page, scene: Scene): Promise<void> {
  await page.goto(firstLink(scene));
  await page.getByRole("heading", { name: "Set Postern up" }).waitFor();
  assert.equal(new URL(page.url()).hash, "", "the token leaves the address");
  await page.getByRole("textbox", { name: "Your name" }).fill("Ines Brandt");
  await page.getByRole("textbox", { name: "E-mail address" }).fill("ines@nordkiosk.example");
  await page.getByLabel("New password").fill("short");
  await page.getByRole("button", { name: "Begin" }).click();
  await page.getByText("at least 10 characters").waitFor();
  await page.getByLabel("New password").fill(PASSWORD);
  await page.getByRole("button", { name: "Begin" }).click();
  await page.getByRole("heading", { name: "Start" }).waitFor();
}

function go(page: Page, name: string): Promise<void> {
  return page.getByRole("navigation").getByRole("link", { name }).click();
}

async function addDomain(page: Page, scene: Scene): Promise<void> {
  await go(page, "Domains");
  await page.getByRole("button", { name: "Add a domain" }).click();
  await page.getByRole("textbox", { name: "Domain" }).fill("nordkiosk.example");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByText("_postern.nordkiosk.example").waitFor();
  const id = page.url().split("/").at(-1);
  const { body } = await scene.ask("GET", `/v1/domains/${id}/dns`);
  publish(scene.dns, body.records as unknown as ShownRecord[]);
  await page.getByRole("button", { name: "Check now" }).click();
  await page.locator(".top").getByText("Verified").waitFor();
}

async function addWebhook(page: Page, scene: Scene): Promise<void> {
  await go(page, "Webhooks");
  await page.getByRole("button", { name: "Add an endpoint" }).click();
  await page.getByRole("textbox", { name: "Address" }).fill(`${scene.receiver.url}/first`);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("button", { name: "I have it" }).click();
}

async function makeKey(page: Page): Promise<string> {
  await go(page, "API keys");
  await page.getByRole("button", { name: "Make a key" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("shop backend");
  await page.getByLabel("Kind").selectOption("live");
  await page.getByRole("button", { name: "Make it" }).click();
  const key = await page.locator("dialog .said").innerText();
  await page.getByRole("button", { name: "I have it" }).click();
  return key;
}

async function sendWith(key: string, { base_url }: Scene): Promise<void> {
  const response = await fetch(`${base_url}/v1/send`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      ...{ from: "hello@nordkiosk.example", to: ["maja@posteo.example"], subject: "Hello", html_body: "<p>Hello</p>" },
    }),
  });
  assert.equal(response.status, 202, await response.text());
}

async function seeDelivered(page: Page): Promise<void> {
  await go(page, "E-mails");
  await page.getByRole("link", { name: "maja@posteo.example" }).click();
  await page.getByText("has accepted the message").waitFor();
  await page.getByRole("heading", { name: "Webhook deliveries" }).waitFor();
  await page.getByRole("link", { name: /first/ }).waitFor();
}

async function seeWebhook(page: Page, scene: Scene): Promise<void> {
  await go(page, "Webhooks");
  await page.getByRole("link", { name: /first/ }).click();
  await page.getByRole("cell", { name: "delivered" }).first().waitFor();
  await until("the endpoint has the event", async () => scene.receiver.requests.length > 0);
}

async function seeAllDone(page: Page): Promise<void> {
  await go(page, "Start");
  await page.getByText("All steps are done.").waitFor();
}

/** Ten minutes after the password was shown, what is dangerous asks for it again, and goes on with it. */
async function deleteAfterProof(page: Page, scene: Scene): Promise<void> {
  await scene.moveClock(PROOF_MS);
  await go(page, "Domains");
  await page.getByRole("link", { name: "nordkiosk.example", exact: true }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete the domain" }).click();
  const proof = page.getByRole("dialog", { name: "Is it you?" });
  await proof.getByLabel("Password of").fill("wrong password");
  await proof.getByRole("button", { name: "Go on" }).click();
  await proof.getByText("That did not match").waitFor();
  await proof.getByLabel("Password of").fill(PASSWORD);
  await proof.getByRole("button", { name: "Go on" }).click();
  await page.getByText("nordkiosk.example is deleted.").waitFor();
}
