import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { type TestDatabase, testDatabase } from "../../../test/support/database.ts";
import { arrayWriter, type ElementType } from "./binary-arrays.ts";

let database: TestDatabase;
let client: pg.Client;

before(async () => {
  database = await testDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});

after(async () => {
  await client?.end();
  await database?.drop();
});

async function roundTrip(type: ElementType, values: readonly unknown[]): Promise<unknown[]> {
  const array = arrayWriter().array(type, values);
  const { rows } = await client.query(`select u.v from unnest($1::${type}[]) with ordinality as u (v, n) order by n`, [
    array,
  ]);
  return rows.map(({ v }) => v);
}

const uuid = "0193aabb-ccdd-7eef-8123-456789abcdef";
const other = "ffffffff-ffff-ffff-ffff-ffffffffffff";

describe("arrayWriter", () => {
  const cases: [type: ElementType, values: unknown[], read?: unknown[]][] = [
    ["bool", [true, false, null, true]],
    ["bytea", [Buffer.from([0, 255, 10]), Buffer.alloc(0), null]],
    ["bigint", [0, 1, -1, 2 ** 53 - 1, -(2 ** 53 - 1), 4_294_967_296, -4_294_967_297, null]],
    ["smallint", [0, 32_767, -32_768, null, null]],
    ["int", [0, 2_147_483_647, -2_147_483_648, null]],
    ["real", [0, 1.5, -2.25, null, 8.1]],
    ["text", ["", "a", "a", 'it\'s "x" {,} \\', "日本 😀", null, "NULL", "x".repeat(100_000), "a"]],
    ["text", ["half \ud800 pair"], ["half \ufffd pair"]],
    ["timestamptz", [new Date(0), new Date("2026-11-20T12:34:56.789Z"), new Date("1999-12-31T23:59:59.999Z"), null]],
    ["uuid", [uuid, uuid, null, other, uuid, uuid]],
    ["text", []],
    ["int", [undefined, 1], [null, 1]],
  ];
  for (const [type, values, read] of cases) {
    it(`writes ${type}[] of ${values.length} as the server reads it`, async () => {
      const got = await roundTrip(type, values);
      // node-postgres gives int8 as the text it came as, unless the program says otherwise (db.ts does).
      const plain = type === "bigint" ? got.map((value) => (value === null ? null : Number(value))) : got;
      assert.deepEqual(plain, read ?? values);
    });
  }

  it("keeps earlier arrays whole when the buffer grows", async () => {
    const writer = arrayWriter();
    const first = writer.array("uuid", [uuid, other]);
    const second = writer.array(
      "text",
      Array.from({ length: 50 }, (_, i) => `${i}`.repeat(3_000)),
    );
    const third = writer.array("int", [7]);
    const { rows } = await client.query("select $1::uuid[] as a, length($2::text[]::text) as b, $3::int[] as c", [
      first,
      second,
      third,
    ]);
    assert.deepEqual([rows[0].a, rows[0].c], [[uuid, other], [7]]);
    assert.ok(rows[0].b > 250_000);
  });

  it("repeats a value over a growing buffer", async () => {
    const values = Array.from({ length: 40 }, () => "y".repeat(5_000));
    assert.deepEqual(await roundTrip("text", values), values);
  });

  it("refuses what is no value of its type", () => {
    const wrong: [ElementType, unknown][] = [
      ["uuid", "x"],
      ["uuid", `${uuid}0`],
      ["uuid", "gggggggg-gggg-gggg-gggg-gggggggggggg"],
      ["bigint", 1.5],
      ["bigint", 2 ** 53],
      ["smallint", 40_000],
      ["int", 2 ** 31],
      ["timestamptz", new Date(Number.NaN)],
    ];
    for (const [type, value] of wrong) assert.throws(() => arrayWriter().array(type, [value]), `${type} ${value}`);
  });
});
