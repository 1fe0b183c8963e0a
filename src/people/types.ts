// People as rows, and what the rest knows of them.
import type { World } from "../platform/world.ts";

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
  /** Mail to the address reaches them: a link that was mailed was used, or their provider says so. */
  is_proven: boolean;
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

export type LinkKind = "set_up" | "invitation" | "reset" | "sign_up";

/** Mail of the service itself. `send` queues it; false where the service's own domain is not ready. */
export type Mailer = {
  isReady(): Promise<boolean>;
  send(mail: { org_id: string; to: string; subject: string; text: string }): Promise<boolean>;
};

/** What an organization did while it waits for its review. */
export type ReviewFigures = { test_mails: number; domains: { domain: string; type: string; status: string }[] };

/** What people's routes have besides. */
export type PeopleWorld = World & { mailer: Mailer; reviewFigures(orgId: string): Promise<ReviewFigures> };
