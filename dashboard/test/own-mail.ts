// Mail of Postern itself in stories: its domain is made ready, and what it mails is found at the recipients' server.
import type { Scene } from "../../test/support/scene.ts";
import { until } from "../../test/support/until.ts";
import { publish, type ShownRecord } from "../../test/support/verified-domain.ts";
import { askAs } from "./persons.ts";

const SEEN_MS = 20_000;

/** Publishes the records of the service's own domain, and waits until they are seen. From then on no link is shown. */
export async function readyToMail(scene: Scene): Promise<void> {
  const { body } = await scene.ask("GET", "/v1/masked/domain");
  publish(scene.dns, body.records as unknown as ShownRecord[]);
  const isReady = async () => (await askAs(scene, null, ["GET", "ways-in"])).body.mails === true;
  await until("the records of the service's own domain are seen", isReady, SEEN_MS);
}

/** The last mail of this kind to this address, its lines put together. */
export async function mailTo(scene: Scene, address: string, subject: RegExp): Promise<string> {
  const found = () =>
    scene.sink.messages.findLast(({ to, bytes }) => to.includes(address) && subject.test(String(bytes)));
  await until(`${address} has mail`, async () => found() !== undefined);
  return String(found()?.bytes)
    .replaceAll(/=\r?\n/g, "")
    .replaceAll("=3D", "=");
}

export function linkIn(mail: string): string {
  return /http\S+#[\w-]+/.exec(mail)?.[0] ?? "";
}
