/**
 * Of the processor, what this thread took so far, in milliseconds. For all that is charged to somebody or limited: where other
 * work keeps the machine busy, the clock goes on while this thread waits, and nobody's request is to blame for that.
 */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
