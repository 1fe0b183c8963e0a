// The OpenID Connect provider as `postern doctor` sees it: does it say how people sign in there? Whether it knows our client and its
// secret shows only when somebody signs in: then the log says so.
import type { Config } from "../config.ts";
import { providerProblem } from "../people/people.ts";
import { type Check, ok, problem } from "./check.ts";

/** Asks it, where one is set. */
export async function checkSignIn({ oidc }: Pick<Config, "oidc">): Promise<Check[]> {
  if (oidc === null) return [];
  const why = await providerProblem(oidc);
  if (why === null) return [ok("sign-in", `The provider ${oidc.issuer} says how to sign in there.`)];
  const remedy =
    "POSTERN_OIDC_ISSUER must be the address before its /.well-known/openid-configuration, reachable from here.";
  return [problem("sign-in", `Signing in there does not work: ${why}.`, remedy)];
}
