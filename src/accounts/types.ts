// Organizations, plans and API keys as rows.
import type { Account } from "../http/http.ts";

export type Plan = Account["plan"];

export type OrganizationRow = {
  id: string;
  name: string;
  plan: Plan;
  state: Account["state"];
  monthly_quota: number | null;
  requests_per_second: number | null;
};

export type KeyRow = {
  id: string;
  name: string;
  environment: "live" | "test";
  kind: "full" | "mask";
  destination_id: string | null;
  key_prefix: string;
  last_four: string;
  created_at: Date;
  last_used_at: Date | null;
  revoked_at: Date | null;
};
