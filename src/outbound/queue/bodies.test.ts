// Loading bodies when the row, the blob or the store is not there.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { createFolderBlobs, isStoreTrouble } from "../../platform/storage/blobs.ts";
import { bodyLoader } from "./bodies.ts";

const LARGE = Buffer.from(`Subject: large\r\n\r\n${"x".repeat(300_000)}\r\n`);

let api: TestApi;
let id: string;

before(async () => {
  api = await testApi();
});

after(async () => {
  await api?.close();
});

beforeEach(() => {
  id = api.world.random.uuid();
});

async function store(body: { mime?: Buffer | null; blob_key?: string | null }): Promise<void> {
  const { mime = null, blob_key = null } = body;
  const values = [api.org_id, id, mime, blob_key];
  await api.world.db.query("insert into message_body (org_id, id, mime, blob_key) values ($1, $2, $3, $4)", values);
}

const load = (blobs = api.world.blobs) => bodyLoader({ ...api.world, blobs })({ org_id: api.org_id, message_id: id });

async function unread(): Promise<number> {
  const text = await api.world.metrics.text();
  return Number(/^postern_bodies_unread_total (\d+)$/m.exec(text)?.[1]);
}

describe("the body of a message", () => {
  it("comes from its row, or from the blob that its row names", async () => {
    await store({ mime: Buffer.from("small") });
    assert.equal(String(await load()), "small");
    id = api.world.random.uuid();
    await store({ blob_key: await api.world.blobs.put(LARGE) });
    assert.deepEqual(await load(), LARGE);
  });

  it("is gone for good only where its row is gone or names nothing", async () => {
    assert.equal(await load(), null);
    await store({});
    assert.equal(await load(), null);
  });

  it("is not gone because the blob lies in another machine's folder: the store is in trouble, and that is counted", async () => {
    await store({ blob_key: await api.world.blobs.put(LARGE) });
    const before = (await load()) && (await unread());
    const elsewhere = createFolderBlobs(join(api.config.data_dir, "elsewhere"), () => undefined);
    await assert.rejects(load(elsewhere), (error) => isStoreTrouble(error));
    assert.equal(await unread(), (before as number) + 1);
  });

  it("is not gone because the store cannot be read, or answers other bytes", async () => {
    const key = await api.world.blobs.put(LARGE);
    await store({ blob_key: key });
    const path = join(api.config.data_dir, "blobs", key.slice(0, 2), key.slice(2, 4), key);
    assert.deepEqual(readFileSync(path), LARGE);
    await writeFile(path, "something else");
    await assert.rejects(load(), (error) => isStoreTrouble(error));
    await rm(path);
    await mkdir(path);
    await assert.rejects(load(), (error) => isStoreTrouble(error));
  });
});
