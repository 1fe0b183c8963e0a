// The share of one tenant in something of which there is only so much: no more than it leaves free. So it has half of it when
// it is alone, tenants beside each other have equal shares, and a newcomer finds room at once, however long the others
// stay (dynamic thresholds, Choudhury and Hahne 1998).

/** What there is, and how much of it is taken, by everybody; in any unit. */
export type Taken = { max: number; taken: number };

/** Whether a tenant that has `own` of it may take more. */
export function mayTakeMore(own: number, { max, taken }: Taken): boolean {
  return own < max - taken;
}

/** Whether a tenant that has `own` of it, the last of which counts already, is within its share. */
export function isWithinShare(own: number, { max, taken }: Taken): boolean {
  return own <= max - taken;
}
