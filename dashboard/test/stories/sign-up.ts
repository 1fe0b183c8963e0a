// Stories of strangers who sign up. They make the service's own domain ready: from then on links are mailed, and shown nowhere.
import assert from "node:assert/strict";
import { receiveAt } from "../../../test/support/stories.ts";
import { linkIn, mailTo, readyToMail } from "../own-mail.ts";
import { askAs, PASSWORD } from "../persons.ts";
import { type Story, unexpected } from "../story.ts";

export const SIGN_UP_STORIES: readonly Story[] = [
  {
    name: "a stranger signs up: the address is confirmed by mail, test keys work at once, and the pages show what live mail waits for",
    async play({ scene, owner, open }) {
      await readyToMail(scene);
      receiveAt(scene.dns, "gardenshop.example", "mx.recipient.example");
      const { page, complaints, close } = await open({ as: null });
      await page.goto("/sign-in");
      await page.getByRole("link", { name: "Make an account" }).click();
      await page.getByRole("textbox", { name: "E-mail address" }).fill("lou@gardenshop.example");
      await page.getByRole("button", { name: "Go on" }).click();
      await page.getByText("A mail is on its way to lou@gardenshop.example").waitFor();
      const listed = await askAs(scene, owner.token, ["GET", "operator/organizations"]);
      assert.doesNotMatch(JSON.stringify(listed.body), /Garden shop/);
      await page.goto(linkIn(await mailTo(scene, "lou@gardenshop.example", /Subject: Confirm your address/)));
      await page.getByRole("textbox", { name: "Your name" }).fill("Lou Marsh");
      await page.getByRole("textbox", { name: "Organization" }).fill("Garden shop");
      await page.getByLabel("New password").fill(PASSWORD);
      await page.getByRole("button", { name: "Make the account" }).click();
      await page.getByText("says what will be sent, and to whom").waitFor();
      await page.getByRole("textbox", { name: "What will you send" }).fill("Receipts, to people who bought something");
      await page.getByLabel("New password").fill(PASSWORD);
      await page.getByRole("button", { name: "Make the account" }).click();
      await page.getByRole("heading", { name: "Live sending waits for the review" }).waitFor();
      await page.getByText("A mail sent with a test key · missing").waitFor();
      const code = page.locator(".said:visible");
      assert.match(await code.innerText(), /Bearer <API_KEY>/);
      await page.getByRole("button", { name: "Fill in a new test key" }).click();
      await page.getByText("it is shown only now").waitFor();
      await page.getByText("Make an API key (done)").waitFor();
      await page.getByRole("tab", { name: "curl" }).focus();
      await page.keyboard.press("ArrowRight");
      await page.getByText('import { Postern } from "postern-mail";').waitFor();
      const key = /"(svc_test_\w+)"/.exec(await code.innerText())?.[1];
      const sent = await fetch(`${scene.base_url}/v1/me`, { headers: { authorization: `Bearer ${key}` } });
      assert.equal(sent.status, 200);
      await close();
      assert.deepEqual(unexpected(complaints), []);
    },
  },
];
