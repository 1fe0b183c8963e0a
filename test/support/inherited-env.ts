// What a process that a test starts gets of the test's environment: what it needs to run at all, and the test run's cache of
// compiled modules, which halves the time of its start.

export function inheritedEnv(): Record<string, string> {
  const { PATH = "", HOME = "/tmp", NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }) };
}
