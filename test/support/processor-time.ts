// The processor time that work in a test takes: a busy machine does not count, so that tests of linear time can be sharp.

/** Milliseconds of this thread's processor time since `startProcessorTime`. */
export type ProcessorTime = () => number;

/** Starts to count; the result says how much was used since. */
export function startProcessorTime(): ProcessorTime {
  const before = process.threadCpuUsage();
  return () => {
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  };
}

/** Milliseconds of processor time that `work` takes. */
export function processorMs(work: () => void): number {
  const used = startProcessorTime();
  work();
  return used();
}
