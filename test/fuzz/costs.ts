// `npm run fuzz -- costs [--seconds n] [--seed s] [--json]`: looks for requests that take much of the processor for each of
// their bytes, and much of the thread that everybody shares. Plays against a process of its own with all roles; what it took
// are the kernel's figures of its threads, so a busy machine changes little. Exit code 1: a request took too much of the
// shared thread.
import { readdirSync, readFileSync } from "node:fs";
import { chanceOf } from "../faults/seeded.ts";
import { setStage } from "../faults/stage.ts";
import { addTenant } from "../faults/tenant.ts";
import { ask, type Posterns } from "../support/postern-process.ts";
import { bodyOf, type CostInput, describeInput, drawInput, KNOWN } from "./cost-inputs.ts";

export type Cost = CostInput & {
  status: number;
  /** Of the processor, all threads of the process. */
  processor_ms: number;
  ns_per_byte: number;
  /** Of the processor, the thread that everybody shares. */
  shared_ms: number;
};

export type Tenant = Posterns & { domain: string };
/** `tenants`: one asks after another, so that what one organization may have does not end the search. */
export type CostSearch = {
  tenants: readonly Tenant[] /** Of the process that is asked. */;
  pid: number;
  seconds: number;
  seed: number;
};

const BEST_MAX = 8;
/** An organization that took too much is asked to wait; the search goes on with another key. */
const TOO_MUCH = 429;
const WAIT_MS = 2_000;
/** What a request may take of the shared thread: to read it there, and for each byte to come in and be handed over. */
const SHARED_MS_MAX = 25;
const SHARED_NS_PER_BYTE_MAX = 10;
/** Other work of the process falls into some measurement: only what comes again counts. */
const AGAIN = 3;

/** The dearest for each byte, dearest first, and those that took too much of the shared thread. */
export async function searchCosts(search: CostSearch): Promise<{ tried: number; worst: Cost[]; dear: Cost[] }> {
  const chance = chanceOf(search.seed);
  const until = performance.now() + search.seconds * 1000;
  const costs: Cost[] = [];
  for (const tenant of search.tenants) await ask(tenant, "POST", "/v1/templates", TEMPLATE);
  for (let n = 0; n < KNOWN.length || performance.now() < until; n += 1) {
    const input = KNOWN[n] ?? drawInput(chance, worstOf(costs));
    const cost = await measure(search, input, n);
    if (cost.status === TOO_MUCH) await new Promise((done) => setTimeout(done, WAIT_MS));
    else costs.push(cost);
  }
  return { tried: costs.length, worst: worstOf(costs), dear: await dearAgain(search, costs) };
}

const TENANTS = 6;
const TEMPLATE = {
  name: "costs",
  slug: "costs",
  subject: "x",
  html_body: "{{#each list}}<p>{{this}}{{#each ../list}}{{this}}{{/each}}</p>{{/each}}",
};

/** By what a byte costs; one of each field, so that the list tells of several. */
function worstOf(costs: readonly Cost[]): Cost[] {
  const sorted = costs.toSorted((a, b) => b.ns_per_byte * weightOf(b) - a.ns_per_byte * weightOf(a));
  const seen = new Set<string>();
  return sorted.filter(({ path, field }) => !seen.has(path + field) && seen.add(path + field)).slice(0, BEST_MAX);
}

/** A request has a price of its own, which counts for nothing here: 16 KiB are half of the weight. */
function weightOf({ bytes }: Cost): number {
  return bytes / (bytes + 16 * 1024);
}

function isDear({ bytes, shared_ms }: Cost): boolean {
  return shared_ms > SHARED_MS_MAX + (bytes * SHARED_NS_PER_BYTE_MAX) / 1e6;
}

async function dearAgain(search: CostSearch, costs: readonly Cost[]): Promise<Cost[]> {
  const dear: Cost[] = [];
  const suspects = costs.filter(isDear).toSorted((a, b) => b.shared_ms - a.shared_ms);
  for (const suspect of suspects.slice(0, BEST_MAX)) {
    let least = suspect;
    for (let n = 0; n < AGAIN && isDear(least); n += 1) {
      const cost = await measure(search, suspect, n);
      if (cost.status !== TOO_MUCH && cost.shared_ms < least.shared_ms) least = cost;
    }
    if (isDear(least)) dear.push(least);
  }
  return dear;
}

async function measure({ tenants, pid }: CostSearch, input: CostInput, turn: number): Promise<Cost> {
  const tenant = tenants[turn % tenants.length] as Tenant;
  const { body, type } = bodyOf(input, tenant.domain);
  const before = processorOf(pid);
  const response = await fetch(tenant.base_url + input.path, {
    method: "POST",
    headers: { authorization: `Bearer ${tenant.live_key}`, "content-type": type },
    body,
  }).catch(() => null);
  await response?.arrayBuffer().catch(() => undefined);
  const after = processorOf(pid);
  const processor_ms = after.all_ms - before.all_ms;
  return {
    ...{ ...input, bytes: body.length, status: response?.status ?? 0, processor_ms: Math.round(processor_ms) },
    ns_per_byte: Math.round((processor_ms * 1e6) / body.length),
    shared_ms: Math.round(after.shared_ms - before.shared_ms),
  };
}

/**
 * Milliseconds of the processor since the process began: of all its threads and of its process for heavy requests, of its
 * first thread, and how long that one waited for a processor (proc(5), schedstat).
 */
export function processorOf(pid: number): { all_ms: number; shared_ms: number; shared_waited_ms: number } {
  const of = (thread: string) => {
    const [ran, waited] = readFileSync(`${thread}/schedstat`, "utf8").split(" ");
    return { ran_ms: Number(ran) / 1e6, waited_ms: Number(waited) / 1e6 };
  };
  const threads = [pid, ...heavyProcessesOf(pid)].flatMap((process) =>
    readdirSync(`/proc/${process}/task`).map((id) => `/proc/${process}/task/${id}`),
  );
  const all_ms = threads.reduce((sum, thread) => sum + of(thread).ran_ms, 0);
  const { ran_ms, waited_ms } = of(`/proc/${pid}/task/${pid}`);
  return { all_ms, shared_ms: ran_ms, shared_waited_ms: waited_ms };
}

function heavyProcessesOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
  return children
    .map(Number)
    .filter((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes("heavy-worker"));
}

/** All roles in one process, as most installations have it, with organizations that search, or attack. */
export async function setCostStage(tenantCount: number) {
  const stage = await setStage({ roles: ["all"] });
  try {
    const tenants: Tenant[] = [];
    for (let n = 0; n < tenantCount; n += 1) {
      const domain = `attacker-${n}.example`;
      tenants.push({ ...(await addTenant(stage, domain)), domain });
    }
    return { stage, tenants, pid: stage.processes.get("all")?.pid ?? 0 };
  } catch (error) {
    await stage.close();
    throw error;
  }
}

export type CostRun = { seconds: number; seed: number; json: boolean };

/** The command; resolves to its exit code. */
export async function runCosts({ seconds, seed, json }: CostRun): Promise<number> {
  const { stage, tenants, pid } = await setCostStage(TENANTS);
  try {
    const found = await searchCosts({ tenants, pid, seconds, seed });
    for (const cost of found.worst) console.log(line(cost));
    for (const cost of found.dear) console.log(`TOO DEAR ${line(cost)}`);
    console.log(`${found.tried} requests tried, ${found.dear.length} took too much of the shared thread`);
    if (json) console.log(JSON.stringify({ seed, seconds, ...found, ok: found.dear.length === 0 }));
    return found.dear.length === 0 ? 0 : 1;
  } finally {
    await stage.close();
  }
}

function line(cost: Cost): string {
  const { status, processor_ms, ns_per_byte, shared_ms } = cost;
  return `${String(ns_per_byte).padStart(7)} ns/byte ${String(processor_ms).padStart(6)} ms, ${shared_ms} ms of them shared, ${status}: ${describeInput(cost)}`;
}
