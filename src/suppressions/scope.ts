// Which suppressions can block an e-mail: the one reading of its fields for new mail, for mail that is sent again, and for
// mail that waited.
import type { MailScope } from "./types.ts";

type Scoped = {
  domain_id: string;
  template_id: string | null;
  tags: readonly string[];
  /** '' : the sender domain; null: the mail has no unsubscribe link. */
  unsubscribe_list: string | null;
};

/** The e-mail as suppressions see it. */
export function scopeOf({ domain_id, template_id, tags, unsubscribe_list }: Scoped): MailScope {
  return {
    domain_id,
    template_id,
    list: unsubscribe_list || null,
    streams: [unsubscribe_list === null ? "transactional" : "bulk", ...tags],
    unsubscribable: unsubscribe_list !== null,
  };
}
