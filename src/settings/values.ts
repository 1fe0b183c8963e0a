// How the values of single settings are read: each answers a usable value, and notes a problem in a sentence when the given
// one cannot be used. Not here: which settings there are (../config.ts).
import { closeSync, fstatSync, openSync } from "node:fs";
import { type HostPort, readAddress } from "../platform/net/places.ts";

export type Reading = { env: NodeJS.ProcessEnv; problems: string[] };

/** `host:port`. */
export function hostPort(reader: Reading, variable: string, fallback: string): HostPort {
  const text = reader.env[variable] || fallback;
  const read = readAddress(text);
  if (read) return read;
  reader.problems.push(`${variable} is "${text}"; write host:port, such as ${fallback}.`);
  return { host: "127.0.0.1", port: 0 };
}

/** An address of HTTP or HTTPS. */
export function isWebAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

/** What stands before an @ may be a password, which is not printed. */
export function withoutPassword(text: string): string {
  return text.replace(/\/\/[^/]*@/, "//…@");
}

/** The words of a list that spaces or commas separate. */
export function words(text: string | undefined): string[] {
  return (text ?? "").split(/[\s,]+/).filter((word) => word !== "");
}

/** `1` or `0`. */
export function flag(reader: Reading, variable: string, fallback = false): boolean {
  const text = reader.env[variable] ?? "";
  if (text === "") return fallback;
  if (text === "0" || text === "false") return false;
  if (text === "1" || text === "true") return true;
  reader.problems.push(`${variable} is "${text}"; write 1 or 0.`);
  return fallback;
}

/** A whole number from `min` to 65535, or `fallback` where the variable is not set. */
export function wholeNumber(reader: Reading, variable: string, fallback: number, min: number): number {
  const text = reader.env[variable];
  if (!text) return fallback;
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= 65535) return value;
  reader.problems.push(`${variable} is "${text}"; write a whole number from ${min} to 65535.`);
  return fallback;
}

/** The path of a file that this user can read; null when none is named. */
export function readableFile(reader: Reading, variable: string): string | null {
  const path = reader.env[variable];
  if (!path) return null;
  try {
    const file = openSync(path, "r"); // a folder, too
    if (fstatSync(file).isDirectory()) reader.problems.push(`${variable} names ${path}, which is a folder.`);
    closeSync(file);
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code === "ENOENT" ? "does not exist" : "cannot be read by this user";
    reader.problems.push(`${variable} names ${path}, which ${why}.`);
  }
  return path;
}
