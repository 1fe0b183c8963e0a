// What taking bounces and forgetting needs of features that stand elsewhere.
import type { FindLane } from "../../outbound/outbound.ts";
import type * as carry from "../carry/carry.ts";

export type BouncePorts = carry.CarryPorts & {
  findLane: FindLane;
  notify(): void;
  /** Forgets what a message kept outside its row. */
  forgetBlobs(orgId: string, ownerId: string): Promise<void>;
};

export type TracePorts = BouncePorts & {
  /** Forgets received mails that are processed. */
  forgetReceived(keys: readonly { org_id: string; id: string }[]): Promise<void>;
};
