// Every corpus that has a runner, in the order of the folders.
import { addressSyntax } from "./address-syntax.ts";
import { arfFeedback } from "./arf-feedback.ts";
import { arcValimail, dkimMessages, dmarcEvaluation, spfRfc7208 } from "./auth.ts";
import { bounceFlufl, bounceSisimai, dsnMisc } from "./bounces.ts";
import { dkimCanonicalization } from "./dkim-canonicalization.ts";
import { dmarcAggregateReports } from "./dmarc-aggregate-reports.ts";
import { dmarcFailureReports } from "./dmarc-failure-reports.ts";
import { maskedForwarding } from "./masked-forwarding.ts";
import { mimeMime4j, mimeMisc, mimeStalwart } from "./mime.ts";
import { publicSuffixList } from "./public-suffix-list.ts";
import { regexRedos } from "./regex-redos.ts";
import { smtpDialogues } from "./smtp-dialogues.ts";
import { smtpReplyClassification } from "./smtp-reply-classification.ts";
import { spamAndHam } from "./spam-and-ham.ts";
import { suppressionCsv } from "./suppression-csv.ts";
import type { Corpus } from "./tally.ts";
import { tlsRpt } from "./tls-rpt.ts";
import { webhookSignature } from "./webhook-signature.ts";

export const CORPORA: readonly Corpus[] = [
  addressSyntax,
  arcValimail,
  arfFeedback,
  bounceFlufl,
  bounceSisimai,
  dkimCanonicalization,
  dkimMessages,
  dmarcAggregateReports,
  dmarcEvaluation,
  dmarcFailureReports,
  dsnMisc,
  maskedForwarding,
  mimeMime4j,
  mimeMisc,
  mimeStalwart,
  publicSuffixList,
  regexRedos,
  smtpDialogues,
  smtpReplyClassification,
  spamAndHam,
  spfRfc7208,
  suppressionCsv,
  tlsRpt,
  webhookSignature,
];
