// From what was found to what is done: the domain's thresholds on the score, what it wants done where the author's domain
// asks for something (DMARC), and its own lists. The strongest wins. Pure.

/** From the weakest to the strongest. */
const VERDICTS = ["ham", "tag", "quarantine", "reject"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Scores from which each is done; null: never. */
export type Thresholds = { tag: number | null; quarantine: number | null; reject: number | null };

export const DMARC_ACTIONS = ["none", "tag", "quarantine", "reject"] as const;
export type DmarcAction = (typeof DMARC_ACTIONS)[number];

/** What is done with mail that fails DMARC, by what the author's domain asks for. */
export type DmarcActions = { reject: DmarcAction; quarantine: DmarcAction };

export type Evidence = {
  score: number;
  /** The engine insists, whatever the score: the test text GTUBE, or a forced action of rspamd. */
  insists: boolean;
  /** DMARC failed and this is what the author's domain asks for; null: it asks for nothing, or did not fail. */
  dmarc_asks: "reject" | "quarantine" | null;
  /** On the domain's own list of senders to keep out. */
  blocked: boolean;
};

export type Ruling = { verdict: Verdict; reason: string | null };

/** What is done with a mail, and why in a few words (null for ham). */
export function rule(
  evidence: Evidence,
  { thresholds, dmarc_action }: { thresholds: Thresholds; dmarc_action: DmarcActions },
): Ruling {
  const rulings: Ruling[] = [];
  // What is off is never done, however sure the engine is: then the strongest that is on.
  const insisted = (["reject", "quarantine", "tag"] as const).find((verdict) => thresholds[verdict] !== null);
  if (evidence.insists && insisted) rulings.push({ verdict: insisted, reason: "it is spam beyond doubt" });
  if (evidence.blocked) rulings.push({ verdict: "reject", reason: "the sender is blocked" });
  const { dmarc_asks, score } = evidence;
  const action = dmarc_asks === null ? "none" : dmarc_action[dmarc_asks];
  if (action !== "none") rulings.push({ verdict: action, reason: `DMARC failed and asks for ${dmarc_asks}` });
  for (const verdict of ["reject", "quarantine", "tag"] as const) {
    const from = thresholds[verdict];
    if (from !== null && score >= from) rulings.push({ verdict, reason: `its spam score is ${score}` });
  }
  const strongest = rulings.sort((a, b) => VERDICTS.indexOf(b.verdict) - VERDICTS.indexOf(a.verdict))[0];
  return strongest ?? { verdict: "ham", reason: null };
}

/** The first threshold that is below one before it; null when they are in order. */
export function disorder(thresholds: Thresholds): { later: keyof Thresholds; earlier: keyof Thresholds } | null {
  const set = (["tag", "quarantine", "reject"] as const).filter((name) => thresholds[name] !== null);
  for (const [index, later] of set.entries()) {
    const earlier = set[index - 1];
    if (earlier && (thresholds[later] as number) < (thresholds[earlier] as number)) return { later, earlier };
  }
  return null;
}
