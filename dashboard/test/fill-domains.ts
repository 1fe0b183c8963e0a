// Reports on the verified domain for the stage: our own mail, a forwarder's, and somebody unknown's.
import { reportXml } from "../../src/mail/dmarc-report/report.fixture.ts";
import type { Scene } from "../../test/support/scene.ts";

const DAY_S = 86_400;
const DAYS = 20;

export async function fillDomains(scene: Scene): Promise<void> {
  const today = Math.floor(Date.now() / 1000 / DAY_S) * DAY_S;
  for (let day = DAYS; day >= 1; day -= 1) {
    const xml = reportXml({
      ...{ id: `r-${day}`, domain: "nordkiosk.example", begin_s: today - day * DAY_S, p: "none" },
      records: [
        { ip: "192.0.2.1", count: 180 + ((day * 37) % 60) },
        { ip: "198.51.100.9", count: 12, spf: "fail", spf_result: "fail" },
        { ip: "203.0.113.77", count: 9 + (day % 4), dkim: "fail", spf: "fail", spf_result: "fail" },
      ],
    });
    const answer = await fetch(`${scene.base_url}/v1/dmarc/reports`, {
      method: "POST",
      headers: { authorization: `Bearer ${scene.live_key}`, "content-type": "application/octet-stream" },
      body: xml,
    });
    if (answer.status !== 201) throw new Error(`not uploaded: ${await answer.text()}`);
  }
}
