// The steps of `npm run proof`.

export type Step = {
  name: string;
  what: string;
  /** A script of this repository and its arguments. */
  command: readonly string[];
  /** A folder without which there is nothing to play, from the root of the repository. */
  needs?: string;
  /** Steps of one place are played one after the other, those of `one` and `other` beside each other, and then `alone`. */
  place: "one" | "other" | "alone";
  /** It is ended then, and has failed: some three times what it takes on two cores. */
  seconds_max: number;
};

const CASES = "../shared/data";

export const STEPS: readonly Step[] = [
  {
    name: "simulation",
    what: "10,000 seeds of sending and webhooks under a virtual clock",
    command: ["test/simulation/run.ts", "--seeds", "10000"],
    place: "other",
    seconds_max: 900,
  },
  {
    name: "fuzz",
    what: "every target, two minutes together",
    command: ["test/fuzz/run.ts", "all", "--seconds", "120"],
    place: "other",
    seconds_max: 600,
  },
  {
    name: "corpora",
    what: "third-party cases, all of them",
    command: ["test/corpora/run.ts"],
    needs: CASES,
    place: "other",
    seconds_max: 900,
  },
  {
    name: "masks",
    what: "attacks on masked addresses, ordinary replies, and 10,000 pairs of guesses",
    command: ["test/masks/run.ts"],
    place: "one",
    seconds_max: 1_500,
  },
  {
    name: "clients",
    what: "the conformance set with each client library, on the versions of its language that are here",
    command: ["clients/run.ts"],
    place: "one",
    seconds_max: 600,
  },
  {
    name: "contract",
    what: "every answer is one that /openapi.yaml describes: schemathesis with few cases (npm run contract has all)",
    command: ["test/api/contract.ts", "--phases", "examples,fuzzing,stateful", "--examples", "5", "--json"],
    place: "one",
    seconds_max: 900,
  },
  {
    name: "long",
    what: "the test files that npm test leaves out or plays with few rounds, with all of them",
    command: ["test/run.ts", "--no-check", "--long"],
    place: "one",
    seconds_max: 1_800,
  },
  {
    name: "dashboard-budget",
    what: "what a browser loads of the dashboard, compressed",
    command: ["dashboard/run.ts", "budget"],
    place: "other",
    seconds_max: 60,
  },
  {
    name: "dashboard",
    what: "stories and every page of the dashboard in Chromium, at three widths, light and dark",
    command: ["dashboard/run.ts", "e2e", "--json"],
    place: "other",
    seconds_max: 1_800,
  },
  {
    name: "scale",
    what: "four cells on Citus under mail: one is moved, a worker and a machine are killed",
    command: ["test/scale/run.ts"],
    place: "alone",
    seconds_max: 1_200,
  },
  {
    name: "pooler",
    what: "50 nodes on 100 connections through PgBouncer, all of them busy",
    command: ["test/scale/pooler/run.ts"],
    place: "alone",
    seconds_max: 300,
  },
];
