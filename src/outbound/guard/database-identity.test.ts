// What tells a database from its copies, and what must not change who it is.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { identityOf, isSame, isSameCluster } from "./database-identity.ts";

type Db = Parameters<typeof identityOf>[0];

function dbWhere(cluster: string | { code: string }): Db {
  const query = async (text: string) => {
    if (!text.includes("pg_control_system")) return [{ database: "16384", relation: "17001" }];
    if (typeof cluster === "string") return [{ cluster }];
    throw Object.assign(new Error("refused"), cluster);
  };
  return { query } as unknown as Db;
}

describe("the identity of a database", () => {
  it("is that of its cluster, its own and its table's", async () => {
    assert.equal(await identityOf(dbWhere("7")), "7:16384:17001");
  });

  it("is another one in another cluster, in another database of it, and where a dump made the table again", () => {
    const noted = "7:16384:17001";
    assert.equal(isSame(noted, noted), true);
    for (const other of ["8:16384:17001", "7:16385:17001", "7:16384:17002"]) assert.equal(isSame(noted, other), false);
  });

  it("leaves the cluster out where the provider lets nobody ask, and the rest counts", async () => {
    for (const code of ["42501", "42883"]) {
      const own = await identityOf(dbWhere({ code }));
      assert.equal(isSame("7:16384:17001", own), true);
      assert.equal(isSame("7:16385:17001", own), false);
    }
    await assert.rejects(identityOf(dbWhere({ code: "57P01" })), /refused/);
  });

  it("of a version before is compared by its cluster alone: timelines, inodes and times say nothing", () => {
    for (const noted of ["7", "7/1", "7/2/5/1700000000/9", "unknown"])
      assert.equal(isSameCluster(noted, "7:16384:17001"), true, noted);
    assert.equal(isSameCluster("8/1", "7:16384:17001"), false);
    assert.equal(isSameCluster("8/1", "-:16384:17001"), true);
  });
});
