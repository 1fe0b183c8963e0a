/** A command line that cannot be carried out as it was typed: the process ends with 2, with 1 where the work failed. */
export class UsageError extends Error {}
