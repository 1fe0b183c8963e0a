import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { limitUploads } from "./limit-uploads.ts";

type Hook = ReturnType<typeof limitUploads>;

const enter = (hook: Hook, raw: EventEmitter) =>
  hook({ account: { org_id: "one" } } as Parameters<Hook>[0], { raw } as unknown as Parameters<Hook>[1]);
const connection = (destroyed: boolean) => Object.assign(new EventEmitter(), { destroyed });

test("a client that left before its turn takes no place, one that leaves later gives it back", async () => {
  const hook = limitUploads({ places: 2, waiting_max: 0 }, "too many", 1);
  await assert.rejects(enter(hook, connection(true)), /too many/);
  const [first, second] = [connection(false), connection(false)];
  await enter(hook, first);
  await assert.rejects(enter(hook, second), /too many/);
  first.emit("close");
  await enter(hook, second);
});
