// Signing in at an OpenID Connect provider: the code flow with PKCE (RFC 7636), state and nonce. What the browser must bring back stands
// sealed in a cookie of its own, so that an answer counts only in the browser that asked (OpenID Connect Core §3.1.2.1, RFC 9700 §4.7).
import type { Configuration } from "openid-client";
import { asOneLine } from "../../http/one-line.ts";
import { Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";

const CONTEXT = "oidc-asked";
const ANSWER_WITHIN_MS = 10 * 60_000;
const TIMEOUT_S = 10;
/** OpenID Connect Core §2. */
const SUBJECT_CHARS_MAX = 255;
/** A person who shows again who they are signed in there so long ago at most. */
const PROVED_WITHIN_S = 120;

type OidcSettings = NonNullable<World["config"]["oidc"]>;
/** What is kept meanwhile. `proves`: the person who is to show again who they are. */
type Kept = { state: string; nonce: string; verifier: string; to: string; proves: string | null; until: number };
export type Asking = { to: string; proves: string | null };
/** What the provider says of the person who signed in there. */
export type Claims = { subject: string; email: string | null; is_verified: boolean; name: string };

export type Oidc = {
  /** Where to send the browser, and what it must keep. */
  ask(asking: Asking): Promise<{ url: string; kept: string }>;
  /** What the answer says; throws `sign_in_failed` when it answers another question. */
  read(query: string, kept: string | null): Promise<{ claims: Claims; asking: Asking }>;
};

type OidcWorld = Pick<World, "clock" | "seal" | "config">;

export function createOidc(world: OidcWorld, settings: OidcSettings): Oidc {
  const redirect_uri = `${world.config.base_url}/dashboard/api/oidc/callback`;
  const configuration = remembered(() => discover(settings));
  return {
    async ask(asking) {
      const client = await import("openid-client");
      const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()];
      const url = client.buildAuthorizationUrl(await configuration(), {
        ...{ redirect_uri, scope: "openid email profile", state, nonce },
        ...{ code_challenge: await client.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256" },
        ...(asking.proves === null ? {} : { prompt: "login", max_age: "0" }),
      });
      const kept = keep(world, { state, nonce, verifier, ...asking, until: world.clock.now() + ANSWER_WITHIN_MS });
      return { url: url.href, kept };
    },
    async read(query, cookie) {
      const kept = cookie === null ? null : open(world, cookie);
      if (kept === null) throw notAsked();
      const client = await import("openid-client");
      const config = await configuration();
      const tokens = await client
        .authorizationCodeGrant(config, new URL(`${redirect_uri}?${query}`), {
          ...{ expectedState: kept.state, expectedNonce: kept.nonce, pkceCodeVerifier: kept.verifier },
          ...{ idTokenExpected: true, ...(kept.proves === null ? {} : { maxAge: PROVED_WITHIN_S }) },
        })
        .catch((error) => {
          throw new Refusal("sign_in_failed", `the provider's answer does not let in: ${reasonOf(error)}`);
        });
      const said = tokens.claims();
      if (!said) throw notAsked();
      if (said.sub.length > SUBJECT_CHARS_MAX) {
        throw new Refusal("sign_in_failed", `the provider's \`sub\` has more than ${SUBJECT_CHARS_MAX} characters`);
      }
      // Many providers tell the address there alone.
      const more = await client.fetchUserInfo(config, tokens.access_token, said.sub).catch(() => ({}));
      const { name }: Record<string, unknown> = { ...said, ...more };
      return {
        claims: {
          subject: `${said.iss} ${said.sub}`,
          ...addressIn([said, more]),
          name: typeof name === "string" ? asOneLine(name).slice(0, 191) : "",
        },
        asking: { to: kept.to, proves: kept.proves },
      };
    },
  };
}

/** The first address that is called verified where it stands: what one place says of its address says nothing of another's. */
function addressIn(places: Record<string, unknown>[]): Pick<Claims, "email" | "is_verified"> {
  const said = places.flatMap(({ email, email_verified }) =>
    typeof email === "string" ? [{ email: email.trim().toLowerCase(), is_verified: email_verified === true }] : [],
  );
  return said.find(({ is_verified }) => is_verified) ?? said[0] ?? { email: null, is_verified: false };
}

/** Why nobody can sign in at the provider of these settings, as a sentence without its point; null when it says how. */
export async function providerProblem(settings: OidcSettings): Promise<string | null> {
  try {
    await discover(settings);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

async function discover({ issuer, client_id, client_secret }: OidcSettings): Promise<Configuration> {
  const client = await import("openid-client");
  const execute = issuer.startsWith("http:") ? [client.allowInsecureRequests] : [];
  try {
    return await client.discovery(new URL(issuer), client_id, client_secret, undefined, {
      execute,
      timeout: TIMEOUT_S,
    });
  } catch (error) {
    throw new Refusal("unavailable", `the provider ${issuer} does not say how to sign in: ${reasonOf(error)}`);
  }
}

/** Asked once; again after it failed. */
function remembered<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | null = null;
  return () => {
    asked ??= ask().catch((error) => {
      asked = null;
      throw error;
    });
    return asked;
  };
}

function keep({ seal }: OidcWorld, kept: Kept): string {
  return seal.seal(Buffer.from(JSON.stringify(kept)), CONTEXT).toString("base64url");
}

function open({ seal, clock }: OidcWorld, cookie: string): Kept | null {
  try {
    const kept = JSON.parse(seal.open(Buffer.from(cookie, "base64url"), CONTEXT).toString()) as Kept;
    return kept.until > clock.now() ? kept : null;
  } catch {
    return null;
  }
}

function notAsked(): Refusal {
  return new Refusal(
    "sign_in_failed",
    "this answer is to a question that this browser did not ask, or that is too old",
  );
}

/** What failed below says more than `fetch failed`; a provider that declines says so by a code, such as invalid_client. */
function reasonOf(error: unknown): string {
  const { message, cause, error: code } = error as Partial<Error & { error: unknown }>;
  const status = cause instanceof Response ? `, ${cause.status}` : "";
  const more = typeof code === "string" ? ` (${code})` : status;
  return `${cause instanceof Error ? cause.message : (message ?? String(error))}${more}`.slice(0, 200);
}
