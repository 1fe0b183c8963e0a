// Why PostgreSQL cannot be used, in words, and what to do: for a start that fails and for the doctor. TLS and who may
// connect have remedies in DATABASE_URL. Not here: a database that is away while Postern runs (db.ts).

import { certificateWords, keyFileWords, tlsFailureWords } from "../../text/tls-words.ts";
import { fileWords } from "../process/file-words.ts";

/** `why` is a clause without a final point, `remedy` a sentence without one, or null where there is no special one. */
export type DatabaseTrouble = { why: string; remedy: string | null };

/** What a role needs that may make no tables. */
export const OWN_IT = "The role must own the database: alter database <name> owner to <role>";

const INSUFFICIENT_PRIVILEGE = "42501";
const NOT_ALLOWED = "28000";
const TRUST_IT =
  "Name its authority's certificate in DATABASE_URL, sslrootcert=/path/ca.pem; sslmode=no-verify would encrypt without checking who answers";
const CERTIFICATE_REMEDIES: readonly (readonly [code: RegExp, remedy: string])[] = [
  [/SELF_SIGNED|UNABLE_TO|UNTRUSTED/, TRUST_IT],
  [/ALTNAME|HOSTNAME/, "Connect to a name that the certificate is for, or give the server one for this name"],
  [/EXPIRED|NOT_YET_VALID/, "Renew the server's certificate, and compare the clocks of both machines"],
];

/** `severity` is there where the server itself said it. */
type Failure = Error & { code?: string; severity?: string; syscall?: string; cert?: { subjectaltname?: string } };
type Rule = (failure: Failure) => DatabaseTrouble | null;

const RULES: Rule[] = [
  ({ message }) =>
    /does not support SSL/.test(message)
      ? {
          why: "the server does not offer TLS, which DATABASE_URL asks for",
          remedy:
            "Set ssl = on in its postgresql.conf, or sslmode=disable in DATABASE_URL where nobody can listen on the way",
        }
      : null,
  ({ code, message }) =>
    code === NOT_ALLOWED && /no encryption|SSL off/.test(message)
      ? {
          why: `the server refuses connections without TLS (${message})`,
          remedy:
            "Add ?sslmode=verify-full to DATABASE_URL, and &sslrootcert=/path/ca.pem for an authority of your own. If it takes none from here at all, add this machine to its pg_hba.conf",
        }
      : null,
  ({ code, message }) =>
    code === NOT_ALLOWED && /client certificate/.test(message)
      ? {
          why: "the server wants a certificate from its clients",
          remedy: "Add sslcert=/path/client.pem and sslkey=/path/client-key.pem to DATABASE_URL",
        }
      : null,
  ({ message }) =>
    /client password must be a (non-empty )?string/.test(message)
      ? {
          why: "the server asks for a password, and DATABASE_URL has none",
          remedy: "Write the role's password into DATABASE_URL: postgresql://role:password@host:5432/database",
        }
      : null,
  ({ message }) =>
    /unsupported startup parameter/.test(message)
      ? {
          why: `a pooler stands before the server and refuses what Postern sets for its sessions (${message})`,
          remedy: "Let DATABASE_URL name PostgreSQL itself",
        }
      : null,
  ofCertificate,
  (failure) =>
    failure.code?.startsWith("ERR_OSSL_")
      ? {
          why: `a certificate or key that DATABASE_URL names cannot be used: ${keyFileWords(failure)}`,
          remedy:
            "Name files in PEM form by sslrootcert, sslcert and sslkey; a key may not be locked with a passphrase",
        }
      : null,
  (failure) => (failure.code?.startsWith("ERR_SSL_") ? { why: tlsFailureWords(failure), remedy: null } : null),
];

/** The trouble with TLS or with who may connect; null for any other failure. */
export function connectionTrouble(error: unknown): DatabaseTrouble | null {
  for (const rule of RULES) {
    const trouble = rule(error as Failure);
    if (trouble) return trouble;
  }
  return null;
}

const ON_THE_WAY =
  "Look for a firewall or a missing route between this machine and that one, or correct the host in DATABASE_URL";
const NO_NAME = "Correct the host in DATABASE_URL, or this machine's resolver";

/** What the operator does about an answer of the server, by its SQLSTATE, or about none, by the system's code. */
const REMEDIES: Record<string, string> = {
  ECONNREFUSED:
    "Start PostgreSQL there and let it listen on that address (listen_addresses), or correct host and port in DATABASE_URL",
  ...{ ENOTFOUND: NO_NAME, EAI_AGAIN: NO_NAME },
  ...{ EHOSTUNREACH: ON_THE_WAY, ENETUNREACH: ON_THE_WAY, ETIMEDOUT: ON_THE_WAY },
  "57P03": "Wait until it takes connections; it says in its log what it does",
  [INSUFFICIENT_PRIVILEGE]: OWN_IT,
  [NOT_ALLOWED]:
    "Let this role log in from here: it must exist (create role <role> login password '…'), and the server's pg_hba.conf must admit it",
  "28P01":
    "Write the role's password into DATABASE_URL, or give the role that one: alter role <role> password '…'. A role that does not exist is refused in the same words: create role <role> login password '…'",
  "3D000":
    "Make it, as a superuser: create database <name> owner <role>. Or correct the name at the end of DATABASE_URL",
  "53300": "Raise max_connections, or lower POSTERN_DATABASE_CONNECTIONS",
};

/** Any failure of the database as `why` and `remedy`. */
export function databaseTrouble(error: unknown): DatabaseTrouble {
  const { code = "", message } = error as Failure;
  const known = connectionTrouble(error);
  return (
    known ?? {
      why: fileWords(error) ?? (message || code || "unknown"),
      remedy: REMEDIES[code] ?? (/^timeout exp|connection timeout/.test(message) ? ON_THE_WAY : null),
    }
  );
}

/** What is wrong with it, as a clause: only what nobody answers is called silent. */
export function databaseWords(error: unknown): string {
  const { severity, syscall } = error as Failure;
  const isSilent = severity === undefined && syscall !== "open" && connectionTrouble(error) === null;
  return `${isSilent ? "does not answer" : "cannot be used"}: ${databaseTrouble(error).why}`;
}

function ofCertificate({ code = "", cert }: Failure): DatabaseTrouble | null {
  const remedy = CERTIFICATE_REMEDIES.find(([pattern]) => pattern.test(code))?.[1];
  if (remedy === undefined) return null;
  return { why: `the server's certificate is not valid: ${certificateWords(code, cert?.subjectaltname)}`, remedy };
}
