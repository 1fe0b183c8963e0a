import { join, resolve } from "node:path";

/** Where the processes of tests keep their modules compiled, for NODE_COMPILE_CACHE: each would compile the same ones again. */
export const COMPILE_CACHE = join(resolve(import.meta.dirname, "../.."), "node_modules/.cache/postern-test");
