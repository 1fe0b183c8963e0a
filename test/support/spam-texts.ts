// Texts that the built-in filter judges: one that scores beyond every usual threshold, and the one that is always spam.

export const SPAMMY =
  "Claim your prize: the lottery, 10 million dollars for the next of kin. Respond urgently with your bank details. Make money fast. Viagra.";

/** https://spamassassin.apache.org/gtube/ */
export const GTUBE = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X";
