// A mail as it is judged for spam, and what speaks against it. Types alone.

/** What is known of the delivery. `host` is our name, `recipients` are those of the envelope. */
export type Session = {
  helo: string;
  remote_ip: string | null;
  host: string;
  recipients: readonly string[];
  received_ms: number;
};

export type Symptom = { name: string; score: number; description: string };

export type Suspect = {
  headers: readonly { name: string; value: string }[];
  from: readonly { name: string | null; email: string | null }[];
  reply_to: readonly { email: string | null }[];
  subject: string | null;
  date: string | null;
  message_id: string | null;
  text: string | null;
  html: string | null;
  attachments: readonly { filename: string }[];
  /** Null when nobody looked. */
  auth: { spf: string; dkim: string; dmarc: string } | null;
  /** Null when the mail did not come by a client. */
  session: Session | null;
};
