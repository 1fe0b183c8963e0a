// People as rows, and what the rest knows of them.
export const PERSON_ROLES = ["owner", "admin", "developer", "viewer"] as const;
export type PersonRole = (typeof PERSON_ROLES)[number];

export type PersonRow = {
  id: string;
  email: string;
  name: string;
  password: string | null;
  is_operator: boolean;
  totp: Buffer | null;
  totp_confirmed_at: Date | null;
  totp_step: number;
  oidc_subject: string | null;
  created_at: Date;
};

export type Session = {
  id: string;
  digest: Buffer;
  person: PersonRow;
  created_at: Date;
  seen_at: Date;
  /** When the person last showed what proves who they are. */
  proved_at: Date;
};

/** Where a request comes from. */
export type Client = { ip: string; user_agent: string };

export type LinkKind = "set_up" | "invitation" | "reset";
