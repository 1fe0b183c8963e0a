// The settings of certificates: the operator's files, or an ACME server that gives them (RFC 8555). Never both.
import type { HostPort } from "../platform/net/places.ts";
import { hostPort, isWebAddress, type Reading, readableFile } from "./values.ts";

/** Where certificates come from (RFC 8555). */
export type AcmeConfig = {
  directory: string;
  email: string | null;
  /** Where the authority asks for the proof (HTTP-01, RFC 8555 §8.3). */
  http: HostPort;
  profile: string | null;
  /** For an ACME server of one's own: the file with the certificate by which that server is verified. */
  ca_file: string | null;
};

export type CertificateSettings = {
  acme: AcmeConfig | null;
  tls_cert_file: string | null;
  tls_key_file: string | null;
};

const LETS_ENCRYPT = "https://acme-v02.api.letsencrypt.org/directory";

/** `isOwnName`: the host name is one that an authority can find in DNS. */
export function certificates(reader: Reading, isOwnName: boolean): CertificateSettings {
  const files = certificateFiles(reader);
  const acme = acmeSettings(reader);
  if (acme && files.tls_cert_file) {
    reader.problems.push("POSTERN_ACME is on and POSTERN_TLS_CERT names a certificate; keep one of them.");
  }
  if (acme && !isOwnName) {
    reader.problems.push("POSTERN_ACME is on without a POSTERN_HOSTNAME of your own; set it, such as mail.example.eu.");
  }
  return { acme, ...files };
}

function acmeSettings(reader: Reading): AcmeConfig | null {
  const { env, problems } = reader;
  const text = env.POSTERN_ACME || "off";
  // All are read, so that none counts as unknown while POSTERN_ACME is off.
  const settings = {
    email: email(reader),
    http: hostPort(reader, "POSTERN_ACME_HTTP", "0.0.0.0:80"),
    profile: profile(reader),
    ca_file: readableFile(reader, "POSTERN_ACME_CA"),
  };
  if (text === "off") return null;
  if (text === "on") return { directory: LETS_ENCRYPT, ...settings };
  if (!isWebAddress(text) || !text.startsWith("https://")) {
    problems.push(`POSTERN_ACME is "${text}"; write off, on (Let's Encrypt) or the https:// address of a directory.`);
    return null; // is said once: nothing else is wrong because of it
  }
  return { directory: text, ...settings };
}

function email({ env, problems }: Reading): string | null {
  const text = env.POSTERN_ACME_EMAIL || null;
  if (text && !/^[^\s@]+@[^\s@]+$/.test(text))
    problems.push(`POSTERN_ACME_EMAIL is "${text}", which is not an e-mail address.`);
  return text;
}

function profile({ env, problems }: Reading): string | null {
  const text = env.POSTERN_ACME_PROFILE || null;
  if (text && !/^[\w.-]{1,64}$/.test(text)) {
    problems.push(`POSTERN_ACME_PROFILE is "${text}"; write the name of a profile, such as shortlived.`);
  }
  return text;
}

/** Both files or none: with one of them alone mail servers would be shown another certificate than was meant. */
function certificateFiles(reader: Reading): Pick<CertificateSettings, "tls_cert_file" | "tls_key_file"> {
  const tls_cert_file = readableFile(reader, "POSTERN_TLS_CERT");
  const tls_key_file = readableFile(reader, "POSTERN_TLS_KEY");
  if ((tls_cert_file === null) !== (tls_key_file === null)) {
    const [set, missing] = tls_cert_file ? ["POSTERN_TLS_CERT", "_KEY"] : ["POSTERN_TLS_KEY", "_CERT"];
    reader.problems.push(
      `${set} is set without POSTERN_TLS${missing}; a certificate needs both, set the other as well.`,
    );
  }
  return { tls_cert_file, tls_key_file };
}
