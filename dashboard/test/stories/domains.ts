// Stories of one domain's pages: a change of DKIM keys step by step, warming, statistics, DMARC and its uploads, TLS.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { reportXml } from "../../../src/mail/dmarc-report/report.fixture.ts";
import { makeZip } from "../../../src/mail/dmarc-report/zip.fixture.ts";
import type { Story } from "../story.ts";

export const DOMAIN_STORIES: readonly Story[] = [
  {
    name: "a domain that sends is made to receive too: the question says which record it needs",
    async play({ scene, records }, page) {
      await page.goto(`/domains/${records.pending}/spam`);
      await page.getByText("atelier-brun.example does not receive").waitFor();
      await page.getByRole("link", { name: "To its records" }).click();
      assert.equal(await page.getByRole("button", { name: "Change" }).isDisabled(), true);
      await page.getByLabel("What it is for").selectOption("both");
      await page.getByRole("button", { name: "Change" }).click();
      await page.getByText("It needs our MX record.").waitFor();
      await page.getByRole("button", { name: "Keep it" }).click();
      const before = await scene.ask("GET", `/v1/domains/${records.pending}`);
      assert.equal(before.body.type, "outbound");
      await page.getByRole("button", { name: "Change" }).click();
      await page.getByRole("button", { name: "Change it" }).click();
      await page.getByText("atelier-brun.example is changed to “Sending and receiving”.").waitFor();
      await page.locator(".rec").getByText("MX", { exact: true }).first().waitFor();
      const after = await scene.ask("GET", `/v1/domains/${records.pending}`);
      assert.equal(after.body.type, "both");
      await page.getByLabel("What it is for").selectOption("outbound");
      await page.getByRole("button", { name: "Change" }).click();
      await page.getByText("Mail to it is refused.").waitFor();
      await page.getByRole("button", { name: "Change it" }).click();
      await page.getByText("atelier-brun.example is changed to “Sending”.").waitFor();
    },
  },
  {
    name: "a DKIM key is rotated step by step: made, published, seen, and it signs",
    async play({ scene, records }, page) {
      await page.goto(`/domains/${records.verified}/dkim`);
      await page.getByRole("button", { name: "Rotate" }).click();
      await page.getByRole("textbox", { name: "Selector of the new key" }).fill("not a selector");
      await page.getByRole("button", { name: "Make the new key" }).click();
      await page.locator("dialog .problem").waitFor();
      await page.getByRole("textbox", { name: "Selector of the new key" }).fill("winter");
      await page.getByRole("button", { name: "Make the new key" }).click();
      await page.getByText("winter._domainkey.nordkiosk.example").waitFor();
      await page.getByText("signs until DNS shows it").waitFor();
      const { body } = await scene.ask("GET", `/v1/domains/${records.verified}/dkim`);
      const record = (body.dns_records as unknown as { name: string; value: string; selector: string }[]).find(
        ({ selector }) => selector === "winter",
      );
      assert.ok(record);
      scene.dns.set(record.name, "TXT", [record.value]);
      await page.getByRole("button", { name: "Check DNS now" }).click();
      await page.getByText("winter signs now.").waitFor();
      await page.getByText("Leave its record until").waitFor();
    },
  },
  {
    name: "warming says what may be sent, is paused and resumed, and is skipped only after a warning",
    async play({ scene, records }, page) {
      await page.goto(`/domains/${records.verified}/warming`);
      await page.getByRole("button", { name: "Another phase" }).click();
      await page.getByLabel("Phase", { exact: true }).selectOption("phase_1");
      await page.getByRole("button", { name: "Begin there" }).click();
      await page.getByText("Phase 1 has begun.").waitFor();
      await page.getByText("of 50 recipients today").waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByText("Paused", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByRole("button", { name: "Pause" }).waitFor();
      await page.getByRole("button", { name: "Another phase" }).click();
      await page.getByLabel("Phase", { exact: true }).selectOption("warmed");
      await page.getByText("Providers do not know this domain yet").waitFor();
      assert.equal(await page.getByRole("button", { name: "Begin there" }).isDisabled(), true);
      await page.getByRole("checkbox").check();
      await page.getByRole("button", { name: "Begin there" }).click();
      await page.getByText("Warmed has begun.").waitFor();
      const { body } = await scene.ask("GET", `/v1/domains/${records.verified}/warming`);
      assert.equal(body.phase, "warmed");
    },
  },
  {
    name: "statistics stand in a chart and a table by day, hour and provider, and are kept as CSV",
    async play({ records }, page) {
      await page.goto(`/domains/${records.verified}`);
      await page.getByRole("link", { name: "Statistics" }).click();
      await page.locator(".chart canvas").waitFor();
      const today = new Date().toISOString().slice(0, 10);
      await page.getByRole("cell", { name: today }).waitFor();
      await page.getByLabel("By", { exact: true }).selectOption("provider");
      await page.waitForURL(/by=provider/);
      await page.getByRole("cell", { name: "Other" }).waitFor();
      await page.getByLabel("By", { exact: true }).selectOption("day");
      await page.getByRole("cell", { name: today }).waitFor();
      const file = page.waitForEvent("download");
      await page.getByRole("button", { name: "CSV nordkiosk.example-by-day.csv" }).click();
      const rows = readFileSync(await (await file).path(), "utf8").split("\r\n");
      assert.match(rows[0] ?? "", /^Day,Sent,Delivered/);
      assert.match(rows[1] ?? "", new RegExp(`^${today},[1-9]`));
    },
  },
  {
    name: "DMARC says how much passes, who sends, and the next policy; TLS is asked for",
    async play({ scene, records }, page) {
      await page.goto(`/domains/${records.verified}/dmarc`);
      await page.getByText("pass DMARC").first().waitFor();
      await page.getByRole("cell", { name: "203.0.113.77" }).waitFor();
      await page.getByText("Unknown").first().waitFor();
      await page.getByRole("button", { name: "Reports", exact: true }).click();
      await page.waitForURL(/list=reports/);
      await page.getByRole("cell", { name: "reporter.example" }).first().waitFor();
      await page.getByRole("link", { name: "TLS" }).click();
      await page.getByRole("radio", { name: /^Always/ }).check();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("The policy is saved.").waitFor();
      const { body } = await scene.ask("GET", `/v1/domains/${records.verified}`);
      assert.equal(body.tls_policy, "require");
      await scene.ask("PUT", `/v1/domains/${records.verified}`, { tls_policy: "opportunistic" });
    },
  },
  {
    name: "DMARC reports are uploaded, plain and packed: each says what became of it, and none counts twice",
    async play({ scene, records }, page) {
      const yesterday = Math.floor(Date.now() / 86_400_000 - 1) * 86_400;
      const report = (id: string, domain: string) =>
        Buffer.from(
          reportXml({ id, domain, org: "postmaster.example", begin_s: yesterday, records: [{ count: 4_217 }] }),
        );
      const file = (name: string, buffer: Buffer) => ({ name, mimeType: "application/octet-stream", buffer });
      const drop = (...files: ReturnType<typeof file>[]) => page.getByLabel(/^Drop reports here/).setInputFiles(files);
      const said = (name: string) => page.getByRole("listitem").filter({ hasText: name });
      await page.goto(`/domains/${records.verified}/dmarc`);
      await page.getByRole("link", { name: "Upload reports" }).click();
      await page.waitForURL(/list=upload/);
      await drop(
        file("one.xml", report("up-1", "nordkiosk.example")),
        file("two.xml.gz", gzipSync(report("up-2", "nordkiosk.example"))),
        file("three.zip", makeZip([{ name: "three.xml", content: report("up-3", "news.nordkiosk.example") }])),
      );
      await said("one.xml").getByText("4,217 mails, reported from postmaster.example.").waitFor();
      await said("two.xml.gz").getByText("Counted").waitFor();
      await said("three.zip").getByText("4,217 mails about news.nordkiosk.example").waitFor();
      await drop(file("again.xml", report("up-1", "nordkiosk.example")));
      await said("again.xml").getByText("that is here already").waitFor();
      await drop(file("other.xml", report("up-4", "elsewhere.example")), file("notes.txt", Buffer.from("no report")));
      await said("other.xml").getByText("The report is about elsewhere.example").waitFor();
      await said("notes.txt").getByText("is no DMARC report").waitFor();
      await page.getByRole("link", { name: "All reports" }).click();
      await page.getByRole("cell", { name: "postmaster.example" }).nth(2).waitFor();
      const { body } = await scene.ask("GET", `/v1/domains/${records.verified}/dmarc/reports?limit=100`);
      const uploaded = (body.reports as unknown as { org_name: string }[]).filter(
        ({ org_name }) => org_name === "postmaster.example",
      );
      assert.equal(uploaded.length, 3);
    },
  },
];
