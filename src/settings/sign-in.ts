// The settings of signing in to the dashboard: an OpenID Connect provider, and whether strangers may sign up.
import { normalizeDomain } from "../mail/address.ts";
import { words } from "./values.ts";

const ROLES = ["admin", "developer", "viewer"] as const;

export type OidcSettings = {
  issuer: string;
  client_id: string;
  client_secret: string;
  /** What the button says. */
  name: string;
  /** A person with an address of these comes in without an invitation; none: invited people only. */
  domains: string[];
  /** What they are then. */
  role: (typeof ROLES)[number];
};

const SIGN_UPS = ["off", "invite", "open"] as const;
/** Who may make an organization of their own: nobody, whom an operator invites, everybody with an address. */
export type SignUps = (typeof SIGN_UPS)[number];

type Reader = { env: NodeJS.ProcessEnv; problems: string[] };

/** Null where none is set. */
export function oidcSettings({ env, problems }: Reader): OidcSettings | null {
  const {
    POSTERN_OIDC_ISSUER: issuer,
    POSTERN_OIDC_CLIENT_ID: client_id,
    POSTERN_OIDC_CLIENT_SECRET: client_secret,
  } = env;
  if (!issuer && !client_id && !client_secret) return null;
  if (!issuer || !client_id || !client_secret) {
    problems.push("POSTERN_OIDC_ISSUER, _CLIENT_ID and _CLIENT_SECRET belong together; set all three or none.");
    return null;
  }
  // Read only now: without a provider they have no effect, which is said of those that nothing reads.
  const { POSTERN_OIDC_NAME: name, POSTERN_OIDC_DOMAINS: domains = "", POSTERN_OIDC_ROLE: role = "viewer" } = env;
  if (!isIssuer(issuer))
    problems.push(
      `POSTERN_OIDC_ISSUER is "${issuer}"; write the provider's https address, such as https://login.example.com.`,
    );
  const known = ROLES.find((word) => word === role);
  if (known === undefined) problems.push(`POSTERN_OIDC_ROLE is "${role}"; write admin, developer or viewer.`);
  const own = { issuer, client_id, client_secret, name: name || hostOf(issuer) };
  return { ...own, domains: domainsIn(domains, problems), role: known ?? "viewer" };
}

/** The domains of a list. A word that is no domain is a problem: it would let nobody in and say nothing. */
function domainsIn(text: string, problems: string[]): string[] {
  const domains = words(text.toLowerCase());
  for (const domain of domains.filter((word) => normalizeDomain(word) === null)) {
    problems.push(`POSTERN_OIDC_DOMAINS holds "${domain}"; write domains such as example.com, separated by commas.`);
  }
  return domains;
}

/** `off` where it is not set. */
export function signUps({ env, problems }: Reader): SignUps {
  const { POSTERN_SIGNUP: text = "off" } = env;
  const known = SIGN_UPS.find((word) => word === (text || "off"));
  if (known === undefined) problems.push(`POSTERN_SIGNUP is "${text}"; write off, invite or open.`);
  return known ?? "off";
}

function hostOf(issuer: string): string {
  return URL.canParse(issuer) ? new URL(issuer).host : issuer;
}

/** Over http nobody would know who answers; on this machine it is for tests. */
function isIssuer(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === "https:" || (protocol === "http:" && hostname === "127.0.0.1");
}
