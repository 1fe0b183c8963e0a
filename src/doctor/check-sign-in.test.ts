// What the doctor says about the provider that people sign in at.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startOidcProvider } from "../../test/support/oidc-provider.ts";
import { checkSignIn } from "./check-sign-in.ts";

async function found(issuer: string): Promise<string[]> {
  const client = { client_id: "a", client_secret: "b", name: "a", domains: [], role: "viewer" as const };
  return (await checkSignIn({ oidc: { issuer, ...client } })).map(({ status, says }) => `${status}: ${says}`);
}

test("a provider must say how to sign in there, under the very address that is set", async () => {
  assert.deepEqual(await checkSignIn({ oidc: null }), []);
  const provider = await startOidcProvider("https://api.postern.test/dashboard/api/oidc/callback");
  assert.deepEqual(await found(provider.issuer), [`ok: The provider ${provider.issuer} says how to sign in there.`]);
  assert.match((await found(`${provider.issuer}/elsewhere`))[0] ?? "", /^problem: .*\/elsewhere .*, 404\.$/);
  await provider.stop();
  assert.match((await found(provider.issuer))[0] ?? "", /^problem: .* does not say how to sign in: .+\.$/);
});
