// `npm run demo -- --keep`: when the story is over, everything stays up for a newcomer's own first requests: the
// installation with its verified domain, the name server, the recipients' mail server and the webhook receiver. Ctrl-C ends all.
import { styleText } from "node:util";
import { PASSWORD } from "../../dashboard/test/persons.ts";
import type { PosternProcess } from "../support/postern-process.ts";
import type { Scene } from "../support/scene.ts";
import { receiveAt } from "../support/stories.ts";
import { serveMailbox } from "./mailbox.ts";
import { OWNER } from "./month/month.ts";

/** Whose mail arrives here: nothing leaves this machine, whatever address is written to. */
const RECIPIENTS = ["*.example", "*.test", "*.com", "*.net", "*.org", "*.eu", "*.de", "*.io"];
const PARENT_LOOK_MS = 1_000;

/** Resolves when somebody ends it, or when the installation has ended by itself. */
export async function keepUp(scene: Scene, postern: PosternProcess, isJson: boolean): Promise<void> {
  for (const name of RECIPIENTS) receiveAt(scene.dns, name, "mx.recipient.example");
  const mailbox = await serveMailbox(scene.sink.messages);
  const ended = Promise.race([askedToEnd(), postern.exited]);
  const { base_url, live_key, test_key, submission_port, env } = scene;
  console.log(`\n${styleText("bold", "It stays up until Ctrl-C.")} Nothing leaves this machine.\n`);
  console.log(`  base URL    ${base_url}\n  live key    ${live_key}\n  test key    ${test_key}`);
  console.log(`  dashboard   ${base_url}/ as ${OWNER.email}, password: ${PASSWORD} (a made-up shop is in it)`);
  console.log(`  domain      shop.example, verified and without warming limits`);
  console.log(`  submission  127.0.0.1:${submission_port}, user postern, password: a key`);
  console.log(
    `  simulator   bounced@simulator.${env.POSTERN_HOSTNAME} and others: real events, no mail (docs/guides/basics.md)`,
  );
  console.log(`  arrived     ${mailbox.url} (in a browser), or: curl ${mailbox.url}messages\n`);
  console.log(
    `Send your first mail, to anybody@anywhere.example or another made-up address:\n\n${firstRequest(scene)}\n`,
  );
  if (isJson)
    console.log(
      JSON.stringify({
        base_url,
        live_key,
        test_key,
        mailbox: mailbox.url,
        domain: "shop.example",
        person: OWNER.email,
        password: PASSWORD,
      }),
    );
  try {
    await ended;
    console.log("\nEnding the demo.");
  } finally {
    await mailbox.stop();
  }
}

function firstRequest({ base_url, live_key }: Scene): string {
  const mail =
    '{"from":"you@shop.example","to":["anybody@anywhere.example"],"subject":"Hello","html_body":"<p>Hello</p>"}';
  return [
    `curl -X POST ${base_url}/v1/send -H "Authorization: Bearer ${live_key}" \\`,
    `     -H "Content-Type: application/json" -d '${mail}'`,
  ].join("\n");
}

/** npm passes no signal on: there the end of our parent counts as one. */
function askedToEnd(): Promise<void> {
  const parent = process.ppid;
  return new Promise((done) => {
    const look = setInterval(() => process.ppid !== parent && end(), PARENT_LOOK_MS);
    const end = (): void => {
      clearInterval(look);
      done();
    };
    process.once("SIGINT", end);
    process.once("SIGTERM", end);
  });
}
