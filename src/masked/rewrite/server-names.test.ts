// Which names of machines must not be in a reply.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serverNames } from "./server-names.ts";

const MAIL = Buffer.from(
  "Received: from laptop.home.example (HELO laptop) by mx.home.example with ESMTP\r\nReceived: from [10.0.0.1] by company.example\r\n\r\n",
);
const namesOf = (given: readonly string[], helo = "out.home.example") =>
  serverNames(MAIL, { helo, remote_ip: "192.0.2.4", ours: ["mx.mask.example"], given }).sort();

test("names of hops and of the greeting, without ours", () => {
  const all = ["192.0.2.4", "company.example", "laptop.home.example", "mx.home.example", "out.home.example"];
  assert.deepEqual(namesOf([]), all);
  assert.ok(!namesOf([], "mx.mask.example").includes("mx.mask.example"));
});

test("a name that stands in a recipient's address tells nothing: a reply into the own company is not held", () => {
  for (const address of ["bob@company.example", "Bob@EU.Company.Example", "bob@my-company.example"]) {
    assert.ok(!namesOf([address]).includes("company.example"), address);
  }
  assert.ok(namesOf(["bob@home.example"]).includes("mx.home.example"));
});
