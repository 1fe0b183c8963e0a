// The examples of the description: each fits its schema, each is played against the server, and what the server answers has
// the form of the example.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { parseYaml } from "@redocly/openapi-core";
import { Ajv } from "ajv";
import { exampleOf as madeExample } from "../../src/api/docs/schema.ts";
import { EVENT_TYPES } from "../../src/webhooks/types.ts";
import { answerName, type Played, type Stage, setStage } from "./examples.ts";
import { type Description, readDescription, type Schema } from "./operations.ts";

let stage: Stage;
let description: Description;
let ajv: Ajv;

before(async () => {
  stage = await setStage();
  description = parseYaml(await readDescription(stage.api)) as Description;
  ajv = new Ajv({ strict: false, allErrors: true });
  for (const format of ["uuid", "date-time", "date", "byte", "binary", "uri"]) ajv.addFormat(format, true);
  ajv.addSchema(withNulls({ components: description.components }), "description");
});

after(async () => {
  await stage?.close();
});

/** A validator of JSON Schema does not know `nullable`, which stands beside references, too. */
function withNulls(value: unknown): object {
  if (Array.isArray(value)) return value.map(withNulls);
  if (value === null || typeof value !== "object") return value as never;
  const { nullable, ...rest } = Object.fromEntries(Object.entries(value).map(([key, part]) => [key, withNulls(part)]));
  return nullable === (true as never) ? { anyOf: [rest, { type: "null" }] } : rest;
}

function complaints(name: string, value: unknown): string {
  const validate = ajv.getSchema(`description#/components/schemas/${name}`);
  assert.ok(validate, `no component ${name}`);
  return validate(value) ? "" : JSON.stringify(validate.errors?.slice(0, 3));
}

const exampleOf = (component: string): unknown =>
  madeExample(description, { $ref: `#/components/schemas/${component}` });

function none(faults: string[]): void {
  assert.equal(faults.length, 0, `\n  ${faults.join("\n  ")}`);
}

const isJson = ({ operation, status }: Played) =>
  operation.responses[status]?.content?.["application/json"] !== undefined;

describe("the examples", () => {
  it("of requests fit their schemas, and each operation with a body has one", () => {
    none(
      stage.operations.flatMap(({ name, requestBody }) => {
        const component = requestBody?.content["application/json"]?.schema.$ref?.split("/").at(-1);
        if (!component) return [];
        const example = exampleOf(component);
        const wrong = example === undefined ? "no example" : complaints(component, example);
        return wrong ? [`${name}: ${wrong}`] : [];
      }),
    );
  });

  it("of events fit their schemas, and the union tells them apart", () => {
    const calls = (
      description as unknown as {
        "x-webhooks": Record<
          string,
          { post: { requestBody: { content: Record<string, { schema: Schema; example: unknown }> } } }
        >;
      }
    )["x-webhooks"];
    assert.deepEqual(Object.keys(calls), [...EVENT_TYPES]);
    for (const [event, { post }] of Object.entries(calls)) {
      const { schema, example } = post.requestBody.content["application/json"] as { schema: Schema; example: unknown };
      assert.equal(complaints(schema.$ref?.split("/").at(-1) ?? "", example), "", event);
      assert.equal(complaints("Event", example), "", event);
    }
  });

  it("are played: every operation succeeds with its own, and answers in the form that the answer's example has", async () => {
    const faults: string[] = [];
    for (const operation of stage.operations) {
      const played = await stage.play(operation);
      if (played.status >= 300) faults.push(`${operation.name}: ${played.status} ${JSON.stringify(played.body)}`);
      const name = answerName(played);
      if (!isJson(played)) continue;
      if (!name) faults.push(`${operation.name}: its answer has no name`);
      else faults.push(...judge(name, played));
    }
    none(faults);
  });
});

function judge(name: string, { operation, body }: Played): string[] {
  const example = exampleOf(name);
  const wrong = [complaints(name, body), complaints(name, example)].filter(Boolean);
  const fields = (value: unknown) =>
    Object.keys((value ?? {}) as object)
      .sort()
      .join();
  if (fields(example) !== fields(body)) wrong.push(`the example has ${fields(example)}, the answer ${fields(body)}`);
  return wrong.map((word) => `${operation.name}: ${word}`);
}
