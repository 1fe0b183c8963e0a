// A page of a list that has its newest row first. One way for every list whose rows are ordered by their ids (UUIDv7).

/** `below`: only rows with a lower id; LAST_ID for all. The next page of a reader who was not to see a row twice. */
export type Page = { limit: number; offset: number; below: string };

/** Above every id. */
export const LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/** Below every id. */
export const FIRST_ID = "00000000-0000-0000-0000-000000000000";
