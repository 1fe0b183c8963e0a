// Every corpus that has a runner, in the order of the folders.
import { addressSyntax } from "./address-syntax.ts";
import { arfFeedback } from "./arf-feedback.ts";
import { bounceFlufl, bounceSisimai, dsnMisc } from "./bounces.ts";
import { dkimCanonicalization } from "./dkim-canonicalization.ts";
import { smtpReplyClassification } from "./smtp-reply-classification.ts";
import { suppressionCsv } from "./suppression-csv.ts";
import type { Corpus } from "./tally.ts";
import { webhookSignature } from "./webhook-signature.ts";

export const CORPORA: readonly Corpus[] = [
  addressSyntax,
  arfFeedback,
  bounceFlufl,
  bounceSisimai,
  dkimCanonicalization,
  dsnMisc,
  smtpReplyClassification,
  suppressionCsv,
  webhookSignature,
];
