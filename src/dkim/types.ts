// DKIM keys as rows and as the API shows them.
import type { DkimAlgorithm } from "../mail/dkim/sign.ts";

export const ALGORITHMS = ["rsa", "ed25519"] as const satisfies readonly DkimAlgorithm[];
export const KEY_STATUSES = ["pending", "active", "retiring", "deactivated"] as const;
export type KeyStatus = (typeof KEY_STATUSES)[number];

/** A key without its private half, which only `signingKeys` reads. */
export type KeyRow = {
  id: string;
  domain_id: string;
  selector: string;
  algorithm: DkimAlgorithm;
  public_key: string;
  status: KeyStatus;
  verified: boolean;
  /** Selector of the key that retires (or, still pending, ends) when this one becomes active. */
  replaces: string | null;
  /** Made with the domain, and nobody has asked for a key or named this one since. */
  unasked: boolean;
  created_at: Date;
  activated_at: Date | null;
  retires_at: Date | null;
  deactivated_at: Date | null;
};

/** A key as the API shows it. */
export type KeyRecord = Omit<KeyRow, "id" | "domain_id" | "replaces" | "unasked"> & { domain: string; active: boolean };

export type DnsTxt = { type: "TXT"; name: string; value: string };
