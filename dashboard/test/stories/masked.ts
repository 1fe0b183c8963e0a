// Stories of masked addresses: made, watched, with contacts to write to, a reply that is tried, and mailboxes that confirm.
import assert from "node:assert/strict";
import { publicKeyOf, sendIn } from "../fill-masked.ts";
import type { Story } from "../story.ts";

export const MASKED_STORIES: readonly Story[] = [
  {
    name: "a masked address is made, switched off and on, deleted and restored; its mailbox is asked to confirm",
    async play({ scene }, page) {
      await page.goto("/masked");
      await page.getByRole("button", { name: "New alias" }).click();
      await page.getByRole("textbox", { name: "Forward to" }).fill("nobody");
      await page.getByRole("button", { name: "Make it" }).click();
      await page.locator("dialog .problem").waitFor();
      await page.getByRole("textbox", { name: "Forward to" }).fill("maja.lind@posteo.example");
      await page.getByRole("textbox", { name: "Before the @" }).fill("maja.news");
      await page.getByRole("textbox", { name: "Note" }).fill("The newspaper");
      await page.getByRole("button", { name: "Make it" }).click();
      await page.getByRole("heading", { name: /maja\.news@/ }).waitFor();
      await page.getByText("Not confirmed").waitFor();
      await page.getByRole("button", { name: "Switch off" }).click();
      await page.getByText("It is off.").waitFor();
      await page.getByRole("button", { name: "Switch on" }).click();
      await page.locator(".top").getByText("On", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("button", { name: "Delete the address" }).click();
      await page.getByRole("button", { name: "Restore" }).click();
      await page.getByText(/maja\.news@.* is back\./).waitFor();
      const { body } = await scene.ask("GET", "/v1/masked/aliases?q=maja.news");
      assert.equal((body.aliases as unknown as { active: boolean }[])[0]?.active, true);
      await page.getByRole("link", { name: "Not confirmed" }).click();
      await page.getByText("1 mailbox ·").waitFor();
    },
  },
  {
    name: "a held reply says where and how it is sent; a contact is added, blocked and forgotten; a reply is tried",
    async play({ scene, masked }, page) {
      await page.goto("/masked");
      await page.getByRole("link", { name: masked.email }).click();
      await page.getByText("Nobody received it.").waitFor();
      await page.getByText(/application\/pdf/).waitFor();
      await page.getByLabel("Outcome").selectOption("held");
      await page.waitForURL(/outcome=held/);
      await page.getByText("1 act ·").waitFor();
      await page.getByRole("button", { name: "Contacts" }).click();
      await page.getByRole("button", { name: "Add a contact" }).click();
      await page.getByRole("textbox", { name: "Address" }).fill("help@bank.example");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.getByText("Mail to the reply address reaches help@bank.example.").waitFor();
      const bank = page.locator(".contact", { hasText: "help@bank.example" });
      await bank.getByRole("button", { name: "Block" }).click();
      await bank.getByText("Blocked", { exact: true }).waitFor();
      const { body } = await scene.ask("GET", `/v1/masked/aliases/${masked.alias}/contacts?blocked=true`);
      assert.equal((body.contacts as unknown as unknown[]).length, 2);
      await page.getByRole("button", { name: "Forget help@bank.example" }).click();
      await page.getByRole("button", { name: "Forget the contact" }).click();
      await page.getByText("help@bank.example is forgotten.").waitFor();
      await page.getByRole("button", { name: "Try a reply" }).click();
      const written = `From: ines.brandt@home.example\nTo: ${masked.reply_address}\nSubject: Re: Order`;
      await page.getByRole("textbox").fill(`${written}\n\nThank you.`);
      await page.getByRole("button", { name: "Try it" }).click();
      await page.getByRole("status").getByText("Sent", { exact: true }).waitFor();
    },
  },
  {
    name: "the limits of masked addresses name the field that is wrong, and are kept",
    async play({ scene }, page) {
      await page.goto("/masked/settings");
      await page.getByLabel("One mailbox, an hour").fill("-3");
      await page.getByRole("button", { name: "Save" }).click();
      await page.locator(".field .problem").waitFor();
      await page.getByLabel("One mailbox, an hour").fill("25");
      await page.getByLabel("Forged mail").selectOption("warn");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("The settings are saved.").waitFor();
      const { body } = await scene.ask("GET", "/v1/masked/settings");
      assert.deepEqual([body.replies_person_hour, body.forged_mail], [25, "warn"]);
    },
  },
  {
    name: "a mailbox is removed after a question, stays while it is an alias's only one, and leaves the aliases that have another",
    async play({ scene }, page) {
      const only = "only.one@posteo.example";
      const second = "second.one@posteo.example";
      const make = async (local_part: string, forward_to: string[]): Promise<string> => {
        const { status, body } = await scene.ask("POST", "/v1/masked/aliases", { local_part, forward_to });
        assert.equal(status, 201, JSON.stringify(body));
        return (body.alias as unknown as { id: string }).id;
      };
      await make("alone.shop", [only]);
      const both = await make("both.shop", [only, second]);
      const row = (email: string) => page.getByRole("row").filter({ hasText: email });
      const remove = async (email: string): Promise<void> => {
        await row(email)
          .getByRole("button", { name: `Remove ${email}` })
          .click();
        await page.getByRole("button", { name: "Remove the mailbox" }).click();
      };
      await page.goto("/masked/destinations");
      await row(second)
        .getByRole("button", { name: `Remove ${second}` })
        .click();
      await page.getByRole("button", { name: "Keep it" }).click();
      await row(second).waitFor();
      await remove(second);
      await page.getByText(`${second} is removed from all aliases.`).waitFor();
      await row(second).waitFor({ state: "hidden" });
      const { body } = await scene.ask("GET", `/v1/masked/aliases/${both}`);
      assert.deepEqual((body.alias as unknown as { forward_to: string[] }).forward_to, [only]);
      await remove(only);
      await page.getByText(/the only one of an alias; change or delete that first/i).waitFor();
      await row(only).waitFor();
      await row(only).getByRole("link", { name: only, exact: true }).click();
      await page.getByRole("link", { name: "2 aliases" }).click();
      await page.getByText("2 aliases ·").waitFor();
    },
  },
  {
    name: "mail that failed is downloaded, sent again once what keeps it is mended, and deleted",
    async play({ scene, masked }, page) {
      const { body } = await scene.ask("GET", "/v1/masked/failed?kind=forward");
      const [{ destination } = { destination: "" }] = body.failed as unknown as { destination: string }[];
      const switchTo = (active: boolean) => scene.ask("PUT", `/v1/masked/aliases/${masked.alias}`, { active });
      const desktop = page.getByRole("cell").last();
      await page.goto(`/masked/${masked.alias}`);
      await page.getByRole("link", { name: "Mail that is kept" }).click();
      await page.getByText("2 mails ·").waitFor();
      await page.getByLabel("What").selectOption("forward");
      await page.waitForURL(/kind=forward/);
      await page.getByText("1 mail ·").waitFor();
      await page.getByRole("cell", { name: "Refused: 5.7.1, content" }).waitFor();
      const download = page.waitForEvent("download");
      await desktop.getByRole("button", { name: `Download the mail to ${destination}` }).click();
      assert.match((await download).suggestedFilename(), /^[\w-]+\.eml$/);
      await switchTo(false);
      await desktop.getByRole("button", { name: `Send again to ${destination}` }).click();
      const question = page.getByRole("dialog");
      await question.getByRole("button", { name: "Send again" }).click();
      await question.getByText(/It was not sent\. .*switched off or not confirmed/).waitFor();
      await switchTo(true);
      await question.getByRole("button", { name: "Send again" }).click();
      await page.getByText("The mail is on its way again.").waitFor();
      await page.getByText("No failed mail fits").waitFor();
      await page.getByRole("link", { name: "Show all" }).click();
      await page.getByText("1 mail ·").waitFor();
      await desktop.getByRole("button", { name: /^Delete the mail to/ }).click();
      await page.getByRole("button", { name: "Delete the mail", exact: true }).click();
      await page.getByText("The mail is deleted.").waitFor();
      await page.getByText("No mail failed").waitFor();
    },
  },
  {
    name: "a mailbox gets a pattern, whose first mail makes an alias, and a key, which is shown by its fingerprint and removed",
    async play({ scene, masked }, page) {
      await page.goto("/masked/destinations");
      await page.getByRole("link", { name: "ines.brandt@home.example", exact: true }).click();
      await page.getByRole("button", { name: "Add a pattern" }).click();
      await page.getByRole("textbox", { name: "Pattern" }).fill("ines@brandt.example");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.locator("dialog .problem").waitFor();
      const pattern = `*.home@${masked.domain}`;
      await page.getByRole("textbox", { name: "Pattern" }).fill(pattern);
      await page.getByRole("spinbutton", { name: "New aliases, a day" }).fill("5");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.getByText(`Mail to ${pattern} makes aliases from now on.`).waitFor();
      const to = `tea.home@${masked.domain}`;
      await sendIn(scene, { from: "orders@shop.example", to, text: "Your tea." });
      await page.reload();
      await page.getByRole("link", { name: pattern }).click();
      await page.getByRole("link", { name: to }).click();
      await page.getByRole("link", { name: pattern }).waitFor();
      await page.getByRole("link", { name: "ines.brandt@home.example" }).click();
      await page.getByRole("button", { name: `Remove ${pattern}` }).click();
      await page.getByRole("button", { name: "Remove the pattern" }).click();
      await page.getByText(`${pattern} makes no aliases any more.`).waitFor();
      await page.getByRole("button", { name: "Add a key" }).click();
      await page.getByRole("textbox", { name: "Public key" }).fill("no key");
      await page.getByRole("button", { name: "Save the key" }).click();
      await page.locator("dialog .problem").waitFor();
      const name = "ines.asc";
      const buffer = Buffer.from(await publicKeyOf("ines.brandt@home.example"));
      await page.getByLabel("Or from a file").setInputFiles({ name, buffer, mimeType: "text/plain" });
      await page.getByRole("button", { name: "Save the key" }).click();
      await page.getByText("Mail to ines.brandt@home.example is encrypted from now on.").waitFor();
      const { body: kept } = await scene.ask("GET", `/v1/masked/destinations/${masked.plain}`);
      const { fingerprint } = (kept.destination as unknown as { pgp_key: { fingerprint: string } }).pgp_key;
      await page.getByText(`${fingerprint.slice(0, 4)} ${fingerprint.slice(4, 8)}`).waitFor();
      await page.getByRole("button", { name: "Remove the key" }).click();
      await page.getByRole("button", { name: "Remove it" }).click();
      await page.getByText("is not encrypted any more").waitFor();
      await page.getByRole("button", { name: "Add a key" }).waitFor();
    },
  },
];
