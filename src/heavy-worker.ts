// The file that the process for heavy requests begins with. Its modules are kept compiled in the folder that it is given: half of what a
// start takes.
import { enableCompileCache } from "node:module";

enableCompileCache(process.argv[2]);
await import("./heavy-service.ts");
