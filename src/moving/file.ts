// The file that an organization moves in: the frames of a backup (backup/frames.ts), encrypted as one is, with a head of its own. It
// holds the key ring and every secret of the organization: who can open it needs nothing else.
export const FILE_FORMAT = "organization-1";

export type FileHead = {
  format: typeof FILE_FORMAT;
  postern: string;
  created_at: string;
  organization: { id: string; name: string; state: string };
  /** The schemas of both cells must be the same. */
  migrations: number[];
  /** Days of which the database has partitions, YYYY-MM-DD. */
  days: string[];
  /** In hex: what links, addresses and digests were made with, and values were sealed with. */
  key_ring: { root: string; data: [number, string][] };
  /** The service's own masked domain, where the organization has aliases at it. */
  masked_domain: string | null;
  /** Addresses of its pools, which stay. */
  addresses: string[];
};

export type FileEnd = { tables: number; rows: number; bodies: number; bodies_missing: string[] };
