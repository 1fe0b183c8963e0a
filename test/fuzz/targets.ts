// Every target there is, in the order in which they run.
import type { Target } from "./target.ts";
import { ADDRESS_TARGETS } from "./targets/address.ts";
import { BUILD_TARGETS } from "./targets/build.ts";
import { CUSTOMER_TARGETS } from "./targets/customers.ts";
import { DKIM_TARGETS } from "./targets/dkim.ts";
import { MASKED_TARGETS } from "./targets/masked.ts";
import { MIME_TARGETS } from "./targets/mime.ts";
import { POLICY_TARGETS } from "./targets/policies.ts";
import { REPORT_TARGETS } from "./targets/reports.ts";
import { SMTP_TARGETS } from "./targets/smtp.ts";
import { STRANGER_TARGETS } from "./targets/strangers.ts";

export const TARGETS: readonly Target[] = [
  ...[SMTP_TARGETS, ADDRESS_TARGETS, MIME_TARGETS, BUILD_TARGETS, DKIM_TARGETS, POLICY_TARGETS].flat(),
  ...[REPORT_TARGETS, CUSTOMER_TARGETS, STRANGER_TARGETS, MASKED_TARGETS].flat(),
];
