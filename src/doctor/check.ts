// What a look at the machine says, in words for whoever runs it: the vocabulary of `postern doctor`.

export type Check = {
  name: string;
  /** `warning`: it works, and should not stay so. `skipped`: could or may not be looked at; `says` has the reason. */
  status: "ok" | "warning" | "problem" | "skipped";
  says: string;
  remedy: string | null;
};

/** It is as it should be. */
export function ok(name: string, says: string): Check {
  return { name, status: "ok", says, remedy: null };
}

/** It works and should not stay so. */
export function warning(name: string, says: string, remedy: string): Check {
  return { name, status: "warning", says, remedy };
}

/** It does not work, or is not safe. */
export function problem(name: string, says: string, remedy: string): Check {
  return { name, status: "problem", says, remedy };
}

/** It could not or may not be looked at; `says` has the reason. */
export function skipped(name: string, says: string, remedy: string | null = null): Check {
  return { name, status: "skipped", says, remedy };
}
