// Limits by plan, as data. Requests per second are the contract's table; monthly recipients are ours. An organization
// row may override both.
import type { Plan } from "./types.ts";

type PlanLimits = {
  requests_per_second: number;
  monthly_quota: number;
  statistics: boolean;
  dedicated_ips: boolean;
  auth_results: boolean;
  /** Mails on a day that ask mailboxes for consent to forward to them: they go to people who do not know the sender. */
  consent_mails_a_day: number;
};

export const PLANS: Record<Plan, PlanLimits> = {
  // Free is for trying out: the Starter's rate, no statistics (contract: paid plans only).
  free: {
    requests_per_second: 10,
    monthly_quota: 3_000,
    statistics: false,
    dedicated_ips: false,
    auth_results: false,
    consent_mails_a_day: 20,
  },
  starter: {
    requests_per_second: 10,
    monthly_quota: 50_000,
    statistics: true,
    dedicated_ips: false,
    auth_results: true,
    consent_mails_a_day: 100,
  },
  growth: {
    requests_per_second: 100,
    monthly_quota: 500_000,
    statistics: true,
    dedicated_ips: false,
    auth_results: true,
    consent_mails_a_day: 500,
  },
  scale: {
    requests_per_second: 1_000,
    monthly_quota: 10_000_000,
    statistics: true,
    dedicated_ips: true,
    auth_results: true,
    consent_mails_a_day: 2_000,
  },
  // "custom" in the contract; a self-hosted organization's default. The quota is one nobody meets by accident.
  enterprise: {
    requests_per_second: 5_000,
    monthly_quota: 1_000_000_000,
    statistics: true,
    dedicated_ips: true,
    auth_results: true,
    consent_mails_a_day: 10_000,
  },
};
