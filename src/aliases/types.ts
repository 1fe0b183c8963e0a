// Domain aliases as rows, and what incoming mail needs to know of the one that takes it.

export const ACTIONS = ["webhook", "forward", "store", "drop"] as const;
export type AliasAction = (typeof ACTIONS)[number];

export const FORWARD_MODES = ["preserve_from", "masked"] as const;
export type ForwardMode = (typeof FORWARD_MODES)[number];

/** An alias as the API shows it; `address` is its local part. */
export type AliasRecord = {
  id: string;
  org_id: string;
  domain_id: string;
  address: string;
  domain: string;
  is_masked: false;
  action: AliasAction;
  forward_to: string[];
  forward_mode: ForwardMode;
  webhook_ids: string[];
  description: string | null;
  active: boolean;
  emails_received: number;
  last_received_at: Date | null;
  created_at: Date;
  updated_at: Date;
};

/** What a mail for an alias is to be done with. */
export type AliasChoice = {
  org_id: string;
  id: string;
  domain_id: string;
  local_part: string;
  is_glob: boolean;
  action: AliasAction;
  forward_to: string[];
  forward_mode: ForwardMode;
  webhook_ids: string[];
  active: boolean;
  environment: "live" | "test";
};

/** The alias that an address belongs to. `tag` is what follows the first `+`, where the alias itself does not name it. */
export type AliasMatch = { alias: AliasChoice; tag: string | null };
