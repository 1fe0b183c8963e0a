// Sending processes: started, killed, stopped, stalled, and started again by whoever looks after them. Each runs the
// product's whole engine (src/outbound) over the model's database and network; machines keep the journals of their
// processes until they lose their power.
import { type FindLane, laneFinder, MTA_CHANNEL, type Outbound, startOutbound } from "../../src/outbound/outbound.ts";
import type { Outside } from "../../src/outbound/outside.ts";
import type { Outcome } from "../../src/outbound/types.ts";
import type { World } from "../../src/platform/world.ts";
import { connect, type Server } from "./database.ts";
import type { MailNetwork } from "./mail-network.ts";
import { createProcessWorld, type Line } from "./process-world.ts";
import type { Life, Universe } from "./universe.ts";

type InFlight = { message_id: string; position: number; attempts: number };
type Noted = InFlight & { outcome: Outcome | null };

/** `boot` changes with its power; the journals do not outlive that. */
export type Machine = { name: string; boot: number; journals: Map<number, Noted[]> };

export type Process = {
  life: Life;
  pid: number;
  machine: Machine;
  world: World;
  engine: Outbound | null;
  findLane: FindLane;
};

export type Processes = {
  all: Process[];
  start(machine: Machine): void;
  kill(process: Process): void;
  /** SIGTERM; killed when it does not end within its time. */
  stop(process: Process): void;
  running(): Process[];
};

export type ProcessParts = {
  universe: Universe;
  server: Server;
  network: MailNetwork;
  lines: Line[];
  /** Journals that forget, to see that the simulation notices. */
  forgetful: boolean;
};

/** Nobody waits longer for a process to end. */
const STOP_WITHIN_MS = 60_000;

export function createProcesses(parts: ProcessParts): Processes {
  const { universe, server } = parts;
  const all: Process[] = [];

  function start(machine: Machine): void {
    const process = createProcess(parts, machine, all);
    all.push(process);
    universe.after(0, process.life, () => {
      const deps = { signingKeys: async () => [], roles: ["mta"], outside: outsideOf(parts, process, all) };
      startOutbound(process.world, deps).then(
        (engine) => {
          process.engine = engine;
          void process.world.db.listen([MTA_CHANNEL], engine.wake);
        },
        () => end(process, 1_000),
      );
    });
  }

  function end(process: Process, againMs: number): void {
    universe.kill(process.life);
    server.listeners = server.listeners.filter(({ life }) => life !== process.life);
    all.splice(all.indexOf(process), 1);
    universe.plan(againMs, () => start(process.machine));
  }

  function kill(process: Process): void {
    if (process.life.alive) end(process, universe.chance.between(50, 20_000));
  }

  return {
    all,
    start,
    kill,
    stop(process) {
      const { engine } = process;
      if (!engine) return kill(process);
      universe.after(STOP_WITHIN_MS, process.life, () => kill(process));
      universe.after(0, process.life, () => {
        engine.stop().then(
          () => kill(process),
          () => kill(process),
        );
      });
    },
    running: () => all.filter(({ engine, life }) => engine !== null && life.alive),
  };
}

let pids = 0;

function createProcess({ universe, server, network, lines }: ProcessParts, machine: Machine, all: Process[]): Process {
  pids += 1;
  const life: Life = { name: `${machine.name}/${all.length}`, alive: true, stalled_until_ms: 0, calls: 0 };
  const db = connect(universe, server, life);
  const world = createProcessWorld({ universe, life, db, lines, resolver: network.resolver(life) });
  return { life, pid: pids, machine, world, engine: null, findLane: laneFinder(world) };
}

function outsideOf({ network, forgetful }: ProcessParts, { life, machine, pid }: Process, all: Process[]): Outside {
  const name = (): string => `${machine.name}/boot-${machine.boot}`;
  return {
    host: {
      machine: name(),
      pid,
      isAlive: (other) => all.some((process) => process.machine === machine && process.pid === other),
    },
    open: network.open(life),
    journals: {
      open: (node) => openJournal(machine, node, forgetful),
      read: (node) => machine.journals.get(node) ?? null,
      remove: (node) => void machine.journals.delete(node),
    },
  };
}

/** As the real one keeps it: a slot whose outcome is committed is used again, and read until then. */
function openJournal({ journals }: Machine, node: number, forgetful: boolean) {
  const slots: Noted[] = [];
  const free: number[] = [];
  journals.set(node, slots);
  return {
    note({ message_id, position, attempts }: InFlight) {
      if (!forgetful) slots[free.pop() ?? slots.length] = { message_id, position, attempts, outcome: null };
    },
    conclude({ message_id, position, attempts }: InFlight, outcome: Outcome) {
      const isIt = (slot: Noted) => slot.message_id === message_id && slot.position === position;
      const at = slots.findIndex((slot, n) => isIt(slot) && slot.attempts === attempts && !free.includes(n));
      if (at !== -1) slots[at] = { ...(slots[at] as Noted), outcome };
    },
    settle(ended: readonly { message_id: string; position: number }[]) {
      for (const one of ended) {
        const at = slots.findIndex((slot) => slot.message_id === one.message_id && slot.position === one.position);
        if (at !== -1 && !free.includes(at)) free.push(at);
      }
    },
    close: () => void journals.delete(node),
  };
}
