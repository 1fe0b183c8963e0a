// Signing in at an OpenID Connect provider (the npm package oidc-provider, on loopback), on an installation of its own: the button, the
// way there and back, and who is not let in, in words.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { type Account, startOidcProvider, type TestProvider } from "../../../test/support/oidc-provider.ts";
import { type Scene, setScene } from "../../../test/support/scene.ts";
import { setUpFirst } from "../persons.ts";
import type { Stage } from "../stage.ts";
import { type Story, unexpected } from "../story.ts";

const BUTTON = { name: "Sign in with Nordkiosk staff" };
const KNOWN: Account = { sub: "ines", email: "ines@nordkiosk.example", email_verified: true, name: "Ines Brandt" };

export const OIDC_STORIES: readonly Story[] = [
  {
    name: "a person signs in at the provider and is back where they wanted to go; a forged answer and an unknown person are refused in words",
    async play(stage) {
      await using undo = new AsyncDisposableStack();
      const scene = undo.adopt(await setScene({ embedded: true }), (one) => one.close());
      const redirect = `${scene.base_url}/dashboard/api/oidc/callback`;
      const provider = undo.adopt(await startOidcProvider(redirect), (one) => one.stop());
      await scene.start(undefined, {
        ...{ POSTERN_OIDC_ISSUER: provider.issuer, POSTERN_OIDC_NAME: "Nordkiosk staff" },
        ...{ POSTERN_OIDC_CLIENT_ID: provider.client_id, POSTERN_OIDC_CLIENT_SECRET: provider.client_secret },
      });
      await setUpFirst(scene, { email: KNOWN.email, name: KNOWN.name });
      const given = { stage, scene, provider };
      await asSomebody(given, KNOWN, signsIn);
      await asSomebody(given, KNOWN, isForged);
      await asSomebody(given, { ...KNOWN, sub: "mallory", email: "mallory@elsewhere.example" }, isUnknown);
      await asSomebody(
        given,
        { ...KNOWN, sub: "lou", email: "lou@nordkiosk.example", email_verified: false },
        isUnverified,
      );
    },
  },
];

type Given = { stage: Stage; scene: Scene; provider: TestProvider };

/** In a browser that nobody is signed in with, on the sign-in page. */
async function asSomebody(
  given: Given,
  account: Account,
  play: (page: Page, given: Given) => Promise<void>,
): Promise<void> {
  const { stage, scene, provider } = given;
  provider.become(account);
  const { page, complaints, close } = await stage.open({ at: scene.base_url, as: null });
  try {
    await page.goto("/suppressions");
    await page.getByRole("link", BUTTON).waitFor();
    await play(page, given);
    const others = unexpected(complaints).filter((text) => !text.startsWith(`a request to ${provider.issuer}`));
    assert.deepEqual(others, []);
  } finally {
    await close();
  }
}

async function signsIn(page: Page): Promise<void> {
  await page.getByRole("link", BUTTON).click();
  await page.waitForURL(/\/suppressions$/);
  await page.getByRole("heading", { name: "Suppressions" }).waitFor();
  await page.goto("/settings/security");
  await page.getByText(KNOWN.email).first().waitFor();
  await page.reload();
  await page.getByText(KNOWN.email).first().waitFor();
}

/** Somebody else's way back, opened in this browser: the answer does not belong to what this browser asked. */
async function isForged(page: Page, { scene, provider }: Given): Promise<void> {
  const started = await fetch(`${scene.base_url}/dashboard/api/oidc/start`, { redirect: "manual" });
  await page.goto(await provider.visit(String(started.headers.get("location"))));
  await page.getByRole("alert").getByText("Signing in there did not work.").waitFor();
  await isOut(page);
}

async function isUnknown(page: Page): Promise<void> {
  await page.getByRole("link", BUTTON).click();
  await page
    .getByRole("alert")
    .getByText("Nobody has invited your address. Ask an owner of your organization.")
    .waitFor();
  await isOut(page);
}

async function isUnverified(page: Page): Promise<void> {
  await page.getByRole("link", BUTTON).click();
  await page.getByRole("alert").getByText("Your provider does not say that your e-mail address is verified.").waitFor();
  await isOut(page);
}

/** Still at the door, whatever page is asked for. */
async function isOut(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  await page.goto("/emails");
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
}
