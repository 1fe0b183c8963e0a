import assert from "node:assert/strict";
import { test } from "node:test";
import { LINK_REWRITERS } from "../link-rewriters.fixture.ts";
import { linkForms, unwrapLinks } from "./rewritten-links.ts";

const LINK = "https://shop.example/a_b-c/?e=lena%40home.example&x=ü@@&b=1#top";
const inHtml = (link: string) => `<a href="${link.replace(/&/g, "&amp;")}" title="x">x</a>`;
const { mimecast, ...readable } = LINK_REWRITERS;

for (const [service, rewrite] of Object.entries(readable)) {
  test(`a link that ${service} rewrote is what it was before, in text and in HTML`, () => {
    const given = rewrite(LINK, "lena@home.example");
    assert.equal(unwrapLinks(`see (${given}).`, false), `see (${LINK}).`);
    assert.equal(unwrapLinks(inHtml(given), true), inHtml(LINK));
    assert.ok(linkForms(given).includes(LINK));
  });
}

test("services on top of each other are undone, a link that keeps its target on a server stays", () => {
  const [one, two] = [LINK_REWRITERS.safelinks, LINK_REWRITERS.proofpoint3];
  assert.ok(one && two && mimecast);
  assert.equal(unwrapLinks(two(one(LINK, "a@b.example"), "a@b.example"), false), LINK);
  assert.equal(unwrapLinks(mimecast(LINK, ""), false), mimecast(LINK, ""));
});

test("Gmail's own copy of a link goes, and broken links stay", () => {
  const copied = `<a href="${LINK.replace(/&/g, "&amp;")}" data-saferedirecturl="https://www.google.com/url?q=x">x</a>`;
  assert.equal(unwrapLinks(copied, true), inHtml(LINK).replace(' title="x"', ""));
  for (const broken of ["https://www.google.com/url?q=%E0%A4%A", "https://urldefense.com/v3/__https://x/**z__;!!a$"]) {
    assert.equal(unwrapLinks(broken, false), broken);
  }
});
