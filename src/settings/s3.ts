// The settings of S3-compatible stores: one of large bodies, and one of backups. What a store could never be asked with is
// named at the start: mail would be deferred for it, and lost after 72 h.
import { isBucketName, type S3Access, type S3Options } from "../platform/storage/s3.ts";
import { isWebAddress, type Reading, withoutPassword } from "./values.ts";

/** It is a part of each signature's scope, between slashes. */
const REGION = /^[\w.:-]{1,100}$/;

/** The store of large bodies; null: they are in the data folder. */
export function bodyStore(reader: Reading): S3Options | null {
  const { env, problems } = reader;
  if (!env.POSTERN_S3_ENDPOINT && !env.POSTERN_S3_BUCKET) return null;
  const names = ["ENDPOINT", "BUCKET", "ACCESS_KEY", "SECRET_KEY"].map((name) => `POSTERN_S3_${name}`);
  for (const name of names) {
    if (!env[name]) problems.push(`${name} is missing; an S3 store needs all of ${names.join(", ")}.`);
  }
  const bucket = env.POSTERN_S3_BUCKET ?? "";
  if (bucket && !isBucketName(bucket)) {
    problems.push(`POSTERN_S3_BUCKET is "${bucket}"; write the bucket's name alone, such as mail-bodies.`);
  }
  return { ...access(reader, "S3"), bucket };
}

/** The store of large bodies is also that of backups, unless another is set. */
export function backupStore(reader: Reading): S3Access | null {
  const { env, problems } = reader;
  // What is wrong with that one has been said.
  if (!env.POSTERN_BACKUP_S3_ENDPOINT) {
    return env.POSTERN_S3_ENDPOINT ? access({ env, problems: [] }, "S3") : null;
  }
  for (const name of ["POSTERN_BACKUP_S3_ACCESS_KEY", "POSTERN_BACKUP_S3_SECRET_KEY"]) {
    if (!env[name]) problems.push(`${name} is missing; POSTERN_BACKUP_S3_ENDPOINT needs it.`);
  }
  return access(reader, "BACKUP_S3");
}

function access({ env, problems }: Reading, which: "S3" | "BACKUP_S3"): S3Access {
  const prefix = `POSTERN_${which}`;
  const endpoint = env[`${prefix}_ENDPOINT`] ?? "";
  // The bucket is put behind it, and S3 knows no login in an address.
  if (endpoint && (!isWebAddress(endpoint) || /[\s?#@]/.test(endpoint))) {
    problems.push(
      `${prefix}_ENDPOINT is "${withoutPassword(endpoint)}"; write its address alone, such as https://s3.example.eu.`,
    );
  }
  const region = env[`${prefix}_REGION`] || "auto";
  if (!REGION.test(region)) problems.push(`${prefix}_REGION is "${region}"; write one region, such as eu-central-1.`);
  const access_key = env[`${prefix}_ACCESS_KEY`] ?? "";
  // It stands in a header, before a comma. The value is not repeated: it may be the other key.
  if (!/^[!-+\--~]*$/.test(access_key)) {
    problems.push(
      `${prefix}_ACCESS_KEY holds a space, a comma or a character that is not of ASCII; write the key alone.`,
    );
  }
  return { endpoint, region, access_key, secret_key: env[`${prefix}_SECRET_KEY`] ?? "" };
}
