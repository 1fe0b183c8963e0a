// `npm ci` builds the dashboard by the root's `prepare` script, in about a second. It never fails an installation: where the
// build's packages are missing (npm ci --omit=dev) or the build fails, it says so, and Postern serves the API without it.
// Plain JavaScript: it may be run by a Node that reads no types.
import { rmSync } from "node:fs";
import { join } from "node:path";

const dist = join(import.meta.dirname, "dist");

function without(reason) {
  console.log(
    `The dashboard is not built: ${reason} Postern serves the API without it; npm run dashboard -- build makes it.`,
  );
}

let vite;
try {
  vite = await import("vite");
} catch {
  without("its build packages are not installed.");
}
if (vite) {
  try {
    await vite.build({ configFile: join(import.meta.dirname, "vite.config.ts"), logLevel: "error" });
  } catch (error) {
    rmSync(dist, { recursive: true, force: true });
    without(`the build failed (${error instanceof Error ? error.message : error}).`);
  }
}
