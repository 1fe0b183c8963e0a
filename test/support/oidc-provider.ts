// An OpenID Connect provider on loopback: the npm package oidc-provider, with people who need no password there.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

export type Account = { sub: string; email: string; email_verified: boolean; name: string };
export type TestProvider = {
  issuer: string;
  client_id: string;
  client_secret: string;
  /** Who signs in there from now on; `inToken` stands in the ID token, all else at the userinfo endpoint alone. */
  become(account: Account, inToken?: Partial<Account>): void;
  /** Goes from the address that Postern sent the browser to, to the one that leads back. */
  visit(url: string): Promise<string>;
  stop(): Promise<void>;
};

const CLIENT_ID = "postern";
const CLIENT_SECRET = "a secret of the test";

/** Knows one client, whose answers go to `redirectUri`. */
export async function startOidcProvider(redirectUri: string): Promise<TestProvider> {
  let account: Account = { sub: "nobody", email: "nobody@example.net", email_verified: false, name: "" };
  let inToken: Partial<Account> = {};
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: CLIENT_ID, client_secret: CLIENT_SECRET, redirect_uris: [redirectUri] }],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    features: { devInteractions: { enabled: false } },
    pkce: { required: () => true },
    conformIdTokenClaims: false,
    findAccount: (_ctx, sub) => ({
      accountId: sub,
      claims: async (use) => ({ ...(use === "id_token" ? inToken : account), sub }),
    }),
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
  });
  const answer = provider.callback();
  server.on("request", async (request, response) => {
    if (!request.url?.startsWith("/interaction/")) return void answer(request, response);
    const { prompt, params, session } = await provider.interactionDetails(request, response);
    if (prompt.name === "login") {
      await provider.interactionFinished(request, response, { login: { accountId: account.sub } });
      return;
    }
    const grant = new provider.Grant({
      accountId: session?.accountId ?? account.sub,
      clientId: String(params.client_id),
    });
    grant.addOIDCScope("openid email profile");
    await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
  });
  return {
    ...{ issuer, client_id: CLIENT_ID, client_secret: CLIENT_SECRET },
    become(next, alsoInToken = {}) {
      [account, inToken] = [next, alsoInToken];
    },
    visit: (url) => follow(url, redirectUri),
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

/** As a browser does, with cookies of its own. */
async function follow(from: string, until: string): Promise<string> {
  const cookies = new Map<string, string>();
  let url = from;
  for (let steps = 0; steps < 12; steps += 1) {
    if (url.startsWith(until)) return url;
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { cookie } });
    for (const set of response.headers.getSetCookie()) {
      const [name = "", value = ""] = set.split(";")[0]?.split(/=(.*)/s) ?? [];
      if (value === "") cookies.delete(name);
      else cookies.set(name, value);
    }
    const next = response.headers.get("location");
    if (next === null) throw new Error(`${url} answers ${response.status}: ${await response.text()}`);
    url = new URL(next, url).href;
  }
  throw new Error(`the provider leads nowhere: ${url}`);
}
