// Why a start failed, in a sentence that names the setting at fault: an address that cannot be listened on, a database
// that cannot be used. Not here: settings that are wrong in themselves (../config.ts), and looking at all of it beforehand
// (../doctor.ts, which says the same).
import type { Config } from "../../config.ts";
import { connectionTrouble, databaseTrouble } from "../database/database-trouble.ts";
import { databaseHost } from "../database/database-url.ts";
import { clashesOf, nameOf, type Place, placesOf, portProblem } from "../net/places.ts";
import { fileWords } from "./file-words.ts";

/** Codes of the file system; PostgreSQL has its own for a full disk. */
const FULL = new Set(["ENOSPC", "EDQUOT"]);
const INSUFFICIENT_PRIVILEGE = "42501";

type Failure = Error & {
  path?: string;
  code?: string;
  syscall?: string;
  address?: string;
  port?: number;
  hostname?: string;
};

/** The same failure with a sentence for the operator; one that no setting explains stays as it is. */
export function explainStart(config: Config, error: unknown): unknown {
  const failure = error as Failure;
  const place = placeOf(config, failure);
  if (place) {
    const own = clashesOf(placesOf(config)).find((clash) => clash.includes(nameOf(place)));
    if (own !== undefined && failure.code === "EADDRINUSE") return new Error(own, { cause: error });
    const { says, remedy } = portProblem(place, failure.code ?? failure.message);
    return new Error(`${says} ${remedy}`, { cause: error });
  }
  const full = failure.path === undefined && FULL.has(failure.code ?? "") ? fileWords(failure) : null;
  if (full !== null) return new Error(`${config.data_dir} cannot be written: ${full}.`, { cause: error });
  if (config.database_url && isAboutDatabase(config.database_url, failure)) {
    const { why, remedy } = databaseTrouble(failure);
    const where = databaseHost(config.database_url);
    const { database_pooler_url: pooler } = config;
    const isOnTheWay = failure.syscall === "connect" || failure.syscall === "getaddrinfo";
    const advice = pooler && isOnTheWay ? "Check both addresses, and that both run" : remedy;
    const text = advice === null ? why : `${why}. ${advice}`;
    const or = pooler ? `, or its pooler at ${databaseHost(pooler)} (POSTERN_DATABASE_POOLER),` : "";
    return new Error(`the database at ${where} (DATABASE_URL)${or} cannot be used: ${text}`, { cause: error });
  }
  return error;
}

function placeOf(config: Config, { syscall, address, port, hostname }: Failure): Place | undefined {
  const places = placesOf(config);
  if (syscall === "listen") return places.find((place) => place.port === port && (!address || place.host === address));
  // A name that has no address: of a database's host it says the same, so the names of places go first.
  return syscall === "getaddrinfo" ? places.find(({ host }) => host === hostname) : undefined;
}

/**
 * SQLSTATE classes 08 (connection), 28 (who asks), 3D (which database), 53 and 57 (not now), and a role that may not; a file
 * that the URL names (`sslrootcert`); else the way to it.
 */
function isAboutDatabase(url: string, { code = "", syscall, message, path }: Failure): boolean {
  if (connectionTrouble({ code, message }) !== null) return true;
  if (code === INSUFFICIENT_PRIVILEGE || /^(08|28|3D|53|57)[0-9A-Z]{3}$/.test(code)) return true;
  if (path !== undefined && [...new URL(url.replace("@/", "@localhost/")).searchParams.values()].includes(path))
    return true;
  return (
    syscall === "connect" || syscall === "getaddrinfo" || /^(SASL|Connection terminated|timeout exp)/.test(message)
  );
}
