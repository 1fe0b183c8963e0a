// What a scenario needs and this machine has not.

/** Thrown by a scenario that this machine cannot play; the message says what is missing. */
export class Lacking extends Error {}
