// What a step of the set-up came to.

export type Step = {
  name: "settings" | "machine" | "organization" | "records" | "certificate" | "mail" | "doctor";
  /** `unchanged`: it was right already. */
  status: "done" | "unchanged" | "problem" | "skipped";
  says: string;
  remedy: string | null;
};
