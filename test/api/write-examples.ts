// `npx node test/api/write-examples.ts` plays the examples of requests and writes src/api/examples.json, which the
// description takes its examples from; `npx biome check --write src/api/examples.json` then sets it in lines.
import { writeFileSync } from "node:fs";
import { samplePayload } from "../../src/webhooks/sample.ts";
import { EVENT_TYPES } from "../../src/webhooks/types.ts";
import { REQUESTS } from "./example-requests.ts";
import { answerName, setStage, toExample } from "./examples.ts";

const FILE = new URL("../../src/api/examples.json", import.meta.url);

/** Of the answers in one form, the one that shows most. */
const nulls = (value: unknown): number => JSON.stringify(value).split("null").length;

const stage = await setStage();
const answers: Record<string, unknown> = {};
for (const operation of stage.operations) {
  const played = await stage.play(operation);
  if (played.status >= 300) throw new Error(`${operation.name}: ${played.status} ${JSON.stringify(played.body)}`);
  const name = answerName(played);
  if (!name) continue;
  const example = toExample(played.body);
  if (answers[name] === undefined || nulls(example) < nulls(answers[name])) answers[name] = example;
}
const shown = { "{domain}": "shop.example", "{domain_id}": "shop.example", "{local_part}": "help" };
let requests = JSON.stringify(REQUESTS).replaceAll("{rule_id}", "0193a5c0-7b1e-7000-8000-000000000001");
for (const [placeholder, value] of Object.entries(shown)) requests = requests.replaceAll(placeholder, value);
const events = Object.fromEntries(
  EVENT_TYPES.map((event) => {
    const payload = samplePayload(stage.api.world, event);
    return [
      event,
      toExample({ event, timestamp: new Date().toISOString(), event_id: stage.api.world.random.uuid(), ...payload }),
    ];
  }),
);
writeFileSync(FILE, `${JSON.stringify({ requests: JSON.parse(requests), answers, events }, null, 2)}\n`);
await stage.close();
